"""What arrays share with other packages: NumPy, DLPack, pickle, copy, format."""

from __future__ import annotations

import sys

from holdfast._native import core as _core

__all__ = ["ArrayLike", "asarray", "from_dlpack"]

_array = _core.array


class ArrayLike:
    """An object with ``__mlx_array__``, which gives an array."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __mlx_array__(self):
        return self._value if isinstance(self._value, _array) else self._value.__mlx_array__()


def asarray(a: _Operand | Sequence[Any], dtype: Dtype | None = None, *, copy: bool | None = None) -> array:
    """An array of anything that ``array`` takes, sharing memory with a buffer where it can.

    NumPy arrays that are contiguous and of the right dtype are shared, unless `copy` is True; with `copy` False
    everything else is an error. The array must not be changed by others while it is shared.

    Args:
        a (Any): an array, a scalar, nested lists, or an object with a buffer
        dtype (Dtype | None): the dtype of the result; None: inferred
        copy (bool | None): True: always copy; False: never; None: where it must be

    Returns:
        array: shares memory with `a` unless it was copied

    Example:

        >>> mx.asarray([1, 2, 3])
        array([1, 2, 3], dtype=int32)
        >>> mx.asarray(2.5, mx.float16)
        array(2.5, dtype=float16)
    """
    if isinstance(a, _array):
        made = a if dtype is None or dtype == a.dtype else a.astype(dtype)
        if copy is False and made is not a:
            raise ValueError("[asarray] another dtype needs a copy")
        return _array(made) + 0 if copy and made is a else made
    if copy is not True:
        shared = _core._share(a, dtype)
        if shared is not None:
            return shared
        if copy is False:
            raise ValueError(f"[asarray] a {type(a).__name__} cannot be shared without a copy")
    return _array(a, dtype)


def from_dlpack(x: _HasDlpack, /, *, copy: bool | None = None) -> array:
    """An array that shares the memory of another framework's, or of a capsule.

    Args:
        x (Any): an object with __dlpack__
        copy (bool | None): True: copy the elements

    Returns:
        array: shares memory with `x` unless it was copied

    Example:

        >>> mx.from_dlpack(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"[from_dlpack] expected an object with __dlpack__, got {type(x).__name__}")
    try:
        capsule = x.__dlpack__()
    except BufferError:
        # Read-only arrays of NumPy's are not handed out so; their buffer is.
        shared = None if copy else _core._share(x, None)
        return _array(x) if shared is None else shared
    shared = _core._from_dlpack(capsule)
    return _core.contiguous(shared) + 0 if copy else shared


def _to_numpy(self, dtype=None, copy=None):
    import numpy

    if self.dtype == _core.bfloat16:
        try:
            import ml_dtypes

            made = numpy.asarray(self.view(_core.uint16)).view(ml_dtypes.bfloat16)
        except ImportError:
            made = numpy.asarray(self.astype(_core.float32))
    else:
        made = numpy.asarray(memoryview(self))
    if dtype is not None and made.dtype != dtype:
        return made.astype(dtype)
    return made.copy() if copy else made


def _rebuild(data, shape, dtype):
    if dtype == _core.bfloat16:
        return _core.view(_rebuild(data, shape, _core.uint16), dtype)
    if not data:
        return _core.zeros(shape, dtype)
    return _core.view(_array(data), dtype).reshape(shape)


def _format(self, spec):
    """A single number as Python formats it; other arrays as they are printed."""
    if self.ndim == 0:
        return format(self.item(), spec)
    if spec:
        raise TypeError("unsupported format string for an array that has dimensions")
    return str(self)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError("[dlpack] arrays are in the memory of the host")
    return (self + 0)._dlpack() if copy else self._dlpack()


ArrayLike.__module__ = "holdfast.core"

# Methods that are easier in Python than in C++.
_array.__array__ = _to_numpy
_array.__array_namespace__ = lambda self, api_version=None: sys.modules["holdfast.core"]
_array.__bytes__ = _array._bytes
_array.__complex__ = lambda self: complex(self.item())
_array.__copy__ = lambda self: +self
_array.__deepcopy__ = lambda self, memo: +self
_array.__dlpack__ = _dlpack
_array.__dlpack_device__ = lambda self: (1, 0)
_array.__format__ = _format
_array.__reduce__ = lambda self: (_rebuild, (self._bytes(), self.shape, self.dtype))
