"""Arrays with axes of size 0, in each position: what NumPy gives, or an exception where NumPy raises.

Freed memory that an op might hand out unwritten is filled with NaN before each call.
"""

import itertools
import warnings

import numpy as np
import pytest

import holdfast.core as mx

SHAPES = [(0,), (0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 2)]
MATRICES = [(0, 0), (2, 0, 0), (0, 3, 3), (2, 5, 0), (2, 0, 5), (0, 5, 2), (0, 2, 5), (5, 0), (0, 5)]


def spoil():
    """Leaves memory of all small sizes in the allocator's cache, with NaN in it."""
    mx.eval([mx.full(1 << bits, float("nan")) for bits in range(10)])


def result_of(call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # means of no elements
            return call()
    except (ValueError, IndexError, ZeroDivisionError, np.linalg.LinAlgError) as error:
        return error


def compare(ours, theirs, what):
    if isinstance(theirs, Exception):
        assert isinstance(ours, (ValueError, IndexError)), (what, ours, theirs)
        assert str(ours).startswith("["), (what, ours)
        return
    assert not isinstance(ours, Exception), (what, ours)
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), what
        for each, other in zip(ours, theirs):
            compare(each, other, what)
        return
    ours, theirs = np.array(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=str(what))


def agree(ours, theirs, *shapes):
    """Both functions, called with arrays of ones."""
    expected = result_of(lambda: theirs(*[np.ones(shape, np.float32) for shape in shapes]))
    spoil()

    def call():
        made = ours(*[mx.ones(shape) for shape in shapes])
        mx.eval(made)
        return made

    compare(result_of(call), expected, shapes)


UNARY = ["abs", "exp", "log", "sqrt", "sin", "tanh", "floor", "negative", "isnan", "sign", "square", "logical_not"]
BINARY = ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "equal", "less", "logaddexp",
          "floor_divide", "remainder", "arctan2", "logical_and"]
AXIS = ["sum", "prod", "min", "max", "all", "any", "mean", "var", "std", "argmin", "argmax", "cumsum", "cumprod", "sort",
        "argsort"]


