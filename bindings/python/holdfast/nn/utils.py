"""Gradients of models, and what distributed programs ask."""

from __future__ import annotations

from typing import Any, Callable

import holdfast.core as mx
from holdfast.nn.module import Module
from holdfast.nn.transformer import _checkpointed


def value_and_grad(model: Module, fn: Callable) -> Callable:
    """As mx.value_and_grad, by the trainable parameters of a model.

    Args:
        model (Module): what `fn` uses
        fn (Callable): returns a scalar array, or a tuple that begins with one

    Returns:
        Callable: takes the arguments of `fn`; gives its value, and the gradient as nested dicts
    """
    def inner(parameters, *args, **kwargs):
        model.update(parameters)
        return fn(*args, **kwargs)

    both = mx.value_and_grad(inner)

    def call(*args, **kwargs):
        parameters = model.trainable_parameters()
        try:
            return both(parameters, *args, **kwargs)
        finally:
            # The model has its own arrays again, and none of the trace.
            model.update(parameters)

    return call


def checkpoint(module: Module, fn: Callable | None = None) -> Callable:
    """`fn`, or the module, whose insides are computed again for the gradient.

    Args:
        module (Module): what `fn` uses
        fn (Callable | None): None: the module itself

    Returns:
        Callable: computes the same
    """
    return _checkpointed(module, fn)


def average_gradients(gradients: Any, group: Any = None, all_reduce_size: int = 32 * 1024**2, communication_type: Any = None,
                      communication_stream: Any = None) -> Any:
    """The mean of the gradients of all processes: of a group of one, the gradients."""
    size = mx.distributed.init().size() if group is None else group.size()
    if size != 1:
        raise ValueError(f"[average_gradients] a group of {size} processes is not supported")
    return gradients


def fsdp_apply_gradients(*args: Any, **kwargs: Any) -> Any:
    """For groups of processes, of which there are none here."""
    raise ValueError("[fsdp_apply_gradients] groups of several processes are not supported")
