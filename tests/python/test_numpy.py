"""Values of ops, with NumPy as the reference; and that every name of the package has a test."""

import inspect
import math
import os
import re

import numpy as np
import pytest

import holdfast.core as mx
import surface

random = np.random.default_rng(7)

# Operands, as NumPy's arrays; lines see them as arrays of the package that they are evaluated with.
OPERANDS = {
    "A": random.normal(size=(3, 4)).astype(np.float32),
    "B": random.normal(size=(3, 4)).astype(np.float32),
    "M": random.normal(size=(4, 5)).astype(np.float32),
    "T": random.normal(size=(2, 3, 4)).astype(np.float32),
    "V": random.normal(size=4).astype(np.float32),
    "U": random.uniform(-0.9, 0.9, (3, 4)).astype(np.float32),
    "P": random.uniform(0.2, 3, (3, 4)).astype(np.float32),
    "Q": random.uniform(1.1, 3, (3, 4)).astype(np.float32),
    "I": random.integers(-9, 9, (3, 4)).astype(np.int32),
    "J": random.integers(1, 6, (3, 4)).astype(np.int32),
    "K": np.array([2, 0, 1], np.int32),
    "L": random.random((3, 4)) < 0.5,
    "N": random.random((3, 4)) < 0.5,
    "X": np.array([0.0, 1.5, np.nan, np.inf, -np.inf], np.float32),
    "C": (random.normal(size=(3, 4)) + 1j * random.normal(size=(3, 4))).astype(np.complex64),
    "S": (lambda a: (a @ a.T + 4 * np.eye(4)).astype(np.float32))(random.normal(size=(4, 4))),
    "R": np.sort(random.normal(size=6)).astype(np.float32),
    "W": random.normal(size=(1, 9, 3)).astype(np.float32),
}


def both(names, arguments):
    return [f"m.{name}({arguments})" for name in names.split()]