@pytest.mark.parametrize("shape", SHAPES)
def test_element_wise(shape):
    for name in UNARY:
        agree(getattr(mx, name), getattr(np, name), shape)
    for name, other in itertools.product(BINARY, [shape, (), (1,) * len(shape)]):
        agree(getattr(mx, name), getattr(np, name), shape, other)
        agree(getattr(mx, name), getattr(np, name), other, shape)
    agree(lambda a: mx.where(a > 0, a, 2), lambda a: np.where(a > 0, a, 2), shape)
    agree(lambda a: mx.clip(a, 0, 1), lambda a: np.clip(a, 0, 1), shape)
    agree(lambda a: mx.nan_to_num(a), np.nan_to_num, shape)
    agree(lambda a: a.astype(mx.int32), lambda a: a.astype(np.int32), shape)
    agree(lambda a: mx.allclose(a, a), lambda a: np.allclose(a, a), shape)
    agree(lambda a: mx.array_equal(a, a), lambda a: np.array_equal(a, a), shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_along_axes(shape):
    for name in AXIS:
        mine, theirs = getattr(mx, name), getattr(np, name)
        for axis in range(-len(shape), len(shape)):
            # NumPy refuses the least of nothing even where there are no results; here nothing is asked for then.
            kept = np.delete(shape, axis)
            nothing = np.zeros(kept) if name in ("min", "max", "argmin", "argmax") and 0 in kept else None
            agree(lambda a: mine(a, axis=axis), lambda a: theirs(a, axis=axis) if nothing is None else nothing, shape)
        if name not in ("cumsum", "cumprod", "sort", "argsort"):
            agree(mine, theirs, shape)
    for axis in range(len(shape)):
        for keep in (False, True):
            for name in ("sum", "mean"):
                agree(lambda a: getattr(mx, name)(a, axis=axis, keepdims=keep),
                      lambda a: getattr(np, name)(a, axis=axis, keepdims=keep), shape)
        agree(lambda a: mx.softmax(a, axis=axis), lambda a: a, shape)
        agree(lambda a: mx.diff(a, axis=axis), lambda a: np.diff(a, axis=axis), shape)
        agree(lambda a: mx.cummax(a, axis=axis), lambda a: np.maximum.accumulate(a, axis), shape)
        agree(lambda a: mx.logcumsumexp(a, axis=axis), lambda a: np.logaddexp.accumulate(a, axis), shape)
        agree(lambda a: mx.topk(a, 0, axis=axis), lambda a: a[(slice(None),) * axis + (slice(0),)], shape)
        agree(lambda a: mx.argpartition(a, 0, axis=axis) * 0,
              lambda a: a.astype(np.uint32) if a.shape[axis] else [][0], shape)
        if shape[axis]:
            agree(lambda a: mx.logsumexp(a, axis=axis), lambda a: np.log(np.exp(a).sum(axis)), shape)
            agree(lambda a: mx.median(a, axis=axis), lambda a: a.sum(axis), shape)
    for axes in itertools.combinations(range(len(shape)), 2):
        agree(lambda a: mx.sum(a, axis=axes), lambda a: np.sum(a, axis=axes), shape)
        if 0 not in np.delete(shape, axes):
            agree(lambda a: mx.max(a, axis=axes), lambda a: np.max(a, axis=axes), shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_and_indices(shape):
    pairs = [
        (lambda m: lambda a: m.transpose(a)), (lambda m: lambda a: m.flip(a)), (lambda m: lambda a: m.roll(a, 2)),
        (lambda m: lambda a: m.tile(a, (2, 1))), (lambda m: lambda a: m.repeat(a, 2, axis=0)),
        (lambda m: lambda a: m.repeat(a, 0, axis=0)), (lambda m: lambda a: m.pad(a, 1)),
        (lambda m: lambda a: m.concatenate([a, a], axis=-1)), (lambda m: lambda a: m.stack([a, a], axis=1)),
        (lambda m: lambda a: m.expand_dims(a, 0)), (lambda m: lambda a: m.reshape(a, (0, 7))),
        (lambda m: lambda a: m.reshape(a, (-1, 7))), (lambda m: lambda a: m.reshape(a, (-1, 0))),
        (lambda m: lambda a: a[..., :0]), (lambda m: lambda a: a[::-1]), (lambda m: lambda a: a[:, None] if a.ndim > 1 else a),
        (lambda m: lambda a: m.broadcast_to(a, (3,) + shape)), (lambda m: lambda a: m.squeeze(a)),
        (lambda m: lambda a: m.tril(a)) if len(shape) > 1 else (lambda m: lambda a: a),
        (lambda m: lambda a: m.diagonal(a)) if len(shape) > 1 else (lambda m: lambda a: a),
        (lambda m: lambda a: m.trace(a)) if len(shape) > 1 else (lambda m: lambda a: a),
        (lambda m: lambda a: m.split(a, 1, axis=0)),
    ]
    for make in pairs:
        agree(make(mx), make(np), shape)
    none = [], (2, 0)
    for axis in range(len(shape)):
        agree(lambda a: mx.take(a, mx.zeros(none[1], mx.int32), axis=axis),
              lambda a: np.take(a, np.zeros(none[1], np.int32), axis=axis), shape)
        agree(lambda a: mx.split(a, 2, axis=axis) if a.shape[axis] % 2 == 0 else a,
              lambda a: np.split(a, 2, axis=axis) if a.shape[axis] % 2 == 0 else a, shape)
        agree(lambda a: mx.take_along_axis(a, mx.zeros(a.shape, mx.int32), axis),
              lambda a: np.take_along_axis(a, np.zeros(a.shape, np.int32), axis), shape)
        agree(lambda a: mx.put_along_axis(a, mx.zeros(a.shape, mx.int32), mx.array(2.0), axis), lambda a: a, shape)
    agree(lambda a: a[mx.zeros((0,), mx.int32)], lambda a: a[np.zeros(0, np.int32)], shape)
    agree(lambda a: a.at[mx.zeros((0,), mx.int32)].add(1), lambda a: a, shape)
    agree(lambda a: mx.searchsorted(a.flatten(), mx.ones((2, 3))), lambda a: np.zeros((2, 3)), shape)


def test_updates_and_masks_that_choose_nothing():
    full = (2, 3)
    nothing = (mx.zeros((0,), mx.int32), np.zeros(0, np.int32))

    def updated(a, key, value):
        a[key] = value
        return a

    agree(lambda a: updated(a, nothing[0], 5), lambda a: updated(a, nothing[1], 5), full)
    agree(lambda a: updated(a, slice(0, 0), 5), lambda a: updated(a, slice(0, 0), 5), full)
    agree(lambda a: updated(a, a > 9, 5), lambda a: updated(a, a > 9, 5), full)
    agree(lambda a: a[nothing[0]], lambda a: a[nothing[1]], full)
    agree(lambda a: a.at[nothing[0]].maximum(7), lambda a: a, full)


def test_creation():
    for call in (lambda m: m.eye(0), lambda m: m.eye(0, 3), lambda m: m.eye(3, 0), lambda m: m.arange(0),
                 lambda m: m.arange(3, 3), lambda m: m.linspace(0, 1, 0), lambda m: m.zeros((2, 0)), lambda m: m.tri(0),
                 lambda m: m.ones((0, 2)), lambda m: m.full((0, 2), 3.0), lambda m: m.array([]), lambda m: m.array([[], []]),
                 lambda m: m.meshgrid(m.arange(3), m.arange(0))):
        agree(lambda: call(mx), lambda: call(np))
    key = mx.random.key(1)
    for made in (mx.random.uniform(shape=(0, 3), key=key), mx.random.normal((3, 0), key=key),
                 mx.random.randint(0, 5, (0,), key=key), mx.random.bernoulli(0.5, (2, 0), key=key),
                 mx.random.gumbel((0,), key=key), mx.random.truncated_normal(0, 1, (0, 2), key=key),
                 mx.random.laplace((0,), key=key), mx.random.permutation(mx.zeros((0, 3)), key=key),
                 mx.random.categorical(mx.zeros((0, 3)), key=key)):
        assert 0 in made.shape and np.array(made).size == 0
    compare(result_of(lambda: mx.random.categorical(mx.zeros((3, 0)), key=key)), ValueError(), "categorical")


@pytest.mark.parametrize("shapes", [((2, 0), (0, 3)), ((0, 4), (4, 3)), ((2, 4), (4, 0)), ((0,), (0,)), ((5, 2, 0), (0, 3)),
                                    ((0, 2, 4), (4, 3)), ((0,), (0, 3)), ((2, 0), (0,)), ((0, 1, 3, 4), (2, 4, 5))])
def test_products(shapes):
    agree(mx.matmul, np.matmul, *shapes)
    agree(lambda a, b: mx.addmm(mx.array(3.0), a, b, alpha=2, beta=0.5) if min(a.ndim, b.ndim) > 1 else a @ b,
          lambda a, b: 2 * (a @ b) + 1.5 if min(a.ndim, b.ndim) > 1 else a @ b, *shapes)
    agree(lambda a, b: mx.tensordot(a, b, 1), lambda a, b: np.tensordot(a, b, 1), *shapes)
    agree(mx.outer, np.outer, *shapes)
    agree(mx.kron, np.kron, *shapes)
    for dtype in (mx.float16, mx.bfloat16):
        agree(lambda a, b: mx.matmul(a.astype(dtype), b.astype(dtype)).astype(mx.float32), np.matmul, *shapes)


def test_more_products():
    agree(lambda a, b: mx.einsum("ij,jk->ik", a, b), lambda a, b: np.einsum("ij,jk->ik", a, b), (2, 0), (0, 3))
    agree(lambda a, b: mx.einsum("ij,kj->", a, b), lambda a, b: np.einsum("ij,kj->", a, b), (2, 0), (3, 0))
    agree(mx.inner, np.inner, (2, 0), (3, 0))
    agree(mx.inner, np.inner, (0, 2), (3, 2))
    none = mx.zeros((0,), mx.uint32)
    agree(lambda a, b: mx.gather_mm(a, b, rhs_indices=none), lambda a, b: np.zeros((0, 2, 5)), (1, 2, 3), (4, 3, 5))
    agree(lambda a, b: mx.gather_mm(a, b), lambda a, b: a @ b, (4, 2, 0), (4, 0, 5))
    agree(lambda a, b: mx.block_masked_mm(a, b, 32), lambda a, b: a @ b, (4, 0), (0, 5))
    agree(lambda a, b: mx.segmented_mm(a, b, mx.array([[0, 0], [1, 2]], mx.uint32)),
          lambda a, b: np.stack([np.zeros((4, 5)), np.ones((4, 5))]), (4, 3), (3, 5))
    weights = mx.quantize(mx.ones((8, 64)))
    for shape in ((0, 64), (2, 0, 64)):
        agree(lambda a: mx.quantized_matmul(a, *weights), lambda a: np.zeros(shape[:-1] + (8,)), shape)
    agree(lambda a: mx.gather_qmm(a, *[w[None] for w in weights], rhs_indices=none), lambda a: np.zeros((0, 3, 8)), (1, 3, 64))
    agree(lambda a: mx.dequantize(*mx.quantize(a)), lambda a: a, (0, 64))
    agree(lambda a: mx.hadamard_transform(a), lambda a: a, (0, 8))


def test_convolutions():
    agree(lambda x, w: mx.conv1d(x, w), lambda x, w: np.zeros((0, 4, 3)), (0, 6, 2), (3, 3, 2))
    agree(lambda x, w: mx.conv1d(x, w, padding=2), lambda x, w: np.zeros((2, 2, 3)), (2, 0, 2), (3, 3, 2))
    agree(lambda x, w: mx.conv2d(x, w), lambda x, w: np.zeros((0, 3, 3, 5)), (0, 5, 5, 2), (5, 3, 3, 2))
    agree(lambda x, w: mx.conv1d(x, w), lambda x, w: np.zeros((2, 4, 0)), (2, 6, 2), (0, 3, 2))
    agree(lambda x, w: mx.conv1d(x, w), lambda x, w: np.zeros((2, 4, 3)), (2, 6, 0), (3, 3, 0))
    agree(lambda x, w: mx.conv_transpose1d(x, w), lambda x, w: np.zeros((0, 8, 3)), (0, 6, 2), (3, 3, 2))


@pytest.mark.parametrize("shape", [(0, 3, 8), (2, 0, 8), (2, 3, 0)])
def test_norms_and_rope(shape):
    width = shape[-1]
    agree(lambda a: mx.fast.rms_norm(a, mx.ones(width), 1e-5), lambda a: a, shape)
    agree(lambda a: mx.fast.layer_norm(a, mx.ones(width), None, 1e-5), lambda a: a, shape)
    if width:
        agree(lambda a: mx.fast.rope(a[None], 8, traditional=False, base=10000.0, scale=1.0, offset=0),
              lambda a: a[None], shape)
    for axis in range(3):
        agree(lambda a: mx.linalg.norm(a, axis=axis), lambda a: np.linalg.norm(a, axis=axis), shape)
        for order in (0, 1, 3):
            agree(lambda a: mx.linalg.norm(a, order, axis=axis), lambda a: np.linalg.norm(a, order, axis=axis), shape)


@pytest.mark.parametrize("sizes", [(0, 2, 3, 4), (2, 0, 3, 4), (2, 2, 0, 4), (2, 2, 3, 0)])
def test_attention(sizes):
    batch, heads, rows, columns = sizes
    queries, keys, values = (batch, heads, rows, 8), (batch, heads, columns, 8), (batch, heads, columns, 8)
    expected = np.ones(queries) if columns else np.zeros(queries)
    agree(lambda q, k, v: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.5), lambda q, k, v: expected,
          queries, keys, values)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,)])
