"""Arrays, with NumPy as the reference: making them, operators, indexing, assignment, sharing, printing."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import holdfast.core as mx

DTYPES = ["bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32",
          "complex64"]


def same(ours, reference):
    reference = np.asarray(reference)
    assert ours.shape == reference.shape
    np.testing.assert_allclose(np.array(ours.tolist()).reshape(reference.shape), reference, rtol=1e-6)


# --- making arrays ---


@pytest.mark.parametrize("value, dtype, shape", [
    (True, "bool_", ()), (3, "int32", ()), (2**31, "int64", ()), (2**63, "uint64", ()), (2.5, "float32", ()),
    (1j, "complex64", ()), ([1, 2.5, True], "float32", (3,)), ([True, 2], "int32", (2,)), ([], "float32", (0,)),
    ([[], []], "float32", (2, 0)), ([[1, 2], (3, 4)], "int32", (2, 2)), ([1, 2**40], "int64", (2,)),
    ([2**63, 1], "uint64", (2,)), ([1, 1j], "complex64", (2,)), ((1.5,), "float32", (1,)),
])
def test_dtype_of_python_values(value, dtype, shape):
    made = mx.array(value)
    assert (made.dtype, made.shape) == (getattr(mx, dtype), shape)
    same(made, value)


@pytest.mark.parametrize("value, error", [
    ([[1, 2], [3]], ValueError), ([[1, 2], 3], ValueError), ([1, [2]], ValueError), ("abc", ValueError),
    (None, TypeError), ({1: 2}, ValueError), ([object()], ValueError), (2**64, OverflowError),
    ([2**63, -1], OverflowError), (np.array(["a"]), ValueError), (np.array([object()]), ValueError),
    (np.array([1], dtype=">i4"), ValueError),
])
def test_what_is_no_array(value, error):
    with pytest.raises(error):
        mx.array(value)


def test_arrays_in_lists_are_stacked():
    same(mx.array([mx.array([1, 2]), [3.5, 4]]), [[1, 2], [3.5, 4]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trip(dtype):
    reference = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype.rstrip("_"))
    made = mx.array(reference)
    assert made.dtype == getattr(mx, dtype)
    back = np.array(made)
    assert back.dtype == reference.dtype
    np.testing.assert_array_equal(back, reference)
    np.testing.assert_array_equal(np.array(mx.array(reference.T)), reference.T)
    np.testing.assert_array_equal(np.array(mx.array(reference[:, ::-2])), reference[:, ::-2])
    np.testing.assert_array_equal(np.array(made.T[::-1]), reference.T[::-1])


def test_float64_is_asked_for_by_name():
    assert mx.array(np.array([1.5])).dtype == mx.float32
    assert mx.array(np.array([1.5]), mx.float64).dtype == mx.float64
    assert mx.array(np.array([1 + 2j])).dtype == mx.complex64


def test_bfloat16():
    made = mx.array([1.5, 2.25], mx.bfloat16)
    assert made.tolist() == [1.5, 2.25]
    assert np.array(made).astype(np.float32).tolist() == [1.5, 2.25]
    assert pickle.loads(pickle.dumps(made)).dtype == mx.bfloat16
    with pytest.raises(BufferError):
        memoryview(made)


def test_numpy_memory_is_shared_not_copied():
    source = np.arange(1 << 16, dtype=np.float32)
    shared = mx.asarray(source)
    view = np.asarray(shared)
    assert view.ctypes.data == source.ctypes.data
    # What is computed from it never lands in it.
    result = shared + 1
    mx.eval(result)
    assert source[0] == 0 and result[0].item() == 1
    held = weakref.ref(source)
    del source
    assert held() is not None and view[5] == 5
    del shared, view, result
    gc.collect()
    mx.array(0)  # references that workers gave up are dropped with the next array
    assert held() is None


def test_array_copies_numpy_memory():
    source = np.ones(3, np.float32)
    made = mx.array(source)
    source[0] = 5
    assert made.tolist() == [1, 1, 1]
    with pytest.raises(ValueError):
        mx.asarray([1, 2], copy=False)
    assert mx.asarray(source, copy=True).tolist() == [5, 1, 1]


def test_buffer_outlives_assignment():
    made = mx.arange(4)
    view = np.asarray(made)
    made[0] = 9
    assert view.tolist() == [0, 1, 2, 3] and made.tolist() == [9, 1, 2, 3]


def test_dlpack_both_ways():
    source = np.arange(12, dtype=np.int32).reshape(3, 4)
    for reference in (source, source.T, source[::2, ::-1]):
        made = mx.from_dlpack(reference)
        np.testing.assert_array_equal(np.array(made), reference)
        np.testing.assert_array_equal(np.from_dlpack(made), reference)
    assert mx.array(0).__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError):
        mx.from_dlpack(3)


@pytest.mark.parametrize("dtype", DTYPES + ["bfloat16", "float64"])
def test_pickle_and_copy(dtype):
    made = mx.array([[0, 1], [2, 3]]).astype(getattr(mx, dtype))
    for other in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert other is not made and other.dtype == made.dtype and other.tolist() == made.tolist()
    assert pickle.loads(pickle.dumps(made.dtype)) is made.dtype
    assert pickle.loads(pickle.dumps(mx.zeros((0, 3)))).shape == (0, 3)


def test_functions_can_be_pickled():
    assert pickle.loads(pickle.dumps(mx.exp)) is mx.exp


# --- operators ---

OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("left, right", [
    ([1.5, -2.0], [2.0, 3.0]), ([1.5, 2.0], 3), (3, [1.5, 2.0]), ([5, 7], 2), (7, [5, 2]), ([5, 7], 2.5),
])
def test_operators(op, left, right):
    def of(value, make):
        return make(value) if isinstance(value, list) else value

    ours = eval(f"a {op} b", {"a": of(left, mx.array), "b": of(right, mx.array)})
    reference = eval(f"a {op} b", {"a": of(left, np.array), "b": of(right, np.array)})
    same(ours, reference)


@pytest.mark.parametrize("op", ["&", "|", "^", "<<", ">>"])
def test_bit_operators(op):
    scope = {"a": mx.array([5, 6]), "b": mx.array([1, 2])}
    reference = {"a": np.array([5, 6]), "b": np.array([1, 2])}
    same(eval(f"a {op} b", scope), eval(f"a {op} b", reference))
    same(eval(f"a {op} 2", scope), eval(f"a {op} 2", reference))
    with pytest.raises(ValueError):
        eval(f"a {op} 1.5", scope)


@pytest.mark.parametrize("dtype, scalar, result", [
    ("int8", 1, "int8"), ("int8", 1.5, "float32"), ("float16", 1.5, "float16"), ("float16", 1, "float16"),
    ("bfloat16", 2.5, "bfloat16"), ("bool_", 1, "int32"), ("bool_", True, "bool_"), ("uint8", True, "uint8"),
    ("float16", 1j, "complex64"), ("int32", np.int64(3), "int32"), ("float16", np.float32(3), "float16"),
])
def test_scalars_are_weak(dtype, scalar, result):
    assert (mx.ones(2, getattr(mx, dtype)) + scalar).dtype == getattr(mx, result)
    assert (scalar * mx.ones(2, getattr(mx, dtype))).dtype == getattr(mx, result) or isinstance(scalar, np.generic)


@pytest.mark.parametrize("dtype, scalar", [("int8", 1000), ("uint8", -1), ("int32", 2**31)])
def test_scalars_that_do_not_fit(dtype, scalar):
    with pytest.raises(ValueError):
        mx.ones(2, getattr(mx, dtype)) + scalar


def test_operands_that_are_none():
    for wrong in ([1, 2], "a", {}):
        with pytest.raises(ValueError):
            mx.array([1, 2]) + wrong
    with pytest.raises(TypeError):
        mx.array([1, 2]) + None
    with pytest.raises(TypeError):
        mx.array([1, 2]) @ 3
    with pytest.raises(TypeError):
        mx.array([1, 2]) + object()
    assert (mx.array([1, 2]) == "a") is False and (mx.array([1, 2]) != None) is True  # noqa: E711


def test_in_place_operators_keep_the_object():
    a = b = mx.array([1, 2])
    a += 1
    a *= 3
    assert a is b and b.tolist() == [6, 9]
    c = mx.eye(2)
    c @= mx.array([[1.0, 2.0], [3.0, 4.0]])
    assert c.tolist() == [[1, 2], [3, 4]]
    d = +b
    d += 1
    assert b.tolist() == [6, 9]


def test_scalars_of_arrays():
    assert mx.array(2.5).item() == 2.5 and mx.array([[3]]).item() == 3
    assert float(mx.array(2)) == 2.0 and int(mx.array(2.7)) == 2 and complex(mx.array(2)) == 2
    assert bool(mx.array(1)) and not bool(mx.array([0.0]))
    assert "abc"[mx.array(1)] == "b"
    assert f"{mx.array(1.5):.3f}" == "1.500"
    for wrong in (float, bool, int):
        with pytest.raises(ValueError):
            wrong(mx.array([1, 2]))
    for wrong in (mx.array(1.0), mx.array([1])):
        with pytest.raises(TypeError):
            "abc"[wrong]
    with pytest.raises(TypeError):
        len(mx.array(1))
    with pytest.raises(TypeError):
        iter(mx.array(1))
    assert [row.tolist() for row in mx.array([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]


def test_text():
    assert repr(mx.array([True, False])) == "array([True, False], dtype=bool)"
    assert repr(mx.array([[1, 2], [3, 4]])) == "array([[1, 2],\n       [3, 4]], dtype=int32)"
    assert str(mx.float32) == "holdfast.core.float32" and repr(mx.bool_) == "holdfast.core.bool"
    assert repr(mx.default_device()) == "Device(cpu, 0)" and repr(mx.cpu) == "DeviceType.cpu"
    with mx.printoptions(precision=2):
        assert repr(mx.array(3.14159)) == "array(3.14, dtype=float32)"
    assert repr(mx.array(3.14159)) == "array(3.14159, dtype=float32)"


def test_subclasses_and_weak_references():
    class Special(mx.array):
        def double(self):
            return self * 2

    made = Special([1, 2])
    made.note = "kept"
    assert made.double().tolist() == [2, 4] and made.note == "kept" and isinstance(made, mx.array)
    held = weakref.ref(made)
    del made
    gc.collect()
    assert held() is None


# --- indexing ---

KEYS = [
    "0", "-1", "1:3", "::-1", "::2", "3:0:-1", "10:20", "-10:2", "2:1", "...", "()", "None", "..., 0", "0, ...",
    "0, 1", "0, 1, 2", ":, 1", ":, :, 1:", "None, 0, None", "1:, None, ..., 1", "..., None", "::2, ::-1, 1::2",
    "A([0, 2])", "A([[0, 1], [2, 0]])", "A([0, 2]), 1", "A([0, 2]), :2", "A([0, 1]), A([1, 2])",
    "A([0, 1]), :, A([1, 2])", ":, A([0, 1]), A([1, 2])", "0, :, A([0, 1])", "A([0]), None, A([0])",
    "None, A([[0]])", "A(1)", "A([-1, -3])", "[0, 2]", "[0, 2], [1, 0]", ":, [0, 1, 1]", "..., A([[0], [1]])",
    "1:, A([0, 2]), ::2", "A([0, 1]), 1:3, A([2, 0])", "A([True, False, True])", "A([True, False, True]), 1",
    ":, A([True, False, True, False])", "M", "N", "[]",
]


def scope(make):
    numbers = np.arange(60).reshape(3, 4, 5)
    return {"A": make, "M": make((numbers % 3 == 0).tolist()), "N": make((numbers[:, :, 0] % 2 == 0).tolist())}


@pytest.mark.parametrize("key", KEYS)
def test_get_item(key):
    numbers = np.arange(60).reshape(3, 4, 5)
    expected = eval(f"x[{key}]", {"x": numbers, **scope(np.array)}) if key != "[]" else numbers[np.zeros(0, int)]
    same(eval(f"x[{key}]", {"x": mx.array(numbers), **scope(mx.array)}), expected)


@pytest.mark.parametrize("key", KEYS)
def test_set_item(key):
    numbers = np.arange(60).reshape(3, 4, 5)
    places = numbers[np.zeros(0, int)] if key == "[]" else eval(f"x[{key}]", {"x": numbers, **scope(np.array)})
    values = 100 + np.arange(np.asarray(places).size).reshape(np.shape(places))
    for value in (7, values):
        expected = numbers.copy()
        if key != "[]":
            exec(f"x[{key}] = v", {"x": expected, "v": value, **scope(np.array)})
        ours = mx.array(numbers)
        exec(f"x[{key}] = v", {"x": ours, "v": mx.array(value) if value is values else value, **scope(mx.array)})
        same(ours, expected)


@pytest.mark.parametrize("key", [key for key in KEYS if "A(1)" not in key and key != "[]"])
@pytest.mark.parametrize("method, combine", [
    ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("maximum", np.maximum),
    ("minimum", np.minimum),
])
def test_at(key, method, combine):
    numbers = np.arange(60.0).reshape(3, 4, 5)
    expected = numbers.copy()
    index = eval(f"I[{key}]", {"I": np.index_exp, **scope(np.array)})
    combine.at(expected, index, 3)
    ours = eval(f"x.at[{key}].{method}(3)", {"x": mx.array(numbers, mx.float32), **scope(mx.array)})
    same(ours, expected)


def test_repeated_places():
    assert mx.zeros(3).at[mx.array([0, 0, 1])].add(1).tolist() == [2, 1, 0]
    a = mx.arange(4)
    a[mx.array([0, 0])] = mx.array([7, 8])
    assert a.tolist() == [8, 1, 2, 3]
    a[mx.array([True, False, True, False])] = mx.array([5, 6])
    assert a.tolist() == [5, 1, 6, 3]


@pytest.mark.parametrize("key, error", [
    ("5", IndexError), ("-5", IndexError), ("0, 9", IndexError), ("1.0", ValueError), ("'a'", ValueError),
    ("True", ValueError), ("::0", ValueError), ("0, 0, 0, 0", ValueError), ("..., ...", ValueError),
    ("'a':", ValueError), ("A([0.5])", ValueError), ("A([True, False])", ValueError), ("2**40", OverflowError),
    ("object()", ValueError),
])
def test_bad_keys(key, error):
    x = mx.zeros((3, 4, 5))
    for statement in (f"x[{key}]", f"x[{key}] = 1"):
        with pytest.raises(error):
            exec(statement, {"x": x, "A": mx.array})


def test_bad_values():
    x = mx.arange(4)
    for wrong in ([7, 8], "a", None, object()):
        with pytest.raises(ValueError):
            x[1:3] = wrong
    with pytest.raises(ValueError):
        x[1:3] = mx.array([1, 2, 3])
    with pytest.raises(TypeError):
        del x[0]
    with pytest.raises(ValueError):
        x.at.add(1)
    assert x.tolist() == [0, 1, 2, 3]
    x[1] = 9.5
    assert x.tolist() == [0, 9, 2, 3] and x.dtype == mx.int32


def test_index_out_of_range_in_an_array_is_an_error_of_the_result():
    with pytest.raises((RuntimeError, IndexError)):
        mx.eval(mx.arange(3)[mx.array([5])])


# --- arguments ---


@pytest.mark.parametrize("expression, error", [
    ("mx.sum()", TypeError), ("mx.sum(mx.ones(2), axis='x')", TypeError), ("mx.sum(mx.ones(2), nothing=1)", TypeError),
    ("mx.sum(mx.ones(2), 0, axis=0)", TypeError), ("mx.add(1)", TypeError), ("mx.add(1, 2, mx.cpu)", TypeError),
    ("mx.add(1, 2, stream=3)", TypeError), ("mx.ones(2).sum(axis=5)", IndexError), ("mx.zeros((2, -1))", ValueError),
    ("mx.zeros([2, 2.5])", TypeError), ("mx.zeros(2**40)", OverflowError), ("mx.reshape(mx.ones(4), (3,))", ValueError),
    ("mx.concatenate([])", ValueError), ("mx.concatenate([mx.ones(2), 1])", TypeError), ("mx.array()", TypeError),
    ("mx.matmul(mx.ones((2, 3)), mx.ones((4, 5)))", ValueError), ("mx.exp([1, 2])", ValueError),
    ("mx.exp(None)", TypeError), ("mx.ones(2).astype('float32')", TypeError), ("mx.Dtype(1)", TypeError),
    ("mx.finfo(mx.int32)", ValueError), ("mx.linalg.norm(mx.ones(2), ord='x')", ValueError),
    ("mx.fft.fft(mx.ones(2), norm='x')", ValueError), ("mx.arange(float('nan'))", ValueError),
    ("mx.pad(mx.ones(2), (1, 2, 3))", TypeError), ("mx.ones(2).reshape('a')", TypeError),
    ("mx.new_stream(3)", TypeError), ("mx.Device(3)", TypeError), ("mx.load('nothing.npy')", RuntimeError),
    ("mx.load('nothing.xyz')", ValueError), ("mx.array(1).nothing", AttributeError),
])
def test_errors(expression, error):
    with pytest.raises(error):
        eval(expression, {"mx": mx})


def test_a_gigabyte_from_numpy_and_back_is_not_copied():
    def resident():
        with open("/proc/self/statm") as source:
            return int(source.read().split()[1]) * 4096

    source = np.zeros(1 << 28, np.float32)  # no page of it is there before it is written
    before = resident()
    shared = mx.asarray(source)
    back = np.asarray(shared)
    assert back.ctypes.data == source.ctypes.data and back.nbytes == 1 << 30 and shared.size == 1 << 28
    assert resident() - before < 1 << 24
