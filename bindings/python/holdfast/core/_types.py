"""Devices, categories of dtypes, limits, print options: types that need no C++."""

from __future__ import annotations

import enum

from holdfast._native import core as _core

__all__ = [
    "DeviceType", "cpu", "gpu", "DtypeCategory", "complexfloating", "floating", "inexact", "signedinteger",
    "unsignedinteger", "integer", "number", "generic", "issubdtype", "isdtype", "can_cast", "finfo", "iinfo",
    "PrintOptions", "set_printoptions", "get_printoptions", "printoptions", "export_to_dot",
]


class DeviceType(enum.Enum):
    """The kinds of devices."""

    cpu = 0
    gpu = 1

    def __eq__(self, other):
        if isinstance(other, _core.Device):
            return other == self
        return self is other

    __hash__ = enum.Enum.__hash__
    __repr__ = enum.Enum.__str__


cpu = DeviceType.cpu
gpu = DeviceType.gpu
_core._set_device_types(cpu, gpu)


class DtypeCategory(enum.Enum):
    """Kinds of dtypes, each a part of another: signed integers are integers, integers are numbers."""

    complexfloating = 0
    floating = 1
    inexact = 2
    signedinteger = 3
    unsignedinteger = 4
    integer = 5
    number = 6
    generic = 7

    __repr__ = enum.Enum.__str__


complexfloating = DtypeCategory.complexfloating
floating = DtypeCategory.floating
inexact = DtypeCategory.inexact
signedinteger = DtypeCategory.signedinteger
unsignedinteger = DtypeCategory.unsignedinteger
integer = DtypeCategory.integer
number = DtypeCategory.number
generic = DtypeCategory.generic


def issubdtype(arg1: Dtype | DtypeCategory, arg2: Dtype | DtypeCategory) -> bool:
    """Does a dtype or category belong to another?

    Args:
        arg1 (Dtype | DtypeCategory): the dtype or category
        arg2 (Dtype | DtypeCategory): what it may belong to

    Returns:
        bool: whether it does

    Example:

        >>> mx.issubdtype(mx.float32, mx.floating)
        True
        >>> mx.issubdtype(mx.signedinteger, mx.number)
        True
    """
    for argument in (arg1, arg2):
        if not isinstance(argument, (_core.Dtype, DtypeCategory)):
            raise ValueError(f"[issubdtype] expected a dtype or a category, got {type(argument).__name__}")
    if isinstance(arg1, _core.Dtype):
        if isinstance(arg2, _core.Dtype):
            return arg1 == arg2
        return _core._issubdtype(arg1, arg2.value)
    if isinstance(arg2, _core.Dtype):
        return False
    return _core._issubcategory(arg1.value, arg2.value)


_KINDS = {
    "bool": lambda dtype: dtype == _core.bool_,
    "signed integer": lambda dtype: issubdtype(dtype, signedinteger),
    "unsigned integer": lambda dtype: issubdtype(dtype, unsignedinteger),
    "integral": lambda dtype: issubdtype(dtype, integer),
    "real floating": lambda dtype: issubdtype(dtype, floating),
    "complex floating": lambda dtype: issubdtype(dtype, complexfloating),
    "numeric": lambda dtype: issubdtype(dtype, number),
}


def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool:
    """Is a dtype of a kind (a dtype, the name of a kind as in the array API standard, or a tuple of these)?

    Args:
        dtype (Dtype): the dtype
        kind (Dtype | str | tuple[Dtype | str, ...]): a dtype, "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric", or a tuple of these

    Returns:
        bool: whether it is

    Example:

        >>> mx.isdtype(mx.float32, "real floating")
        True
        >>> mx.isdtype(mx.float32, ("bool", mx.float32))
        True
    """
    if not isinstance(dtype, _core.Dtype):
        raise TypeError(f"[isdtype] expected a dtype, got {type(dtype).__name__}")
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, _core.Dtype):
        return dtype == kind
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"[isdtype] kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    return _KINDS[kind](dtype)


