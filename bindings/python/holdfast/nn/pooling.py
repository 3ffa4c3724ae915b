"""Pooling: the maximum or the mean of windows."""

from __future__ import annotations

import holdfast.core as mx
from holdfast.nn.module import Module


def _tuple(value, count, what):
    if isinstance(value, int):
        return (value,) * count
    value = tuple(value)
    if len(value) != count:
        raise ValueError(f"[pooling] {what} must be an int or {count} ints, got {value}")
    return value


def _windows(x, sizes, strides):
    """The windows of the middle dimensions: (batch, places..., sizes..., channels)."""
    batch, *middle, channels = x.shape
    x = mx.contiguous(x)
    steps = [channels]
    for size in reversed(middle):
        steps.insert(0, steps[0] * size)
    places = [(length - size) // stride + 1 for length, size, stride in zip(middle, sizes, strides)]
    if min(places) < 1:
        raise ValueError(f"[pooling] windows of {tuple(sizes)} do not fit an input of shape {x.shape}")
    return mx.as_strided(x, (batch, *places, *sizes, channels), (steps[0], *(step * stride for step, stride in zip(steps[1:], strides)), *steps[1:], 1))


class _Pool(Module):
    _dims = 1

    def __init__(self, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | tuple[int, ...] = 0) -> None:
        super().__init__()
        self._kernel_size = _tuple(kernel_size, self._dims, "kernel_size")
        self._stride = _tuple(kernel_size if stride is None else stride, self._dims, "stride")
        self._padding = _tuple(padding or 0, self._dims, "padding")

    def _extra_repr(self):
        return f"kernel_size={self._kernel_size}, stride={self._stride}, padding={self._padding}"

    def __call__(self, x: mx.array) -> mx.array:
        if x.ndim != self._dims + 2:
            raise ValueError(f"[{type(self).__name__}] expected an input with {self._dims + 2} dimensions, got {x.ndim}")
        if any(self._padding):
            x = mx.pad(x, [(0, 0), *((p, p) for p in self._padding), (0, 0)], constant_values=self._edge(x.dtype))
        axes = tuple(range(-self._dims - 1, -1))
        return self._reduce(_windows(x, self._kernel_size, self._stride), axes)


class _MaxPool(_Pool):
    """The maximum of windows; beyond the edges is minus infinity."""

    _reduce = staticmethod(mx.max)

    @staticmethod
    def _edge(dtype):
        return float("-inf") if mx.issubdtype(dtype, mx.inexact) else mx.iinfo(dtype).min


class _AvgPool(_Pool):
    """The mean of windows; beyond the edges are zeros, which count."""

    _reduce = staticmethod(mx.mean)

    @staticmethod
    def _edge(dtype):
        return 0


class MaxPool1d(_MaxPool):
    """The maximum of windows; beyond the edges is minus infinity."""

    _dims = 1


class MaxPool2d(_MaxPool):
    """The maximum of windows; beyond the edges is minus infinity."""

    _dims = 2


class MaxPool3d(_MaxPool):
    """The maximum of windows; beyond the edges is minus infinity."""

    _dims = 3


class AvgPool1d(_AvgPool):
    """The mean of windows; beyond the edges are zeros, which count."""

    _dims = 1


class AvgPool2d(_AvgPool):
    """The mean of windows; beyond the edges are zeros, which count."""

    _dims = 2


class AvgPool3d(_AvgPool):
    """The mean of windows; beyond the edges are zeros, which count."""

    _dims = 3
