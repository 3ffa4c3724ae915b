"""Enlarging the middle dimensions of (batch, dimensions..., channels)."""

from __future__ import annotations

import math

import holdfast.core as mx
from holdfast.nn.module import Module


def _places(size, scale, align_corners):
    """Where the elements of the result are in the input."""
    count = int(scale * size)
    if align_corners:
        return mx.arange(count, dtype=mx.float32) * ((size - 1) / max(count - 1, 1)), count
    return (mx.arange(count, dtype=mx.float32) + 0.5) / scale - 0.5, count


def _linear_weights(size, scale, align_corners):
    places, _ = _places(size, scale, align_corners)
    places = mx.clip(places, 0, size - 1)
    left = mx.floor(places)
    fraction = places - left
    return [(left, 1 - fraction), (mx.minimum(left + 1, size - 1), fraction)]


def _cubic_weights(size, scale, align_corners, a=-0.75):
    places, _ = _places(size, scale, align_corners)
    left = mx.floor(places)
    result = []
    for step in (-1, 0, 1, 2):
        x = mx.abs(places - (left + step))
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        result.append((mx.clip(left + step, 0, size - 1), mx.where(x <= 1, near, far)))
    return result


def _interpolated(x, scales, weights):
    """Each dimension by itself: sums of few elements, with weights."""
    for i, scale in enumerate(scales):
        axis = i + 1
        shape = [1] * x.ndim
        shape[axis] = -1
        parts = [mx.take(x, place.astype(mx.int32), axis=axis) * weight.astype(x.dtype).reshape(shape)
                 for place, weight in weights(x.shape[axis], scale)]
        x = sum(parts[1:], parts[0])
    return x


class Upsample(Module):
    """Enlarges by a factor, to the nearest element, or by linear or cubic interpolation."""

    def __init__(self, scale_factor: float | tuple, mode: str = "nearest", align_corners: bool = False, antialias: bool = False) -> None:
        super().__init__()
        if mode not in ("nearest", "linear", "cubic"):
            raise ValueError(f"[Upsample] mode must be nearest, linear or cubic, got {mode!r}")
        if antialias:
            raise NotImplementedError("[Upsample] antialias is not supported")
        self._factor = tuple(map(float, scale_factor)) if isinstance(scale_factor, (list, tuple)) else float(scale_factor)
        self.mode, self.align_corners = mode, align_corners

    def _extra_repr(self):
        return f"scale_factor={self._factor}, mode={self.mode!r}, align_corners={self.align_corners}"

    def __call__(self, x: mx.array) -> mx.array:
        dims = x.ndim - 2
        if dims <= 0:
            raise ValueError(f"[Upsample] expected an input with three dimensions or more, got {x.ndim}")
        scales = self._factor if isinstance(self._factor, tuple) else (self._factor,) * dims
        if len(scales) != dims:
            raise ValueError(f"[Upsample] expected a factor for each of {dims} dimensions, got {scales}")
        if self.mode == "linear":
            return _interpolated(x, scales, lambda size, scale: _linear_weights(size, scale, self.align_corners))
        if self.mode == "cubic":
            return _interpolated(x, scales, lambda size, scale: _cubic_weights(size, scale, self.align_corners))
        for i, scale in enumerate(scales):
            if scale == int(scale):
                x = mx.repeat(x, int(scale), axis=i + 1)
            else:
                count = math.floor(scale * x.shape[i + 1])
                places = mx.floor(mx.arange(count, dtype=mx.float32) / scale)
                x = mx.take(x, mx.minimum(places, x.shape[i + 1] - 1).astype(mx.int32), axis=i + 1)
        return x
