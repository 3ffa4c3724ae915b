"""Transforms of functions over trees: nested lists, tuples, dicts and namespaces with arrays as leaves."""

from __future__ import annotations

import copy
import functools
import itertools
import weakref

from holdfast._native import core as _core

__all__ = [
    "grad", "value_and_grad", "vjp", "jvp", "vmap", "compile", "checkpoint", "custom_function", "export_function",
    "exporter", "import_function", "FunctionExporter",
]

_array = _core.array
_flatten = _core._tree_flatten
_unflatten = _core._tree_unflatten
_arrays = _core._tree_arrays
_is_namespace = _core._is_namespace


@functools.cache
def _mark():
    """What stands for an array in a structure."""
    return _flatten(_core.zeros(()))[1]


def _attributes(node):
    """What an object has beside its items. Not by getattr, which a class of dicts may answer with its items."""
    try:
        return object.__getattribute__(node, "__dict__")
    except AttributeError:
        return {}


def _remake(node, items):
    """A container of the class of `node`, with the attributes that it has beside its items, and these items."""
    if isinstance(node, tuple):
        try:
            made = tuple.__new__(type(node), items)
        except TypeError:
            return items  # a structseq, such as time.struct_time
        _attributes(made).update(_attributes(node))
        return made
    try:
        made = copy.copy(node)
    except Exception:
        # `__getattr__ = dict.__getitem__` answers the questions of the copy protocol with a KeyError.
        made = (list if isinstance(node, list) else dict if isinstance(node, dict) else object).__new__(type(node))
        _attributes(made).update(_attributes(node))
    if isinstance(node, list):
        list.__setitem__(made, slice(None), items)
    elif isinstance(node, dict):
        for key, item in items.items():
            # One that is there is replaced without asking the class again.
            (dict.__setitem__ if dict.__contains__(made, key) else type(made).__setitem__)(made, key, item)
    else:
        vars(made).update(items)
    return made


_core._set_remake(_remake)


def _items_of(tree):
    """The items of a dict or a namespace, as a dict; None for everything else."""
    return tree if isinstance(tree, dict) else vars(tree) if _is_namespace(tree) else None


def _mapped(tree, change):
    """The tree with `change` applied to its leaves."""
    if isinstance(tree, (list, tuple)):
        made = [_mapped(item, change) for item in tree]
        made = made if isinstance(tree, list) else tuple(made)
    elif (items := _items_of(tree)) is not None:
        made = {key: _mapped(item, change) for key, item in items.items()}
    else:
        return change(tree)
    return made if type(made) is type(tree) else _remake(tree, made)


def _check_callable(name, fun):
    if not callable(fun):
        raise TypeError(f"[{name}] expected a function, got {type(fun).__name__}")


def _check_only_arrays(name, tree):
    if isinstance(tree, (list, tuple)):
        for item in tree:
            _check_only_arrays(name, item)
    elif (items := _items_of(tree)) is not None:
        for item in items.values():
            _check_only_arrays(name, item)
    elif not isinstance(tree, _array):
        raise ValueError(f"[{name}] expected arrays and trees of arrays, got {type(tree).__name__}")


def _named(fun, made):
    """`made` with the name and the documentation of the function it was made of."""
    try:
        return functools.wraps(fun)(made)
    except (AttributeError, TypeError):
        return made


# --- derivatives ---


def _places(name, argnums, argnames):
    argnames = [argnames] if isinstance(argnames, str) else list(argnames)
    if argnums is None:
        argnums = [] if argnames else [0]
    elif isinstance(argnums, int):
        argnums = [argnums]
    elif isinstance(argnums, (list, tuple)):
        argnums = list(argnums)
    else:
        raise TypeError(f"[{name}] argnums must be an int or a sequence of ints, got {type(argnums).__name__}")
    if not argnums and not argnames:
        raise ValueError(f"[{name}] expected an argument to differentiate by")
    for number in argnums:
        if not isinstance(number, int):
            raise TypeError(f"[{name}] argnums must be ints, got {type(number).__name__}")
        if number < 0:
            raise ValueError(f"[{name}] argnums must not be negative, got {number}")
    if len(set(argnums)) != len(argnums):
        raise ValueError(f"[{name}] argnums must be distinct, got {argnums}")
    if len(set(argnames)) != len(argnames):
        raise ValueError(f"[{name}] argnames must be distinct, got {argnames}")
    return argnums, argnames


