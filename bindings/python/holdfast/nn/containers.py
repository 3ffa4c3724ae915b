"""Modules that hold others."""

from __future__ import annotations

from holdfast.nn.module import Module


class Sequential(Module):
    """Calls its modules, or any functions, one after the other."""

    def __init__(self, *modules) -> None:
        super().__init__()
        self.layers = list(modules)

    def __call__(self, x: mx.array) -> mx.array:
        for layer in self.layers:
            x = layer(x)
        return x