# The same in both: `m` is mx or np.
SAME = [
    *both("abs negative positive sign floor ceil trunc square sin cos tan arctan sinh cosh tanh arcsinh exp expm1 degrees "
          "radians", "A"),
    *both("sqrt reciprocal log log2 log10 log1p", "P"),
    *both("arcsin arccos arctanh", "U"),
    "m.arccosh(Q)",
    *both("isnan isinf isfinite isposinf isneginf nan_to_num", "X"),
    *both("real imag conj conjugate abs square exp", "C"),
    "m.logical_not(L)",
    *both("add subtract multiply divide maximum minimum arctan2 logaddexp equal not_equal greater greater_equal less "
          "less_equal isclose allclose array_equal", "A, B"),
    *both("add multiply maximum equal less floor_divide remainder divmod bitwise_and bitwise_or bitwise_xor", "I, J"),
    *both("left_shift right_shift", "J, K[0]"),
    *both("logical_and logical_or", "L, N"),
    "m.logical_xor(L, N)", "m.power(P, B)", "m.where(L, A, B)", "m.round(A, 2)", "m.clip(A, -0.5, 0.5)",
    *both("sum mean max min prod var std argmax argmin sort argsort cumsum cumprod median", "A, axis=1"),
    *both("sum mean max min prod var std any all", "A"),
    "m.any(L, axis=0)", "m.all(L, axis=0)", "m.count_nonzero(I, axis=1)", "m.std(A, ddof=1)", "m.sum(I)", "m.diff(A, n=2)",
    "m.arange(1, 8, 2)", "m.linspace(0, 1, 7)", "m.full((2, 3), 4.5)", "m.full_like(A, 2)", "m.zeros((2, 3))",
    "m.zeros_like(I)", "m.ones((2, 3))", "m.ones_like(A)", "m.empty((2, 0))", "m.empty_like(A).shape", "m.eye(3, 4, 1)",
    "m.identity(3)", "m.tri(3, 4, -1)", "m.tril(A, 1)", "m.triu(A)", "m.meshgrid(V, K)",
    *both("hanning hamming bartlett blackman", "8"),
    "m.reshape(A, (4, -1))", "m.squeeze(T[:, :1], 1)", "m.expand_dims(A, (0, 2))", "m.transpose(T, (2, 0, 1))",
    "m.swapaxes(T, 0, 2)", "m.moveaxis(T, 0, -1)", "m.broadcast_to(V, (3, 4))", "m.broadcast_arrays(A, V)",
    "m.broadcast_shapes((3, 1), (4,))", "m.atleast_1d(V[0])", "m.atleast_2d(V)", "m.atleast_3d(A)", "m.flip(A, 1)",
    "m.roll(A, 5)", "m.roll(A, (1, 2), (0, 1))", "m.pad(A, ((1, 0), (2, 1)))", "m.tile(A, (2, 1))", "m.repeat(A, 3, axis=1)",
    "m.diagonal(T, 1, 1, 2)", "m.diag(V, 1)", "m.diag(M)", "m.trace(A)", "m.split(A, 2, axis=1)", "m.concatenate([A, B], axis=1)",
    "m.stack([A, B], axis=1)", "m.take(A, K, axis=1)", "m.take_along_axis(A, K[:, None], axis=1)",
    "m.searchsorted(R, V)", "m.searchsorted(R, R, side='right')",
    "m.matmul(A, M)", "m.matmul(T, M)", "m.tensordot(T, A, axes=2)", "m.outer(V, V)", "m.inner(A, B)", "m.kron(A, M)",
    "m.einsum('ij,jk->ki', A, M)", "m.convolve(V, R, mode='same')",
    "m.linalg.norm(A)", "m.linalg.norm(A, axis=1)", "m.linalg.norm(S, 'nuc')", "m.linalg.norm(V, 3)", "m.linalg.inv(S)",
    "m.linalg.cholesky(S)", "m.linalg.pinv(M)", "m.linalg.solve(S, M)", "m.linalg.eigvalsh(S)", "m.linalg.det(S)",
    "tuple(m.linalg.slogdet(S))",
    *both("fft.fft fft.ifft", "C"),
    *both("fft.fft2 fft.ifft2 fft.fftn fft.ifftn", "C"),
    *both("fft.rfft fft.rfft2 fft.rfftn", "A"),
    *both("fft.irfft fft.irfft2 fft.irfftn", "C"),
    "m.fft.fftfreq(7, 0.5)", "m.fft.rfftfreq(7, 0.5)", "m.fft.fftshift(A)", "m.fft.ifftshift(A, axes=(0,))",
]