def _make_value_and_grad(name, fun, argnums, argnames, only_scalar):
    _check_callable(name, fun)
    numbers, names = _places(name, argnums, argnames)

    def call(*args, **kwargs):
        for number in numbers:
            if number >= len(args):
                raise ValueError(
                    f"[{name}] cannot differentiate by argument {number}: there are {len(args)} positional arguments")
        for key in names:
            if key not in kwargs:
                raise ValueError(f"[{name}] cannot differentiate by {key!r}: the keywords are {sorted(kwargs)}")
        chosen = ([args[number] for number in numbers], {key: kwargs[key] for key in names})
        _check_only_arrays(name, chosen)
        inputs, structure = _flatten(chosen)
        # Of the rest, too, the function gets arrays and plain containers of its own, so that it may update them. A
        # module is itself: what the function looks up in it must be what a caller put there.
        rest = ([arg for number, arg in enumerate(args) if number not in numbers],
                {key: value for key, value in kwargs.items() if key not in names})
        rest_inputs, rest_structure = _flatten(rest, True)
        result_structure = None

        def traced(arrays):
            nonlocal result_structure
            given = positional, named = _unflatten(structure, arrays)
            rest_given = others, others_named = _unflatten(rest_structure, rest_inputs, True)
            all_args = list(others)
            for number, value in sorted(zip(numbers, positional)):
                all_args.insert(number, value)
            result = fun(*all_args, **others_named, **named)
            _core._tree_give_back(chosen, given, structure, arrays)
            _core._tree_give_back(rest, rest_given, rest_structure, rest_inputs, True)
            if only_scalar and not isinstance(result, _array):
                raise ValueError(f"[{name}] the function must return a scalar array, got {type(result).__name__}")
            first = result[0] if isinstance(result, tuple) and result else result
            if not isinstance(first, _array):
                raise ValueError(f"[{name}] the function must return a scalar array, or a tuple whose first item is "
                                 f"one, got {type(result).__name__}")
            outputs, result_structure = _flatten(result)
            return outputs

        outputs, gradients = _core._value_and_grad(traced, inputs, range(len(inputs)))
        positional, named = _unflatten(structure, gradients)
        positional = positional[0] if len(positional) == 1 else tuple(positional) if positional else None
        return _unflatten(result_structure, outputs), (positional, named) if names else positional

    return _named(fun, call)


def value_and_grad(fun: Callable[P, R], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()) -> Callable[P, tuple[R, Any]]:
    """A function that returns the value of `fun` and its gradient by some arguments.

    `fun` returns a scalar array, or a tuple that begins with one. Arguments may be trees; the gradient has the same
    form.

    Args:
        fun (Callable[..., Any]): the function; the scalar is what is differentiated
        argnums (int | Sequence[int] | None): the positional arguments to differentiate by; None: the first, or none where `argnames` are given
        argnames (str | Sequence[str]): the keyword arguments to differentiate by

    Returns:
        Callable[..., tuple[Any, Any]]: takes the arguments of `fun`; gives what it returned, and the gradient: a tree like the argument, or a tuple of these

    Example:

        >>> mx.value_and_grad(lambda x: (x * x).sum())(mx.array([1.0, 2.0]))
        (array(5, dtype=float32), array([2, 4], dtype=float32))
        >>> mx.value_and_grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))
        (array(11, dtype=float32), (array([3, 4], dtype=float32), array([1, 2], dtype=float32)))
    """
    return _make_value_and_grad("value_and_grad", fun, argnums, argnames, False)


