"""Activations, as functions and as modules."""

from __future__ import annotations

import math
from functools import partial

import holdfast.core as mx
from holdfast.nn.module import Module

_compiled = partial(mx.compile, shapeless=True)

__all__ = [
    "sigmoid", "relu", "relu2", "relu6", "leaky_relu", "log_softmax", "softmax", "softmin", "elu", "softplus", "softsign", "softshrink", "celu", "silu",
    "log_sigmoid", "gelu", "gelu_approx", "gelu_fast_approx", "glu", "step", "selu", "prelu", "mish", "hardswish", "hard_tanh", "hard_shrink", "tanh",
    "Sigmoid", "ReLU", "ReLU2", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "SiLU", "Mish", "GLU", "Step", "Softmax", "Softmin", "LogSoftmax",
    "LogSigmoid", "Softplus", "Softsign", "Softshrink", "HardShrink", "HardTanh", "Hardswish", "Tanh", "PReLU", "GELU",
]


@_compiled
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return mx.sigmoid(x)


@_compiled
def relu(x):
    """max(x, 0)."""
    return mx.maximum(x, 0)


@_compiled
def relu2(x):
    """max(x, 0) squared."""
    return mx.square(mx.maximum(x, 0))


@_compiled
def relu6(x):
    """min(max(x, 0), 6)."""
    return mx.minimum(mx.maximum(x, 0), 6.0)


@_compiled
def leaky_relu(x, negative_slope=0.01):
    """x where it is positive, else negative_slope * x."""
    return mx.maximum(negative_slope * x, x)


@_compiled
def log_softmax(x, axis=-1):
    """x - logsumexp(x)."""
    return x - mx.logsumexp(x, axis=axis, keepdims=True)


@_compiled
def softmax(x, axis=-1):
    """exp(x) over its sum."""
    return mx.softmax(x, axis=axis)


@_compiled
def softmin(x, axis=-1):
    """softmax(-x)."""
    return mx.softmax(-x, axis=axis)


@_compiled
def elu(x, alpha=1.0):
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return mx.where(x > 0, x, alpha * (mx.exp(x) - 1))


@_compiled
def softplus(x):
    """log(1 + exp(x))."""
    return mx.logaddexp(x, 0)


@_compiled
def softsign(x):
    """x / (1 + |x|)."""
    return mx.divide(x, 1 + mx.abs(x))


@_compiled
def softshrink(x, lambd: float = 0.5):
    """x moved towards 0 by lambd; 0 where that goes beyond."""
    return mx.where(mx.abs(x) > lambd, x - mx.sign(x) * lambd, 0)


@_compiled
def celu(x, alpha=1.0):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    return mx.maximum(x, 0.0) + alpha * (mx.exp(mx.minimum(x, 0.0) / alpha) - 1)


@_compiled
def silu(x):
    """x * sigmoid(x)."""
    return x * mx.sigmoid(x)


@_compiled
def log_sigmoid(x):
    """-softplus(-x)."""
    return -softplus(-x)


@_compiled
def gelu(x) -> mx.array:
    """x * Phi(x), with the distribution function of the normal distribution."""
    return x * (1 + mx.erf(x / math.sqrt(2))) / 2