# Ours, and what NumPy makes of it.
PAIRS = [
    ("mx.rsqrt(P)", "1 / np.sqrt(P)"), ("mx.sigmoid(A)", "1 / (1 + np.exp(-A))"), ("mx.erf(A)", "erf(A)"),
    ("mx.erf(mx.erfinv(U))", "U"), ("mx.bitwise_invert(I)", "np.invert(I)"), ("mx.bitwise_invert(L)", "np.invert(L)"),
    ("mx.stop_gradient(A)", "A"), ("mx.pow(P, 2)", "P ** 2"), ("mx.atan2(A, B)", "np.arctan2(A, B)"),
    ("mx.asin(U)", "np.arcsin(U)"), ("mx.acos(U)", "np.arccos(U)"), ("mx.atan(A)", "np.arctan(A)"),
    ("mx.asinh(A)", "np.arcsinh(A)"), ("mx.acosh(Q)", "np.arccosh(Q)"), ("mx.atanh(U)", "np.arctanh(U)"),
    ("mx.bitwise_left_shift(J, 2)", "J << 2"), ("mx.bitwise_right_shift(J, 1)", "J >> 1"),
    ("mx.minmax(A)", "(A.min(), A.max())"),
    ("mx.logsumexp(A, axis=1)", "np.log(np.exp(A).sum(1))"), ("mx.softmax(A, axis=1)", "np.exp(A) / np.exp(A).sum(1, keepdims=True)"),
    ("mx.cumulative_sum(A, axis=1)", "np.cumsum(A, 1)"), ("mx.cumulative_prod(A, axis=1)", "np.cumprod(A, 1)"),
    ("mx.cummax(A, axis=1)", "np.maximum.accumulate(A, 1)"), ("mx.cummin(A, axis=1)", "np.minimum.accumulate(A, 1)"),
    ("mx.logcumsumexp(A, axis=1)", "np.logaddexp.accumulate(A, 1)"), ("mx.vecdot(A, B)", "(A * B).sum(-1)"),
    ("mx.astype(A, mx.int32)", "A.astype(np.int32)"), ("mx.view(A, mx.int32)", "A.view(np.int32)"),
    ("mx.contiguous(mx.transpose(A))", "A.T"),
    ("mx.as_strided(A, (3, 3), (4, 1), 1)", "A[:, 1:]"), ("mx.depends(A, B)", "A"), ("mx.flatten(T, 1)", "T.reshape(2, 12)"),
    ("mx.unflatten(A, 1, (2, 2))", "A.reshape(3, 2, 2)"), ("mx.permute_dims(T, (1, 0, 2))", "T.transpose(1, 0, 2)"),
    ("mx.matrix_transpose(T)", "T.transpose(0, 2, 1)"), ("mx.unstack(A)", "tuple(A)"), ("mx.concat([A, B])", "np.concatenate([A, B])"),
    ("mx.put_along_axis(A, K[:, None], 9.0, axis=1)", "put_along_axis(A, K[:, None], 9.0, 1)"),
    ("mx.slice(A, mx.array([1]), (1,), (3, 2))", "A[:, 1:3]"),
    ("mx.slice_update(A, mx.zeros((3, 2)), mx.array([2]), (1,))", "np.concatenate([A[:, :2], np.zeros((3, 2))], 1)"),
    ("mx.sort(mx.partition(A, 2, axis=1)[:, :2])", "np.sort(A)[:, :2]"),
    ("mx.sort(mx.take_along_axis(A, mx.argpartition(A, 2, axis=1), 1)[:, :2])", "np.sort(A)[:, :2]"),
    ("mx.sort(mx.topk(A, 2, axis=1))", "np.sort(A)[:, 2:]"), ("mx.unique(I, 3)", "np.unique(I)[:3]"),
    ("mx.addmm(B[:, :1], A, M, 2.0, 0.5)", "0.5 * B[:, :1] + 2 * A @ M"),
    ("mx.block_masked_mm(mx.ones((64, 64)), mx.ones((64, 64)), 32, mask_out=mx.array([[True, False], [False, True]]))",
     "np.kron(np.eye(2), np.full((32, 32), 64.0))"),
    ("mx.gather_mm(T, M[None], mx.array([1, 0]), mx.array([0, 0]))", "T[::-1] @ M"),
    ("mx.segmented_mm(A, M, mx.array([[0, 2], [2, 4]]))", "np.stack([A[:, :2] @ M[:2], A[:, 2:] @ M[2:]])"),
    ("mx.hadamard_transform(V, 1.0)", "np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) @ V"),
    ("mx.einsum_path('ij,jk->ik', A, M)[0]", "[(0, 1)]"),
    ("mx.conv1d(W, mx.ones((2, 3, 3)), padding=1)", "conv(W, np.ones((2, 3, 3)), 1)"),
    ("mx.conv_general(W, mx.ones((2, 3, 3)), padding=1)", "conv(W, np.ones((2, 3, 3)), 1)"),
    ("mx.conv2d(W[:, :, None], mx.ones((2, 3, 1, 3)), padding=(1, 0))[:, :, 0]", "conv(W, np.ones((2, 3, 3)), 1)"),
    ("mx.conv3d(W[:, :, None, None], mx.ones((2, 3, 1, 1, 3)), padding=(1, 0, 0))[:, :, 0, 0]", "conv(W, np.ones((2, 3, 3)), 1)"),
    ("mx.conv_transpose1d(W, mx.ones((2, 3, 3)), padding=1)", "conv(W, np.ones((2, 3, 3)), 1)"),
    ("mx.conv_transpose2d(W[:, :, None], mx.ones((2, 3, 1, 3)), padding=(1, 0))[:, :, 0]", "conv(W, np.ones((2, 3, 3)), 1)"),
    ("mx.conv_transpose3d(W[:, :, None, None], mx.ones((2, 3, 1, 1, 3)), padding=(1, 0, 0))[:, :, 0, 0]",
     "conv(W, np.ones((2, 3, 3)), 1)"),
    ("mx.abs(mx.dequantize(*mx.quantize(mx.arange(64.0)[None], bits=8), bits=8) - mx.arange(64.0)).max() < 63 / 255", "True"),
    ("mx.quantized_matmul(mx.ones((2, 64)), *mx.quantize(mx.ones((3, 64))))", "np.full((2, 3), 64.0)"),
    ("mx.gather_qmm(mx.ones((2, 1, 64)), *mx.quantize(mx.ones((3, 4, 64))), rhs_indices=mx.array([2, 0]))",
     "np.full((2, 1, 4), 64.0)"),
    ("mx.gather_qmm(mx.full((2, 1, 32), 2.0), *mx.quantize(mx.full((3, 4, 32), 3.0), mode='nvfp4', global_scale=mx.array(6.0)), "
     "rhs_indices=mx.array([2, 0]), mode='nvfp4', global_scale=mx.array([6.0, 6.0, 12.0]))",
     "np.array([384.0, 192.0])[:, None, None] * np.ones((2, 1, 4))"),
    ("mx.qqmm(mx.full((2, 32), 6.0), mx.full((3, 32), 3.0))", "np.full((2, 3), 576.0)"),
    ("mx.gather_qqmm(mx.full((2, 1, 32), 6.0), mx.full((3, 4, 32), 3.0), lhs_indices=mx.array([1]), rhs_indices=mx.array([2]))",
     "np.full((1, 1, 4), 576.0)"),
    ("mx.from_fp8(mx.to_fp8(mx.array([1.0, -2.5, 0.4375])), mx.float32)", "np.array([1.0, -2.5, 0.4375])"),
    ("(lambda f: f[0] @ f[1])(mx.linalg.qr(S))", "S"), ("(lambda f: (f[0] * f[1]) @ f[2])(mx.linalg.svd(S))", "S"),
    ("mx.linalg.tri_inv(mx.tril(S))", "np.linalg.inv(np.tril(S))"),
    ("mx.linalg.cholesky_inv(mx.linalg.cholesky(S))", "np.linalg.inv(S)"),
    ("(lambda f: (f[1] @ f[2])[mx.argsort(f[0])])(mx.linalg.lu(S))", "S"),
    ("mx.triu(mx.linalg.lu_factor(S)[0])[0]", "S[np.argmax(np.abs(S[:, 0]))]"),
    ("mx.linalg.solve_triangular(mx.triu(S), M, upper=True)", "np.linalg.solve(np.triu(S), M)"),
    ("mx.linalg.cross(A[:, :3], B[:, :3])", "np.cross(A[:, :3], B[:, :3])"),
    ("mx.sort(mx.real(mx.linalg.eigvals(S)))", "np.sort(np.linalg.eigvals(S).real)"),
    ("mx.real(mx.abs((lambda f: S @ f[1] - f[0] * f[1])(mx.linalg.eig(S))).max()) < 1e-4", "True"),
    ("(lambda f: (f[1] * f[0]) @ f[1].T)(mx.linalg.eigh(S))", "S"), ("mx.matrix_norm(A, 'fro')", "np.linalg.norm(A)"),
    ("mx.fast.rms_norm(A, V, 1e-5)", "A / np.sqrt((A * A).mean(-1, keepdims=True) + 1e-5) * V"),
    ("mx.fast.layer_norm(A, V, V, 1e-5)",
     "(A - A.mean(-1, keepdims=True)) / np.sqrt(A.var(-1, keepdims=True) + 1e-5) * V + V"),
    ("mx.fast.rope(T, 4, traditional=False, base=100.0, scale=1.0, offset=2)", "rope(T, 100.0, 2)"),
    ("mx.fast.scaled_dot_product_attention(T[None], T[None], T[None], scale=0.5)", "attention(T[None], 0.5)"),
    ("mx.fast.cross_entropy(A, K)", "np.log(np.exp(A).sum(-1)) - A[np.arange(3), K]"),
    ("mx.fft.istft(mx.fft.stft(mx.tile(W[0, :, 0], 8), n_fft=16), n_fft=16)", "np.tile(W[0, :, 0], 8)"),
    *[(f"mx.distributed.{each}(A)", "A") for each in "all_sum all_max all_min all_gather sum_scatter".split()],
    ("mx.distributed.init().size()", "1"),
    ("mx.asarray(A)", "A"), ("mx.from_dlpack(A)", "A"), ("mx.array(A.tolist())", "A"),
]