def grad(fun: Callable[P, array], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()) -> Callable[P, Any]:
    """A function that returns the gradient of `fun`, which returns a scalar array.

    Args:
        fun (Callable[..., array]): the function
        argnums (int | Sequence[int] | None): the positional arguments to differentiate by; None: the first, or none where `argnames` are given
        argnames (str | Sequence[str]): the keyword arguments to differentiate by

    Returns:
        Callable[..., Any]: takes the arguments of `fun`; gives a tree like the argument, or a tuple of these

    Example:

        >>> mx.grad(lambda x: (x * x).sum())(mx.array([1.0, 2.0]))
        array([2, 4], dtype=float32)
        >>> mx.grad(lambda p: (p["w"] * p["w"]).sum())({"w": mx.array([1.0, 2.0])})
        {'w': array([2, 4], dtype=float32)}
    """
    both = _make_value_and_grad("grad", fun, argnums, argnames, True)
    return _named(fun, lambda *args, **kwargs: both(*args, **kwargs)[1])


def _as_list(result):
    if isinstance(result, _array):
        return [result]
    if isinstance(result, (list, tuple)):
        return list(result)
    raise ValueError(f"expected a function that returns arrays, got {type(result).__name__}")


def vjp(fun: Callable[..., array | Sequence[array]], primals: Sequence[array], cotangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """The outputs of `fun`, and the cotangents of its inputs.

    Args:
        fun (Callable[..., array | Sequence[array]]): the function
        primals (Sequence[array]): its arguments
        cotangents (Sequence[array]): one for each output, of its shape

    Returns:
        tuple[list[array], list[array]]: the outputs, and a cotangent for each argument

    Example:

        >>> mx.vjp(lambda x: x * x, [mx.array([1.0, 2.0])], [mx.array([1.0, 1.0])])
        ([array([1, 4], dtype=float32)], [array([2, 4], dtype=float32)])
    """
    _check_callable("vjp", fun)
    return tuple(_core._vjp(lambda arrays: _as_list(fun(*arrays)), primals, cotangents))


def jvp(fun: Callable[..., array | Sequence[array]], primals: Sequence[array], tangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """The outputs of `fun`, and their tangents.

    Args:
        fun (Callable[..., array | Sequence[array]]): the function
        primals (Sequence[array]): its arguments
        tangents (Sequence[array]): one for each argument, of its shape

    Returns:
        tuple[list[array], list[array]]: the outputs, and a tangent for each

    Example:

        >>> mx.jvp(lambda x: x * x, [mx.array([1.0, 2.0])], [mx.array([1.0, 1.0])])
        ([array([1, 4], dtype=float32)], [array([2, 4], dtype=float32)])
    """
    _check_callable("jvp", fun)
    return tuple(_core._jvp(lambda arrays: _as_list(fun(*arrays)), primals, tangents))


# --- mapping ---


def _axes_of(axes, tree):
    """One axis for each array of a tree; None means that it has none, and is -1 here."""
    if axes is None or isinstance(axes, int):
        return [(-1, False) if axes is None else (axes, True)] * len(_arrays(tree))
    if isinstance(axes, (list, tuple)) and isinstance(tree, (list, tuple)) and len(axes) == len(tree):
        return [axis for part, item in zip(axes, tree) for axis in _axes_of(part, item)]
    parts, items = _items_of(axes), _items_of(tree)
    if parts is not None and items is not None and parts.keys() == items.keys():
        return [axis for key, item in items.items() for axis in _axes_of(parts[key], item)]
    raise ValueError(f"[vmap] axes {axes!r} do not fit a {type(tree).__name__} of arrays")


def _resolved(axes, arrays, extra):
    """Axes from 0 on; -1 for arrays without one."""
    places = []
    for (axis, mapped), value in zip(axes, arrays):
        ndim = value.ndim + extra
        if mapped and not -ndim <= axis < ndim:
            raise IndexError(f"[vmap] axis {axis} is out of range for an array of {ndim} dimensions")
        places.append(axis % ndim if mapped else -1)
    return places


def _check_axes(which, axes, may_be_none=False):
    """Axes are ints and None, in trees; the whole is not None."""
    if isinstance(axes, (list, tuple)):
        for item in axes:
            _check_axes(which, item, True)
    elif (items := _items_of(axes)) is not None:
        for item in items.values():
            _check_axes(which, item, True)
    elif axes is None and not may_be_none:
        raise TypeError(f"[vmap] {which} must be an int or a tree of ints and None, got None")
    elif axes is not None and (not isinstance(axes, int) or isinstance(axes, bool)):
        raise ValueError(f"[vmap] {which} must be an int or a tree of ints and None, got {type(axes).__name__}")


def vmap(fun: Callable[P, R], in_axes: object = 0, out_axes: object = 0) -> Callable[P, R]:
    """A function that calls `fun` for each slice of its arguments along an axis, all at once.

    `in_axes` and `out_axes` are ints, None (not mapped), or trees of these.

    Args:
        fun (Callable[..., Any]): the function, of one slice
        in_axes (Any): the axis of each argument: an int, None (not mapped), or a tree of these
        out_axes (Any): where the axis is in each output: an int, or a tree of these

    Returns:
        Callable[..., Any]: takes and gives arrays with the axis

    Example:

        >>> mx.vmap(lambda x, y: x @ y)(mx.ones((2, 3)), mx.ones((2, 3)))
        array([3, 3], dtype=float32)
        >>> mx.vmap(lambda x, y: x + y, in_axes=(0, None), out_axes=1)(mx.ones((2, 3)), mx.ones(3))
        array([[2, 2],
               [2, 2],
               [2, 2]], dtype=float32)
    """
    _check_callable("vmap", fun)
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)

    def call(*args):
        _check_only_arrays("vmap", args)
        inputs, structure = _flatten(args)
        axes = in_axes
        if len(args) == 1 and not isinstance(axes, (int, type(None))) and not (
                isinstance(axes, (list, tuple)) and len(axes) == 1):
            axes = (axes,)
        places = _resolved(_axes_of(axes, args), inputs, 0)
        if all(place == -1 for place in places):
            raise ValueError("[vmap] at least one argument must have an axis to map over")
        result_structure = result = None

        def traced(arrays):
            nonlocal result_structure, result
            result = fun(*_unflatten(structure, arrays))
            _check_only_arrays("vmap", result)
            outputs, result_structure = _flatten(result)
            return outputs

        traced_inputs, traced_outputs = _core._vmap_trace(traced, inputs, places)
        out_places = _resolved(_axes_of(out_axes, result), traced_outputs, 1)
        result = None
        if -1 in out_places:
            raise ValueError("[vmap] every output must have an axis")
        outputs = _core._vmap_replace(inputs, traced_inputs, traced_outputs, places, out_places)
        return _unflatten(result_structure, outputs)

    return _named(fun, call)


# --- functions with rules of their own ---


class custom_function:
    """A function whose transforms are given by rules, with the decorators vjp, jvp and vmap.

    The rules see arguments as the function does: one argument by itself, several as a tuple.
    vjp(primals, cotangents, outputs), jvp(primals, tangents), vmap(inputs, axes).

    Example:

        >>> mx.custom_function(lambda x: x * 2)(mx.array([1.0, 2.0]))
        array([2, 4], dtype=float32)
    """

    def __init__(self, f: Callable[P, R]) -> None:
        _check_callable("custom_function", f)
        self._fun = f
        self._vjp = self._jvp = self._vmap = None
        functools.update_wrapper(self, f, updated=())

    def vjp(self, f: _Rule) -> custom_function[P, R]:
        """Sets the rule for vector-Jacobian products."""
        self._vjp = f
        return self

    def jvp(self, f: _Rule) -> custom_function[P, R]:
        """Sets the rule for Jacobian-vector products."""
        self._jvp = f
        return self

    def vmap(self, f: _Rule) -> custom_function[P, R]:
        """Sets the rule for vmap."""
        self._vmap = f
        return self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._vjp is None and self._jvp is None and self._vmap is None:
            return self._fun(*args, **kwargs)
        inputs, structure = _flatten((args, kwargs))
        state = {}

        def run(arrays):
            call_args, call_kwargs = _unflatten(structure, arrays)
            outputs, state["result"] = _flatten(self._fun(*call_args, **call_kwargs))
            return outputs

        def primals_of(arrays):
            call_args = _unflatten(structure, arrays)[0]
            return call_args[0] if len(call_args) == 1 else call_args

        def result_of(arrays):
            return _unflatten(state["result"], arrays)

        def run_vjp(primals, cotangents, outputs):
            given = self._vjp(primals_of(primals), result_of(cotangents), result_of(outputs))
            return self._fitted("vjp", _arrays(given), primals, structure)

        def run_jvp(primals, tangents, numbers):
            call_args = list(_unflatten(structure, primals)[0])
            known = dict(zip(numbers, tangents))
            # Arguments that are arrays: the tangent, or None; trees keep their form.
            counter = itertools.count()
            each = [_with_tangents(arg, known, counter) for arg in call_args]
            given = self._jvp(primals_of(primals), each[0] if len(each) == 1 else tuple(each))
            return _arrays(given)

        def run_vmap(arrays, axes):
            places = iter(axes)
            each = [_with_axes(arg, places) for arg in _unflatten(structure, arrays)[0]]
            outputs, out_axes = self._vmap(primals_of(arrays), each[0] if len(each) == 1 else tuple(each))
            values, state["result"] = _flatten(outputs)
            flat_axes = [axis if mapped else -1 for axis, mapped in _axes_of(out_axes, outputs)]
            return values, flat_axes

        outputs = _core._custom_function(
            run, run_vjp if self._vjp else None, run_jvp if self._jvp else None, run_vmap if self._vmap else None, inputs)
        return _unflatten(state["result"], outputs)

    @staticmethod
    def _fitted(rule, given, primals, structure):
        """One cotangent for each array; keyword arguments, which rules do not see, have none."""
        positional = len(_arrays(_unflatten(structure, primals)[0]))
        if len(given) != positional:
            raise ValueError(f"[custom_function] the {rule} rule must return {positional} arrays, got {len(given)}")
        return given + [_core.zeros_like(value) for value in primals[positional:]]


def _with_tangents(tree, known, counter):
    return _mapped(tree, lambda leaf: known.get(next(counter)) if isinstance(leaf, _array) else leaf)


def _with_axes(tree, places):
    def axis_of(leaf):
        if not isinstance(leaf, _array):
            return leaf
        place = next(places)
        return None if place < 0 else place

    return _mapped(tree, axis_of)


def checkpoint(fun: Callable[P, R]) -> Callable[P, R]:
    """`fun`, of which nothing but inputs and outputs is kept for the gradient: the rest is computed again.

    Args:
        fun (Callable[..., Any]): the function

    Returns:
        Callable[..., Any]: computes the same; its gradient needs less memory and more time

    Example:

        >>> mx.checkpoint(lambda x: mx.exp(mx.sin(x)))(mx.array([1.0, 2.0]))
        array([2.31978, 2.48258], dtype=float32)
    """
    _check_callable("checkpoint", fun)

    def call(*args, **kwargs):
        inputs, structure = _flatten((args, kwargs))
        result_structure = None

        def run(arrays):
            nonlocal result_structure
            call_args, call_kwargs = _unflatten(structure, arrays)
            outputs, result_structure = _flatten(fun(*call_args, **call_kwargs))
            return outputs

        outputs = _core._checkpoint(run, inputs)
        return _unflatten(result_structure, outputs)

    return _named(fun, call)


# --- compilation ---

_numbers = itertools.count(1)


class _Trace:
    """Lives as long as a trace in the library."""


class _Compiled:
    """A compiled function. Its traces are dropped with it."""

    def __init__(self, fun, inputs, outputs, shapeless):
        self._fun = fun
        self._inputs = inputs
        self._outputs = outputs
        self._shapeless = shapeless
        # Never that of another function: the library keeps traces by number.
        self._id = next(_numbers) | 1 << 62
        # What each trace returned beside arrays, which may refer back to this object: the library keeps the keys only.
        self._results = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, fun, updated=())

    def __del__(self):
        _core._forget_compiled(self._id)

    def __call__(self, *args, **kwargs):
        inputs, structure = _flatten((args, kwargs))
        if self._inputs is not None:
            inputs = inputs + _arrays(self._inputs)
        constants = []
        _add_constants(structure, constants)
        results, trace = _core._call_compiled(
            functools.partial(self._traced, structure), self._id, self._shapeless, constants, inputs)
        result_structure, count = self._results[trace]
        if self._outputs is not None:
            _core._tree_replace(self._outputs, results[count:])
        return _unflatten(result_structure, results[:count])

    def _traced(self, structure, arrays):
        state_before = None
        if self._inputs is not None:
            state_before = _arrays(self._inputs)
            given = len(arrays) - len(state_before)
            _core._tree_replace(self._inputs, arrays[given:])
            arrays = arrays[:given]
        try:
            args, kwargs = _unflatten(structure, arrays)
            outputs, result_structure = _flatten(self._fun(*args, **kwargs))
            count = len(outputs)
            if self._outputs is not None:
                outputs = outputs + _arrays(self._outputs)
        finally:
            # No tracer stays behind in the state.
            if state_before is not None and len(_arrays(self._inputs)) == len(state_before):
                _core._tree_replace(self._inputs, state_before)
        trace = _Trace()
        self._results[trace] = result_structure, count
        return outputs, trace

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


