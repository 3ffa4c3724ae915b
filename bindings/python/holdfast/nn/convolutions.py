"""Convolutions: channels are the last dimension of inputs and of weights."""

from __future__ import annotations

import math
from typing import TypeAlias

import holdfast.core as mx
from holdfast.nn.module import Module

_Sizes: TypeAlias = "int | tuple[int, ...]"


def _tuple(value, count):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _Convolution(Module):
    _function = None

    def _make(self, dims: int, in_channels: int, out_channels: int, kernel_size: _Sizes, bias: bool, **settings: _Sizes) -> None:
        groups = settings.get("groups", 1)
        if in_channels % groups != 0:
            raise ValueError(f"[{type(self).__name__}] the input channels ({in_channels}) must be divisible by the groups ({groups})")
        for key, value in settings.items():
            # Not as an item: a tuple of numbers is no parameter, and no state either.
            object.__setattr__(self, key, value if dims == 1 or key in ("groups", "dilation") else _tuple(value, dims))
        sizes, channels = _tuple(kernel_size, dims), in_channels // groups
        bound = math.sqrt(1 / (channels * math.prod(sizes)))
        self.weight = mx.random.uniform(low=-bound, high=bound, shape=(out_channels, *sizes, channels))
        if bias:
            self.bias = mx.zeros((out_channels,))

    def _settings(self):
        return {key: getattr(self, key) for key in ("stride", "padding", "dilation", "output_padding", "groups") if hasattr(self, key)}

    def _extra_repr(self):
        groups = self.groups if hasattr(self, "groups") else 1
        settings = "".join(f", {key}={value}" for key, value in self._settings().items())
        size = self.weight.shape[1] if self.weight.ndim == 3 else self.weight.shape[1:-1]
        return f"{self.weight.shape[-1] * groups}, {self.weight.shape[0]}, kernel_size={size}{settings}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        y = type(self)._function(x, self.weight, **self._settings())
        return y + self.bias if "bias" in self else y


class Conv1d(_Convolution):
    """A convolution over 1 dimension, with learned weights."""

    _function = staticmethod(mx.conv1d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
                 bias: bool = True) -> None:
        super().__init__()
        self._make(1, in_channels, out_channels, kernel_size, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


class Conv2d(_Convolution):
    """A convolution over 2 dimensions, with learned weights."""

    _function = staticmethod(mx.conv2d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Sizes, stride: _Sizes = 1, padding: _Sizes = 0, dilation: _Sizes = 1, groups: int = 1,
                 bias: bool = True) -> None:
        super().__init__()
        self._make(2, in_channels, out_channels, kernel_size, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


class Conv3d(_Convolution):
    """A convolution over 3 dimensions, with learned weights."""

    _function = staticmethod(mx.conv3d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Sizes, stride: _Sizes = 1, padding: _Sizes = 0, dilation: _Sizes = 1,
                 bias: bool = True) -> None:
        super().__init__()
        self._make(3, in_channels, out_channels, kernel_size, bias, stride=stride, padding=padding, dilation=dilation)


class ConvTranspose1d(_Convolution):
    """A transposed convolution over 1 dimension, with learned weights."""

    _function = staticmethod(mx.conv_transpose1d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1,
                 output_padding: int = 0, bias: bool = True) -> None:
        super().__init__()
        self._make(1, in_channels, out_channels, kernel_size, bias, stride=stride, padding=padding, dilation=dilation, output_padding=output_padding)


class ConvTranspose2d(_Convolution):
    """A transposed convolution over 2 dimensions, with learned weights."""

    _function = staticmethod(mx.conv_transpose2d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Sizes, stride: _Sizes = 1, padding: _Sizes = 0, dilation: _Sizes = 1,
                 output_padding: _Sizes = 0, bias: bool = True) -> None:
        super().__init__()
        self._make(2, in_channels, out_channels, kernel_size, bias, stride=stride, padding=padding, dilation=dilation, output_padding=output_padding)


class ConvTranspose3d(_Convolution):
    """A transposed convolution over 3 dimensions, with learned weights."""

    _function = staticmethod(mx.conv_transpose3d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Sizes, stride: _Sizes = 1, padding: _Sizes = 0, dilation: _Sizes = 1,
                 output_padding: _Sizes = 0, bias: bool = True) -> None:
        super().__init__()
        self._make(3, in_channels, out_channels, kernel_size, bias, stride=stride, padding=padding, dilation=dilation, output_padding=output_padding)
