"""A program as users write them, for type checkers: tests/python/test_typing.py. What transforms give keeps the types of the function."""

from collections.abc import Callable
from typing import Any, assert_type

import holdfast.core as mx
import holdfast.nn as nn
import holdfast.optimizers as optim
from holdfast.utils import tree_flatten


def loss(w: mx.array, x: mx.array, scale: float = 1.0) -> mx.array:
    return mx.mean(mx.square(x @ w)) * scale


def parts(x: mx.array) -> tuple[mx.array, mx.array]:
    return mx.sin(x), mx.cos(x)


w, x = mx.ones((3, 2)), mx.random.normal((4, 3), key=mx.random.key(0))

assert_type(mx.value_and_grad(loss)(w, x, scale=2.0), tuple[mx.array, Any])
assert_type(mx.compile(parts)(x), tuple[mx.array, mx.array])
assert_type(mx.compile(loss, shapeless=True)(w, x), mx.array)
assert_type(mx.vmap(parts, in_axes=1)(x), tuple[mx.array, mx.array])
assert_type(mx.checkpoint(loss)(w, x), mx.array)
assert_type(mx.vjp(lambda a: mx.exp(a), [x], [x]), tuple[list[mx.array], list[mx.array]])
assert_type(mx.jvp(lambda a: mx.exp(a), [x], [x])[1], list[mx.array])
gradient: mx.array = mx.grad(loss)(w, x)


@mx.compile
def step(x: mx.array) -> mx.array:
    return mx.maximum(x, 0) + 1


@mx.custom_function
def doubled(x: mx.array) -> mx.array:
    return 2 * x


@doubled.vjp
def of_doubled(primals: mx.array, cotangents: mx.array, outputs: mx.array) -> mx.array:
    return 2 * cotangents


assert_type(step(x), mx.array)
assert_type(doubled(x), mx.array)

assert_type(x.shape, tuple[int, ...])
assert_type(x.dtype, mx.Dtype)
assert_type(x.ndim, int)
assert_type(x[0, 1:], mx.array)
assert_type(x + 1, mx.array)
assert_type(2.0 / x, mx.array)
assert_type(x.T, mx.array)
assert_type(x == 1, mx.array)
assert_type(x.at[0].add(1), mx.array)
assert_type(float(x.sum()), float)
assert_type(mx.finfo(mx.float32).max, float)
assert_type(mx.split(x, 2), list[mx.array])
assert_type(mx.linalg.qr(x, stream=mx.cpu), tuple[mx.array, mx.array])
assert_type(mx.default_stream(mx.cpu), mx.Stream)
x[0] = 1.0
x += 1
for row in x:
    assert_type(row, mx.array)

kernel = mx.fast.metal_kernel("k", ["x"], ["y"], "y[0] = x[0];")


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = [nn.Linear(width, width), nn.Linear(width, 1)]

    def __call__(self, x: mx.array) -> mx.array:
        for layer in self.layers:
            x = nn.relu(layer(x))
        return x


assert_type(nn.MaxPool2d(2)(nn.Conv2d(3, 8, kernel_size=3, padding=(1, 1))(mx.ones((1, 8, 8, 3)))), mx.array)
assert_type(nn.losses.cross_entropy(x, mx.array([0, 1, 2, 0])), mx.array)
model, optimizer = Model(3), optim.AdamW(learning_rate=1e-3)


def of_model(model: Model, x: mx.array) -> mx.array:
    return nn.losses.mse_loss(model(x), mx.zeros((4, 1)), reduction="mean")


both: Callable[..., Any] = nn.value_and_grad(model, of_model)
value, gradients = both(model, x)
optimizer.update(model, gradients)
mx.eval(model.parameters(), optimizer.state)
names = [name for name, _ in tree_flatten(model.parameters())]