def _add_constants(structure, constants):
    """Numbers that differ where the arguments beside arrays, or the form of their trees, do."""
    if isinstance(structure, (list, tuple)):
        constants += (1 if isinstance(structure, list) else 2, len(structure))
        for item in structure:
            _add_constants(item, constants)
        _add_class(structure, constants)
    elif (items := _items_of(structure)) is not None:
        constants += (3, len(items))
        for key, item in items.items():
            constants.append(hash(key))
            _add_constants(item, constants)
        _add_class(structure, constants)
    elif structure is None:
        constants.append(4)
    elif isinstance(structure, (bool, int, float, complex, str, bytes)):
        constants += (5, hash(type(structure)), hash(structure))
    elif structure is _mark():
        constants.append(6)
    else:
        raise ValueError(f"[compile] arguments must be trees of arrays, numbers, str and None, got "
                         f"{type(structure).__name__}")


def _add_class(node, constants):
    """What a function can see of a container beside its items."""
    if type(node) in (list, tuple, dict):
        return
    constants += (7, hash(type(node)))
    if not _is_namespace(node):
        for name, value in _attributes(node).items():
            is_constant = isinstance(value, (type(None), bool, int, float, complex, str, bytes))
            constants += (hash(name), hash(type(value)), hash(value) if is_constant else id(value))


