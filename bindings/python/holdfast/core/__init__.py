"""The names of ``mlx.core``: arrays, ops, transforms, devices, files."""

import atexit as _atexit
import sys as _sys

from holdfast import _native

# The functions and types of the extension. Names with an underscore are for this package.
globals().update({name: value for name, value in vars(_native.core).items() if not name.startswith("__")})
_sys.modules["holdfast._core"] = _native.core

from holdfast.core._types import *  # noqa: E402,F401,F403  (devices must be known to the extension first)
from holdfast.core._types import _PrintOptionsContext  # noqa: E402,F401
from holdfast.core._files import *  # noqa: E402,F401,F403
from holdfast.core._transforms import *  # noqa: E402,F401,F403
from holdfast.core import _modules, _protocols  # noqa: E402,F401
from holdfast.core._modules import cuda, distributed, fast, fft, linalg, metal, random  # noqa: E402,F401
from holdfast.core._protocols import ArrayLike, asarray, from_dlpack  # noqa: E402,F401

matrix_norm = linalg.norm

# Our own; under the name of mlx.core, that of MLX's interface (holdfast/mlx.py).
__version__ = _native.core._version()

pi = 3.141592653589793
e = 2.718281828459045
euler_gamma = 0.5772156649015329
inf = float("inf")
nan = float("nan")
newaxis = None


@_atexit.register
def _report_unhandled():
    """Where an error of a command ends the script, what ran before it is written to a file (docs/capture.md)."""
    error = None if hasattr(_sys, "ps1") else getattr(_sys, "last_value", None)
    for _ in range(16):  # what it was raised from; a chain may be a ring
        if isinstance(error, RuntimeError):
            _native.validation._write_unhandled(str(error))
        error = error and (error.__cause__ or error.__context__)
