"""Every public name of holdfast.core, and the examples in their docstrings."""

import inspect
import types

import holdfast.core as mx

MODULES = ["random", "linalg", "fft", "fast", "metal", "cuda", "distributed"]


def names():
    """(dotted name, object) of everything public, methods of arrays too."""
    found = [(name, value) for name, value in vars(mx).items() if not name.startswith("_")]
    for module in MODULES:
        found += [(f"{module}.{name}", value) for name, value in vars(getattr(mx, module)).items()
                  if not name.startswith("_")]
    for kind in ("array", "ArrayAt"):
        found += [(f"{kind}.{name}", value) for name, value in vars(getattr(mx, kind)).items()
                  if not name.startswith("_")]
    return [(name, value) for name, value in found
            if not isinstance(value, types.ModuleType) and value is not types]


def examples():
    """(dotted name, expression) of each example."""
    return [(name, line.strip()[4:]) for name, value in names() if callable(value)
            for line in (inspect.getdoc(value) or "").splitlines() if line.strip().startswith(">>> ")]