# Methods and properties of arrays: those of NumPy's, or what NumPy makes of them.
METHODS = [
    *[f"A.{each}(axis=1)" for each in "sum mean max min prod var std argmax argmin cumsum cumprod".split()],
    "A.T", "A.shape", "A.ndim", "A.size", "A.itemsize", "A.nbytes", "A.tolist()", "V[0].item()", "A.reshape(4, 3)",
    "A.transpose()", "T.transpose(2, 0, 1)", "A.flatten()", "T.swapaxes(0, 2)", "T[:, :1].squeeze(1)", "C.conj()", "C.real",
    "C.imag", "L.any()", "L.all(axis=0)", "A.round(1)", "S.diagonal(1)", "A.astype('float32') if isinstance(A, np.ndarray) else A.astype(mx.float32)",
    ("mx.array(A).dtype == mx.float32", "True"),
    ("A.abs()", "np.abs(A)"), ("A.square()", "A * A"), ("P.sqrt()", "np.sqrt(P)"), ("P.rsqrt()", "1 / np.sqrt(P)"),
    ("P.reciprocal()", "1 / P"), ("A.exp()", "np.exp(A)"), ("P.log()", "np.log(P)"), ("P.log2()", "np.log2(P)"),
    ("P.log10()", "np.log10(P)"), ("P.log1p()", "np.log1p(P)"), ("A.sin()", "np.sin(A)"), ("A.cos()", "np.cos(A)"),
    ("A.logsumexp(axis=1)", "np.log(np.exp(A).sum(1))"), ("A.cummax(axis=1)", "np.maximum.accumulate(A, 1)"),
    ("A.cummin(axis=1)", "np.minimum.accumulate(A, 1)"), ("A.logcumsumexp(axis=1)", "np.logaddexp.accumulate(A, 1)"),
    ("T.moveaxis(0, -1)", "np.moveaxis(T, 0, -1)"),
    ("A.split(2, axis=1)", "np.split(A, 2, axis=1)"), ("M.diag()", "np.diag(M)"), ("A.view(mx.int32)", "A.view(np.int32)"),
    ("A.at[1].add(2.0)", "A + 2 * np.eye(3)[1][:, None]"), ("A.at[1].subtract(2.0)", "A - 2 * np.eye(3)[1][:, None]"),
    ("A.at[1].multiply(3.0)", "A * (1 + 2 * np.eye(3)[1][:, None])"), ("A.at[1].divide(2.0)", "A / (1 + np.eye(3)[1][:, None])"),
    ("A.at[1].maximum(0.0)", "np.stack([A[0], np.maximum(A[1], 0), A[2]])"),
    ("A.at[1].minimum(0.0)", "np.stack([A[0], np.minimum(A[1], 0), A[2]])"),
]