def compile(fun: Callable[P, R], inputs: object | None = None, outputs: object | None = None, shapeless: bool = False) -> Callable[P, R]:
    """`fun`, which runs once for each set of shapes, dtypes and other arguments, and whose graph is built again.

    `inputs` is a tree of arrays that `fun` reads beside its arguments, `outputs` one that it changes. With
    `shapeless` one trace serves all shapes.

    Args:
        fun (Callable[..., Any]): the function
        inputs (Any): a tree of arrays that it reads beside its arguments
        outputs (Any): a tree of arrays that it changes
        shapeless (bool): one trace serves all shapes

    Returns:
        Callable[..., Any]: computes the same

    Example:

        >>> mx.compile(lambda x, y: mx.exp(x) * y)(mx.array([1.0, 2.0]), 3)
        array([8.15485, 22.1672], dtype=float32)
    """
    _check_callable("compile", fun)
    return _Compiled(fun, inputs, outputs, shapeless)


# --- functions in files ---


def _exported(fun):
    def call(arrays, named):
        outputs = fun(*arrays, **named)
        if isinstance(outputs, _array):
            return [outputs]
        if isinstance(outputs, (list, tuple)):
            return list(outputs)
        raise ValueError(f"[export_function] the function must return arrays, got {type(outputs).__name__}")

    return call


