"""Convolutions: channels are the last dimension of inputs and of weights."""

from __future__ import annotations

import math

import holdfast.core as mx
from holdfast.nn.module import Module


def _tuple(value, count):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _Convolution(Module):
    _function = None

    def _make(self, shape, fan_in, bias):
        bound = math.sqrt(1 / fan_in)
        self.weight = mx.random.uniform(low=-bound, high=bound, shape=shape)
        if bias:
            self.bias = mx.zeros((shape[0],))

    def _settings(self):
        return {key: getattr(self, key) for key in ("stride", "padding", "dilation", "output_padding", "groups") if hasattr(self, key)}

    def _extra_repr(self):
        groups = self.groups if hasattr(self, "groups") else 1
        settings = "".join(f", {key}={value}" for key, value in self._settings().items())
        size = self.weight.shape[1] if self.weight.ndim == 3 else self.weight.shape[1:-1]
        return f"{self.weight.shape[-1] * groups}, {self.weight.shape[0]}, kernel_size={size}{settings}, bias={'bias' in self}"

    def __call__(self, x):
        y = type(self)._function(x, self.weight, **self._settings())
        return y + self.bias if "bias" in self else y


def _convolution(name, dims, function, transposed):
    """A class of convolutions over so many dimensions."""
    takes_groups = not transposed and dims < 3

    def make(self, in_channels, out_channels, kernel_size, options, bias):
        Module.__init__(self)
        if in_channels % options.get("groups", 1) != 0:
            raise ValueError(f"[{name}] the input channels ({in_channels}) must be divisible by the groups ({options['groups']})")
        sizes = _tuple(kernel_size, dims)
        for key, value in options.items():
            setattr_plain(self, key, value if dims == 1 or key in ("groups", "dilation") else _tuple(value, dims))
        self._make((out_channels, *sizes, in_channels // options.get("groups", 1)), in_channels // options.get("groups", 1) * math.prod(sizes), bias)

    def setattr_plain(self, key, value):
        # Not as an item: a tuple of numbers is no parameter, and no state either.
        object.__setattr__(self, key, value)

    if transposed:
        def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, output_padding=0, bias=True):
            make(self, in_channels, out_channels, kernel_size,
                 {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": output_padding}, bias)
    elif takes_groups:
        def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True):
            make(self, in_channels, out_channels, kernel_size, {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}, bias)
    else:
        def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=True):
            make(self, in_channels, out_channels, kernel_size, {"stride": stride, "padding": padding, "dilation": dilation}, bias)
    kind = "transposed convolution" if transposed else "convolution"
    return type(name, (_Convolution,), {"__init__": __init__, "_function": staticmethod(function), "__module__": __name__,
                                        "__doc__": f"A {kind} over {dims} dimension{'s' * (dims > 1)}, with learned weights."})


Conv1d = _convolution("Conv1d", 1, mx.conv1d, False)
Conv2d = _convolution("Conv2d", 2, mx.conv2d, False)
Conv3d = _convolution("Conv3d", 3, mx.conv3d, False)
ConvTranspose1d = _convolution("ConvTranspose1d", 1, mx.conv_transpose1d, True)
ConvTranspose2d = _convolution("ConvTranspose2d", 2, mx.conv_transpose2d, True)
ConvTranspose3d = _convolution("ConvTranspose3d", 3, mx.conv_transpose3d, True)