@_compiled
def gelu_approx(x):
    """gelu by way of tanh."""
    return 0.5 * x * (1 + mx.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@_compiled
def gelu_fast_approx(x):
    """x * sigmoid(1.702 * x)."""
    return x * mx.sigmoid(1.702 * x)


def glu(x: mx.array, axis: int = -1) -> mx.array:
    """The first half along an axis, times the sigmoid of the second."""
    a, b = mx.split(x, 2, axis=axis)
    return a * mx.sigmoid(b)


@_compiled
def step(x: mx.array, threshold: float = 0.0):
    """1 from the threshold on, 0 below."""
    return mx.where(x >= threshold, 1, 0)


@_compiled
def selu(x):
    """A scaled elu that keeps mean and variance."""
    return elu(x, 1.67326) * 1.0507


@_compiled
def prelu(x: mx.array, alpha: mx.array) -> mx.array:
    """max(x, 0) + alpha * min(x, 0)."""
    return mx.maximum(0, x) + alpha * mx.minimum(0, x)


@_compiled
def mish(x: mx.array) -> mx.array:
    """x * tanh(softplus(x))."""
    return x * mx.tanh(softplus(x))


@_compiled
def hardswish(x):
    """x * relu6(x + 3) / 6."""
    return x * mx.minimum(mx.maximum(x + 3, 0), 6) / 6


@_compiled
def hard_tanh(x, min_val=-1.0, max_val=1.0):
    """x between two limits."""
    return mx.minimum(mx.maximum(x, min_val), max_val)


@_compiled
def hard_shrink(x, lambd=0.5):
    """x beyond lambd, else 0."""
    return mx.where(mx.abs(x) > lambd, x, 0)


def tanh(x):
    """The hyperbolic tangent."""
    return mx.tanh(x)


def _module(name, function, **defaults):
    """The class of an activation, whose settings are the keyword arguments of the function."""
    def init(self, *args, **kwargs):
        Module.__init__(self)
        settings = {**defaults, **dict(zip(defaults, args)), **kwargs}
        if len(args) > len(defaults) or settings.keys() - defaults.keys():
            raise TypeError(f"{name}() takes the arguments {', '.join(defaults) or 'none'}")
        for key, value in settings.items():
            setattr(self, "_" + key, value)

    def call(self, x):
        return function(x, **{key: getattr(self, "_" + key) for key in defaults})

    return type(name, (Module,), {"__init__": init, "__call__": call, "__doc__": function.__doc__, "__module__": __name__})


Sigmoid = _module("Sigmoid", sigmoid)
ReLU = _module("ReLU", relu)
ReLU2 = _module("ReLU2", relu2)
ReLU6 = _module("ReLU6", relu6)
LeakyReLU = _module("LeakyReLU", leaky_relu, negative_slope=0.01)
ELU = _module("ELU", elu, alpha=1.0)
CELU = _module("CELU", celu, alpha=1.0)
SELU = _module("SELU", selu)
SiLU = _module("SiLU", silu)
Mish = _module("Mish", mish)
GLU = _module("GLU", glu, axis=-1)
Step = _module("Step", step, threshold=0.0)
Softmax = _module("Softmax", softmax)
Softmin = _module("Softmin", softmin)
LogSoftmax = _module("LogSoftmax", log_softmax)
LogSigmoid = _module("LogSigmoid", log_sigmoid)
Softplus = _module("Softplus", softplus)
Softsign = _module("Softsign", softsign)
Softshrink = _module("Softshrink", softshrink, lambd=0.5)
HardShrink = _module("HardShrink", hard_shrink, lambd=0.5)
HardTanh = _module("HardTanh", hard_tanh)
Hardswish = _module("Hardswish", hardswish)
Tanh = _module("Tanh", tanh)


class PReLU(Module):
    """prelu with learned slopes."""

    def __init__(self, num_parameters=1, init=0.25) -> None:
        super().__init__()
        self.weight = mx.full([num_parameters], init)

    def __call__(self, x: mx.array):
        return prelu(x, self.weight)


class GELU(Module):
    """gelu; with approx "precise" or "tanh" by way of tanh, with "fast" by way of the sigmoid."""

    def __init__(self, approx="none") -> None:
        super().__init__()
        functions = {"none": gelu, "precise": gelu_approx, "tanh": gelu_approx, "fast": gelu_fast_approx}
        if approx not in functions:
            raise ValueError(f"[GELU] approx must be one of {', '.join(functions)}, got {approx!r}")
        self._approx, self._act = approx, functions[approx]

    def __call__(self, x: mx.array) -> mx.array:
        return self._act(x)