def _call_arguments(args, kwargs):
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    if len(args) == 2 and isinstance(args[0], (list, tuple)) and isinstance(args[1], dict):
        args, kwargs = args[0], {**args[1], **kwargs}
    if len(args) == 1 and isinstance(args[0], dict):
        args, kwargs = (), {**args[0], **kwargs}
    for value in (*args, *kwargs.values()):
        if not isinstance(value, _array):
            raise ValueError(f"[export_function] arguments must be arrays, got {type(value).__name__}")
    return list(args), kwargs


class FunctionExporter:
    """Adds a trace to a file with each call; the file is there after close()."""

    def __init__(self, native: object, target: object, fun: Callable[..., Any]) -> None:
        self._native = native
        self._target = target
        self._fun = fun

    def __call__(self, *args: object, **kwargs: array) -> None:
        _core._export_call(self._native, self._target, self._fun, *_call_arguments(args, kwargs))

    def close(self) -> None:
        """Writes the file."""
        _core._export_close(self._native)

    def __enter__(self) -> FunctionExporter:
        return self

    def __exit__(self, exc_type: object = None, exc_value: object = None, traceback: object = None) -> None:
        self.close()


def exporter(file: str | os.PathLike[str] | Callable[[dict[str, Any]], None], fun: Callable[..., Any], *, shapeless: bool = False, metadata: object | None = None) -> FunctionExporter:
    """A FunctionExporter, for files with several traces of one function.

    Args:
        file (str | os.PathLike | Callable[[dict[str, Any]], None]): the file, or a callback that gets the parts
        fun (Callable[..., Any]): the function
        shapeless (bool): one trace serves all shapes
        metadata (Any): strings and arrays kept with the function

    Returns:
        FunctionExporter: call it with example arguments, once for each trace, then close it
    """
    _check_callable("exporter", fun)
    target = file if callable(file) else str(file)
    return FunctionExporter(_core._exporter(target, shapeless, metadata), target, _exported(fun))


