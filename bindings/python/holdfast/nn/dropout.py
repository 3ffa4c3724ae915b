"""Dropout: while a module trains, a part of its input is zero, and the rest is scaled up for it."""

from __future__ import annotations

import holdfast.core as mx
from holdfast.nn.module import Module


class _Dropout(Module):
    _channel_dims = None  # how many dimensions a channel has; None: single elements are dropped

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if p < 0 or p >= 1:
            raise ValueError(f"[{type(self).__name__}] the probability must be in [0, 1), got {p}")
        self._p_1 = 1 - p

    def _extra_repr(self):
        return f"p={1 - self._p_1}"

    def __call__(self, x: mx.array) -> mx.array:
        if self._p_1 == 1 or not self.training:
            return x
        shape = x.shape
        if self._channel_dims is not None:
            if x.ndim not in (self._channel_dims + 1, self._channel_dims + 2):
                raise ValueError(f"[{type(self).__name__}] expected {self._channel_dims + 1} or {self._channel_dims + 2} dimensions, got {x.ndim}")
            shape = [*x.shape[: x.ndim - self._channel_dims - 1], *[1] * self._channel_dims, x.shape[-1]]
        return (1 / self._p_1) * mx.random.bernoulli(self._p_1, shape) * x


class Dropout(_Dropout):
    """Single elements are dropped."""


class Dropout2d(_Dropout):
    """Whole channels of two dimensions are dropped."""

    _channel_dims = 2


class Dropout3d(_Dropout):
    """Whole channels of three dimensions are dropped."""

    _channel_dims = 3