def can_cast(from_: array | Dtype, to: Dtype) -> bool:
    """Does converting to a dtype follow the rules of promotion?

    Args:
        from_ (array | Dtype): what is converted
        to (Dtype): the dtype that it becomes

    Returns:
        bool: whether it does

    Example:

        >>> mx.can_cast(mx.int32, mx.float32)
        True
        >>> mx.can_cast(mx.float32, mx.int32)
        False
    """
    source = from_.dtype if isinstance(from_, _core.array) else from_
    return _core.result_type(source, to) == to


class finfo:
    """The limits of a floating-point dtype.

    Example:

        >>> mx.finfo(mx.float16).max
        65504.0
    """

    dtype: Dtype
    bits: int
    min: float
    max: float
    eps: float
    smallest_normal: float

    def __init__(self, dtype: Dtype) -> None:
        self.bits, self.min, self.max, self.eps, self.smallest_normal = _core._finfo(dtype)
        # The parts of a complex number are what has limits.
        self.dtype = _core.float32 if dtype == _core.complex64 else dtype

    def __repr__(self):
        return f"finfo(min={self.min:g}, max={self.max:g}, dtype={_name(self.dtype)})"


class iinfo:
    """The limits of an integer dtype.

    Example:

        >>> mx.iinfo(mx.int8).max
        127
    """

    dtype: Dtype
    min: int
    max: int

    def __init__(self, dtype: Dtype) -> None:
        self.min, self.max = _core._iinfo(dtype)
        self.dtype = dtype

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={_name(self.dtype)})"


def _name(dtype):
    return repr(dtype).rpartition(".")[2]


class PrintOptions:
    """How arrays are printed; a precision of -1 means as many digits as std::ostream takes."""

    precision: int

    def __init__(self, precision: int = -1) -> None:
        self.precision = precision


_options = PrintOptions()


def set_printoptions(precision: int = -1) -> None:
    """Sets the digits that are printed behind the point.

    Args:
        precision (int): digits after the point; -1: as many as std::ostream takes

    Returns:
        None

    Example:

        >>> mx.set_printoptions(precision=-1)
    """
    _options.precision = precision
    _core._set_precision(precision)


def get_printoptions() -> PrintOptions:
    """How arrays are printed now.

    Returns:
        PrintOptions: a copy

    Example:

        >>> mx.get_printoptions().precision
        -1
    """
    return PrintOptions(_options.precision)


class _PrintOptionsContext:
    def __init__(self, options):
        self._options = options

    def __enter__(self):
        self._before = _options.precision
        set_printoptions(self._options.precision)
        return self

    def __exit__(self, *args):
        set_printoptions(self._before)


def printoptions(precision: int = -1) -> AbstractContextManager[object]:
    """Options for printing inside a with statement.

    Args:
        precision (int): digits after the point; -1: as many as std::ostream takes

    Returns:
        AbstractContextManager[object]: for a `with` statement

    Example:

        >>> mx.printoptions(precision=2).__enter__().__exit__()
    """
    return _PrintOptionsContext(PrintOptions(precision))


def export_to_dot(file: str | os.PathLike | IO[str], *args: object, **kwargs: array) -> None:
    """Writes the graph of arrays in the language of Graphviz, to a file name or a file object.

    Arrays given by keyword are shown by that name.

    Args:
        file (str | os.PathLike | IO[str]): the file
        args (Any): arrays, and trees of them
        kwargs (Any): arrays by the names to show

    Returns:
        None

    Example:

        >>> mx.export_to_dot(__import__("io").StringIO(), mx.ones(2) + 1)
    """
    _write(file, _core._graph_text(_arrays(args, kwargs), kwargs, True))


def _arrays(args, kwargs):
    return _core._tree_arrays(args) or _core._tree_arrays(kwargs)


def _write(file, text):
    if hasattr(file, "write"):
        file.write(text)
        return
    with open(file, "w") as out:
        out.write(text)


for _type in (DeviceType, DtypeCategory, finfo, iinfo, PrintOptions, _PrintOptionsContext):
    _type.__module__ = "holdfast.core"