def export_function(file_or_callback: str | os.PathLike[str] | Callable[[dict[str, Any]], None], fun: Callable[..., Any], *args: object, shapeless: bool = False, metadata: object | None = None, **kwargs: array) -> None:
    """Saves what `fun` does with such arguments to a file, or hands it to a callback part by part.

    Args:
        file_or_callback (str | os.PathLike | Callable[[dict[str, Any]], None]): the file, or a callback that gets the parts
        fun (Callable[..., Any]): the function
        args (array): example arguments: their shapes and dtypes are kept
        shapeless (bool): one trace serves all shapes
        metadata (Any): strings and arrays kept with the function
        kwargs (array): example arguments by keyword

    Returns:
        None
    """
    native = exporter(file_or_callback, fun, shapeless=shapeless, metadata=metadata)
    native(*args, **kwargs)
    native.close()


def import_function(file: str | os.PathLike, return_metadata: bool = False) -> Any:
    """The function that a file holds; it returns a tuple of arrays. With its metadata, if asked for.

    Args:
        file (str | os.PathLike): the file
        return_metadata (bool): also what was kept with the function

    Returns:
        Callable[..., tuple[array, ...]] | tuple[Callable[..., tuple[array, ...]], Any]: the function, which takes arrays as when it was exported; with its metadata
    """
    native = _core._import(str(file))

    def call(*args, **kwargs):
        return tuple(_core._import_call(native, *_call_arguments(args, kwargs)))

    return (call, _core._import_metadata(native)) if return_metadata else call


for _type in (custom_function, FunctionExporter):
    _type.__module__ = "holdfast.core"