def test_fourier_transforms(shape):
    for name in ("fft", "ifft", "rfft", "irfft"):
        for axis in range(len(shape)):
            agree(lambda a: getattr(mx.fft, name)(a, axis=axis), lambda a: getattr(np.fft, name)(a, axis=axis), shape)
    agree(lambda a: mx.fft.fft(a, n=0), lambda a: np.fft.fft(a, n=0), (4, 4))


def factors(parts):
    return [getattr(parts, name) for name in parts._fields] if hasattr(parts, "_fields") else parts


@pytest.mark.parametrize("shape", MATRICES)
def test_linear_algebra(shape):
    cpu = {"stream": mx.cpu}
    agree(lambda a: mx.linalg.svd(a, **cpu), lambda a: factors(np.linalg.svd(a)), shape)
    agree(lambda a: mx.linalg.svd(a, compute_uv=False, **cpu), lambda a: np.linalg.svd(a, compute_uv=False), shape)
    agree(lambda a: mx.linalg.qr(a, **cpu), lambda a: factors(np.linalg.qr(a)), shape)
    agree(lambda a: mx.linalg.pinv(a, **cpu), np.linalg.pinv, shape)
    m, n = shape[-2:]
    places = np.broadcast_to(np.arange(m, dtype=np.uint32), shape[:-2] + (m,))
    least = min(m, n)
    if 0 in (m, n):
        agree(lambda a: mx.linalg.lu(a, **cpu),
              lambda a: [places, np.ones(shape[:-2] + (m, least)), np.ones(shape[:-2] + (least, n))], shape)
    if m != n:
        return
    for name in ("det", "slogdet", "inv", "cholesky", "eigvals", "eigvalsh", "eig", "eigh"):
        if hasattr(mx.linalg, name):
            agree(lambda a: getattr(mx.linalg, name)(a, **cpu),
                  lambda a: factors(getattr(np.linalg, name)(a)), shape)
    agree(lambda a, b: mx.linalg.solve(a, b, **cpu), np.linalg.solve, shape, shape[:-1] + (2,))
    agree(lambda a, b: mx.linalg.solve_triangular(a, b, **cpu), np.linalg.solve, shape, shape[:-1] + (2,))


def test_right_sides_without_columns():
    eye = np.eye(3, dtype=np.float32)
    compare(mx.linalg.solve(mx.array(eye), mx.zeros((3, 0)), stream=mx.cpu), np.zeros((3, 0)), "solve")
    compare(mx.linalg.solve_triangular(mx.array(eye), mx.zeros((3, 0)), stream=mx.cpu), np.zeros((3, 0)), "triangular")
