"""Layers that are split among processes. In a group of one, the only one here, they are whole."""

from __future__ import annotations

from typing import Any, Callable

import holdfast.core as mx
from holdfast.nn.linear import Linear, QuantizedLinear
from holdfast.nn.module import Module


def _check_group(group):
    if group is not None and group.size() != 1:
        raise ValueError(f"[nn] layers for a group of {group.size()} processes are not supported")


def sum_gradients(group: Any) -> Callable:
    """A function that gives back its argument, whose gradients are summed over the group."""
    _check_group(group)
    return lambda x: x


class AllToShardedLinear(Linear):
    """Linear whose outputs are split among the group."""

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True, group: Any = None) -> None:
        _check_group(group)
        super().__init__(input_dims, output_dims, bias)

    @classmethod
    def from_linear(cls, linear_layer: Module, *, segments: int | list = 1, group: Any = None):
        """The layer, split."""
        _check_group(group)
        made = cls.__new__(cls)
        Module.__init__(made)
        made._take(linear_layer)
        return made

    def _take(self, layer):
        self.weight = layer.weight
        if "bias" in layer:
            self.bias = layer.bias


class ShardedToAllLinear(AllToShardedLinear):
    """Linear whose inputs are split among the group."""


class QuantizedAllToShardedLinear(QuantizedLinear):
    """QuantizedLinear whose outputs are split among the group."""

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True, group_size: int = 64, bits: int = 4, mode: str = "affine", group: Any = None) -> None:
        _check_group(group)
        super().__init__(input_dims, output_dims, bias, group_size, bits, mode)

    @classmethod
    def from_quantized_linear(cls, quantized_linear_layer: Module, *, segments: int | list = 1, group: Any = None):
        """The layer, split."""
        _check_group(group)
        made = cls.__new__(cls)
        Module.__init__(made)
        for key in ("group_size", "bits", "mode"):
            setattr(made, key, getattr(quantized_linear_layer, key))
        for key in ("weight", "scales", "biases", "bias"):
            if key in quantized_linear_layer:
                setattr(made, key, quantized_linear_layer[key])
        return made.freeze()


class QuantizedShardedToAllLinear(QuantizedAllToShardedLinear):
    """QuantizedLinear whose inputs are split among the group."""


def shard_linear(module: Module, sharding: str, *, segments: int | list = 1, group: Any = None) -> Module:
    """A layer split "all-to-sharded" or "sharded-to-all"."""
    if sharding not in ("all-to-sharded", "sharded-to-all"):
        raise ValueError(f"[shard_linear] sharding must be all-to-sharded or sharded-to-all, got {sharding!r}")
    first = sharding == "all-to-sharded"
    if isinstance(module, QuantizedLinear):
        return (QuantizedAllToShardedLinear if first else QuantizedShardedToAllLinear).from_quantized_linear(module, segments=segments, group=group)
    return (AllToShardedLinear if first else ShardedToAllLinear).from_linear(module, segments=segments, group=group)


def shard_inplace(module: Module, sharding: str | Callable, *, segments: int | list = 1, group: Any = None) -> None:
    """Splits the parameters of a module: of a group of one, nothing."""
    _check_group(group)


class FullyShardedModule(Module):
    """A module whose parameters are split among the group between its calls."""

    def __init__(self, module: Module, group: Any = None, compute_dtype: mx.Dtype | None = None) -> None:
        _check_group(group)
        super().__init__()
        self.module, self._compute_dtype = module, compute_dtype

    def __call__(self, *args, **kwargs):
        return self.module(*args, **kwargs)


def fully_shard(module: Module, *, group: Any = None, compute_dtype: mx.Dtype | None = None) -> Module:
    """A FullyShardedModule of the module."""
    return FullyShardedModule(module, group, compute_dtype)
