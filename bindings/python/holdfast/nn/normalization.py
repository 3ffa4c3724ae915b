"""Layers that normalise."""

from __future__ import annotations

import holdfast.core as mx
from holdfast.nn.module import Module


class LayerNorm(Module):
    """Mean 0 and variance 1 along the last axis, then a learned scale and bias."""

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        self.eps, self.dims = eps, dims
        if affine:
            self.weight = mx.ones((dims,))
            if bias:
                self.bias = mx.zeros((dims,))

    def _extra_repr(self):
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.layer_norm(x, self.get("weight"), self.get("bias"), self.eps)


class RMSNorm(Module):
    """Root mean square 1 along the last axis, then a learned scale."""

    def __init__(self, dims: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = mx.ones((dims,))
        self.eps = eps

    def _extra_repr(self):
        return f"{self.weight.shape[0]}, eps={self.eps}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.rms_norm(x, self["weight"], self.eps)


def _normalised(x, axes, eps):
    mean = mx.mean(x, axis=axes, keepdims=True)
    return (x - mean) * mx.rsqrt(mx.var(x, axis=axes, keepdims=True) + eps)


class InstanceNorm(Module):
    """Each channel of each instance by itself: over all axes but the first and the last."""

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = False) -> None:
        super().__init__()
        self.dims, self.eps = dims, eps
        if affine:
            self.weight, self.bias = mx.ones((dims,)), mx.zeros((dims,))

    def _extra_repr(self):
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        y = _normalised(x, tuple(range(1, x.ndim - 1)), self.eps)
        return self.weight * y + self.bias if "weight" in self else y


class GroupNorm(Module):
    """Groups of channels by themselves. With `pytorch_compatible` neighbouring channels are a group, else every num_groups-th one."""

    def __init__(self, num_groups: int, dims: int, eps: float = 1e-5, affine: bool = True, pytorch_compatible: bool = False) -> None:
        super().__init__()
        self.num_groups, self.dims, self.eps, self.pytorch_compatible = num_groups, dims, eps, pytorch_compatible
        if affine:
            self.weight, self.bias = mx.ones((dims,)), mx.zeros((dims,))

    def _extra_repr(self):
        return f"{self.num_groups}, {self.dims}, eps={self.eps}, affine={'weight' in self}, pytorch_compatible={self.pytorch_compatible}"

    def __call__(self, x: mx.array) -> mx.array:
        batch, *rest, dims = x.shape
        size = dims // self.num_groups
        if self.pytorch_compatible:
            grouped = x.reshape(batch, -1, self.num_groups, size).transpose(0, 2, 1, 3).reshape(batch, self.num_groups, -1)
            y = mx.fast.layer_norm(grouped, None, None, self.eps)
            y = y.reshape(batch, self.num_groups, -1, size).transpose(0, 2, 1, 3).reshape(x.shape)
        else:
            y = _normalised(x.reshape(batch, -1, self.num_groups), 1, self.eps).reshape(x.shape)
        return self.weight * y + self.bias if "weight" in self else y


class BatchNorm(Module):
    """Each channel over the whole batch; when the module does not train, by the running statistics."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, track_running_stats: bool = True) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum, self.track_running_stats = num_features, eps, momentum, track_running_stats
        if affine:
            self.weight, self.bias = mx.ones((num_features,)), mx.zeros((num_features,))
        if track_running_stats:
            self.running_mean, self.running_var = mx.zeros((num_features,)), mx.ones((num_features,))
            self.freeze(keys=["running_mean", "running_var"], recurse=False)

    def unfreeze(self, *args, **kwargs):
        """The running statistics stay frozen."""
        super().unfreeze(*args, **kwargs)
        return self.freeze(keys=["running_mean", "running_var"], recurse=False)

    def _extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={'weight' in self}, "
                f"track_running_stats={self.track_running_stats}")

    def __call__(self, x: mx.array) -> mx.array:
        if x.ndim < 2 or x.ndim > 4:
            raise ValueError(f"[BatchNorm] expected an input with 2 to 4 dimensions, got {x.ndim}")
        if self.training or not self.track_running_stats:
            axes = tuple(range(x.ndim - 1))
            mean, var = mx.mean(x, axis=axes), mx.var(x, axis=axes)
        else:
            mean, var = self.running_mean, self.running_var
        if self.training and self.track_running_stats:
            kept, count = 1 - self.momentum, x.size / x.shape[-1]
            # The variance of a population, of which the batch is a sample.
            self.running_mean = kept * self.running_mean + self.momentum * mean
            self.running_var = kept * self.running_var + self.momentum * var * (count / max(count - 1, 1))
        y = (x - mean) * mx.rsqrt(var + self.eps)
        return self.weight * y + self.bias if "weight" in self else y