def convolve(x, w, padding):
    """[batch, length, channels] by [outputs, length, channels]."""
    x = np.pad(x, ((0, 0), (padding, padding), (0, 0)))
    steps = x.shape[1] - w.shape[1] + 1
    return np.stack([np.einsum("blc,olc->bo", x[:, i:i + w.shape[1]], w) for i in range(steps)], 1)


def rotate(x, base, offset):
    half = x.shape[-1] // 2
    angles = (np.arange(x.shape[-2]) + offset)[:, None] * base ** (-np.arange(half) / half)
    a, b, c, s = x[..., :half], x[..., half:], np.cos(angles), np.sin(angles)
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def attend(x, scale):
    scores = np.exp(scale * x @ np.swapaxes(x, -1, -2))
    return scores / scores.sum(-1, keepdims=True) @ x


def put(a, places, values, axis):
    a = a.copy()
    np.put_along_axis(a, places, values, axis)
    return a


def evaluate(line, module):
    values = OPERANDS if module is np else {name: mx.array(value) for name, value in OPERANDS.items()}
    scope = {"np": np, "mx": mx, "m": module, "erf": np.vectorize(math.erf), "conv": convolve, "rope": rotate, "attention": attend,
             "put_along_axis": put}
    with np.errstate(all="ignore"):
        return eval(line, {**scope, **values})


