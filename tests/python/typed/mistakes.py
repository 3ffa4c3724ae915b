"""Calls that type checkers must refuse, each in a line that ends with `# refused`."""

import holdfast.core as mx
import holdfast.nn as nn
import holdfast.optimizers as optim

x = mx.ones((2, 2))


def plus(x: mx.array) -> mx.array:
    return x + 1


mx.add(x, "1")  # refused
mx.compile(plus)(3, 4)  # refused
mx.compile(plus)(x).no_such_method()  # refused
mx.vmap(plus)("x")  # refused
mx.reshape(x, "a")  # refused
mx.grad(lambda: 3)  # refused
x + "1"  # refused
x.astype("float32")  # refused
mx.sum(x, axis="0")  # refused
mx.value_and_grad(plus)(x, x)  # refused
nn.Linear("3", 2)  # refused
nn.Conv1d(3, 2, kernel_size="3")  # refused
optim.SGD(learning_rate="fast")  # refused
