"""Initialisers: each makes a function that gives a new array in the shape of its argument."""

from __future__ import annotations

import math
from typing import Callable

import holdfast.core as mx


def _fans(a):
    if a.ndim < 2:
        raise ValueError(f"[init] expected an array with two dimensions or more, got {a.ndim}")
    field = math.prod(a.shape[1:-1])
    return a.shape[-1] * field, a.shape[0] * field


def _fan(a, mode):
    fan_in, fan_out = _fans(a)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"[init] mode must be fan_in or fan_out, got {mode!r}")
    return fan_in if mode == "fan_in" else fan_out


def constant(value: float, dtype: mx.Dtype = mx.float32) -> Callable[[mx.array], mx.array]:
    """The same value everywhere."""
    return lambda a: mx.full(a.shape, value, dtype=dtype)


def normal(mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32) -> Callable[[mx.array], mx.array]:
    """A normal distribution."""
    return lambda a: mx.random.normal(shape=a.shape, scale=std, loc=mean, dtype=dtype)


def uniform(low: float = 0.0, high: float = 1.0, dtype: mx.Dtype = mx.float32) -> Callable[[mx.array], mx.array]:
    """A uniform distribution."""
    return lambda a: mx.random.uniform(low, high, a.shape, dtype=dtype)


def identity(dtype: mx.Dtype = mx.float32) -> Callable[[mx.array], mx.array]:
    """The identity matrix."""
    def make(a):
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError(f"[identity] expected a square matrix, got shape {a.shape}")
        return mx.eye(a.shape[0], dtype=dtype)

    return make


def glorot_normal(dtype: mx.Dtype = mx.float32) -> Callable[[mx.array, float], mx.array]:
    """Normal with the variance 2 gain^2 / (fan_in + fan_out)."""
    return lambda a, gain=1.0: mx.random.normal(shape=a.shape, scale=gain * math.sqrt(2.0 / sum(_fans(a))), dtype=dtype)


def glorot_uniform(dtype: mx.Dtype = mx.float32) -> Callable[[mx.array, float], mx.array]:
    """Uniform with the variance 2 gain^2 / (fan_in + fan_out)."""
    def make(a, gain=1.0):
        bound = gain * math.sqrt(6.0 / sum(_fans(a)))
        return mx.random.uniform(-bound, bound, a.shape, dtype=dtype)

    return make


def he_normal(dtype: mx.Dtype = mx.float32) -> Callable[..., mx.array]:
    """Normal with the variance gain^2 / fan."""
    return lambda a, mode="fan_in", gain=1.0: mx.random.normal(shape=a.shape, scale=gain / math.sqrt(_fan(a, mode)), dtype=dtype)


def he_uniform(dtype: mx.Dtype = mx.float32) -> Callable[..., mx.array]:
    """Uniform with the variance gain^2 / fan."""
    def make(a, mode="fan_in", gain=1.0):
        bound = gain * math.sqrt(3.0 / _fan(a, mode))
        return mx.random.uniform(-bound, bound, a.shape, dtype=dtype)

    return make


def sparse(sparsity: float, mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32) -> Callable[[mx.array], mx.array]:
    """Normal, with a part `sparsity` of each column zero."""
    def make(a):
        if a.ndim != 2:
            raise ValueError(f"[sparse] expected a matrix, got shape {a.shape}")
        rows, columns = a.shape
        zeros = math.ceil(sparsity * rows)
        order = mx.argsort(mx.random.uniform(shape=a.shape), axis=0)
        values = mx.random.normal(shape=a.shape, scale=std, loc=mean, dtype=dtype)
        return mx.where(order < zeros, mx.array(0, dtype), values)

    return make


def orthogonal(gain: float = 1.0, dtype: mx.Dtype = mx.float32) -> Callable[[mx.array], mx.array]:
    """A matrix with orthogonal rows or columns, times gain."""
    def make(a):
        if a.ndim != 2:
            raise ValueError(f"[orthogonal] expected a matrix, got shape {a.shape}")
        rows, columns = a.shape
        size = max(rows, columns)
        q, r = mx.linalg.qr(mx.random.normal((size, size)), stream=mx.cpu)
        return (gain * (q * mx.sign(mx.diag(r)))[:rows, :columns]).astype(dtype)

    return make