def assert_close(ours, expected):
    if isinstance(expected, (list, tuple)):
        assert len(ours) == len(expected)
        for a, b in zip(ours, expected):
            assert_close(a, b)
        return
    ours, expected = np.array(ours), np.array(expected)
    assert ours.shape == expected.shape
    assert (ours.dtype.kind in "iub") == (expected.dtype.kind in "iub"), (ours.dtype, expected.dtype)
    np.testing.assert_allclose(ours, expected, rtol=2e-4, atol=2e-4)


LINES = [*[(line, line) for line in SAME], *PAIRS, *[each if isinstance(each, tuple) else (each, each) for each in METHODS]]


@pytest.mark.parametrize("line, reference", LINES, ids=[ours for ours, _ in LINES])
def test_values(line, reference):
    with mx.stream(mx.cpu):
        assert_close(evaluate(line, mx), evaluate(reference, np))


@pytest.mark.parametrize("name", ["uniform", "normal", "gumbel", "laplace", "truncated_normal", "bernoulli", "randint", "categorical",
                                  "permutation", "multivariate_normal"])
def test_distributions(name):
    """Mean and deviation of 20,000 samples, and that a key decides them."""
    shape, key = (20000,), mx.random.key(3)
    calls = {  # the call, and what mean and standard deviation are
        "uniform": (lambda k: mx.random.uniform(-1, 3, shape, key=k), 1, 4 / math.sqrt(12)),
        "normal": (lambda k: mx.random.normal(shape, loc=2, scale=3, key=k), 2, 3),
        "gumbel": (lambda k: mx.random.gumbel(shape, key=k), 0.5772, math.pi / math.sqrt(6)),
        "laplace": (lambda k: mx.random.laplace(shape, loc=1, scale=2, key=k), 1, 2 * math.sqrt(2)),
        "truncated_normal": (lambda k: mx.random.truncated_normal(-1, 1, shape, key=k), 0, 0.5396),
        "bernoulli": (lambda k: mx.random.bernoulli(0.25, shape, key=k), 0.25, math.sqrt(3) / 4),
        "randint": (lambda k: mx.random.randint(0, 10, shape, key=k), 4.5, math.sqrt(8.25)),
        "categorical": (lambda k: mx.random.categorical(mx.log(mx.array([0.5, 0.25, 0.25])), shape=shape, key=k), 0.75, 0.829),
        "permutation": (lambda k: mx.random.permutation(shape[0], key=k), (shape[0] - 1) / 2, shape[0] / math.sqrt(12)),
        "multivariate_normal": (lambda k: mx.random.multivariate_normal(mx.array([1.0]), mx.array([[4.0]]), shape, key=k,
                                                                        stream=mx.cpu), 1, 2),
    }
    draw, mean, deviation = calls[name]
    samples = np.array(draw(key)).astype(np.float64)
    assert abs(samples.mean() - mean) < 0.05 * deviation and abs(samples.std() - deviation) < 0.05 * deviation
    assert np.array_equal(samples, np.array(draw(key)).astype(np.float64))
    assert not np.array_equal(samples, np.array(draw(mx.random.split(key)[0])).astype(np.float64))


def test_every_name_has_a_test():
    """Each function is in a line here, or stands in another file of these tests."""
    folder = os.path.dirname(__file__)
    text = "\n".join(f"{a}\n{b}" for a, b in LINES)
    for file in sorted(os.listdir(folder)):
        if file.startswith("test_") and file not in ("test_surface.py", "test_numpy.py"):
            with open(os.path.join(folder, file)) as source:
                text += source.read()
    with open(__file__) as source:
        text += source.read().partition("def test_distributions")[2]
    words = set(re.findall(r"\w+", text))
    without = [name for name, value in surface.names() if inspect.isroutine(value) and name.rpartition(".")[2] not in words]
    assert not without
