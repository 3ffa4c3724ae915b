"""Half types are rounded once, at the end of an op of several steps; float64 keeps its digits; what the host holds is
converted there."""

import os
import subprocess
import sys

import numpy as np
import pytest

import holdfast
import holdfast.core as mx

HALVES = {"float16": mx.float16, "bfloat16": mx.bfloat16}
DIGITS = {"float16": 11, "bfloat16": 8}


def exact(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def rounded(value, name):
    """float64 in the half type: the nearest one, halves to even."""
    value = np.asarray(value, np.float64)
    if name == "float16":
        with np.errstate(over="ignore"):
            return value.astype(np.float16).astype(np.float64)
    _, exponent = np.frexp(value)
    unit = np.exp2(exponent.astype(np.float64) - 8)
    return np.rint(value / unit) * unit


def is_rounded_once(got, value, size, name):
    """The nearest one to a sum of terms of this size in float32, in whatever order it is summed up."""
    slack = 1e-6 * size
    return bool(np.all((rounded(value - slack, name) <= exact(got)) & (exact(got) <= rounded(value + slack, name))))


def operand(shape, name, seed, scale=1.0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * scale
    return mx.array(values).astype(HALVES[name])


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("sizes", [(5, 64, 7), (1, 300, 40), (40, 300, 1), (70, 33, 65), (1, 200000, 3), (3, 0, 2)])
def test_addmm(name, sizes):
    m, k, n = sizes
    a, b, c = operand((m, k), name, 1), operand((k, n), name, 2), operand((m, n), name, 3)

    def check(got, alpha, beta):
        size = abs(alpha) * (np.abs(exact(a)) @ np.abs(exact(b))) + abs(beta) * np.abs(exact(c))
        assert is_rounded_once(got, alpha * (exact(a) @ exact(b)) + beta * exact(c), size, name), (alpha, beta)

    for alpha, beta in ((1, 1), (0.375, 1), (1, -2.5), (1 / 3, 0.1)):
        got = mx.addmm(c, a, b, alpha=alpha, beta=beta)
        assert got.dtype == HALVES[name]
        check(got, alpha, beta)
    # Columns and rows of memory, several products at once, and the gradient in the half type.
    turned = mx.addmm(c, mx.contiguous(a.T).T, mx.contiguous(b.T).T, alpha=0.375)
    check(turned, 0.375, 1)
    stacked = mx.addmm(c, mx.stack([a, 2 * a]), b, alpha=0.375)
    check(stacked[1], 0.75, 1)
    gradients = mx.grad(lambda *x: mx.addmm(*x, alpha=0.5).astype(mx.float32).sum(), argnums=(0, 1, 2))(c, a, b)
    assert [each.dtype for each in gradients] == [HALVES[name]] * 3
    np.testing.assert_allclose(exact(gradients[1])[0], 0.5 * exact(b).sum(1), rtol=0.02, atol=0.05)


@pytest.mark.parametrize("name", HALVES)
def test_addmm_transforms(name, tmp_path):
    a, b, c = operand((3, 4, 20), name, 1), operand((20, 5), name, 2), operand((5,), name, 3)

    def f(x):
        return mx.addmm(c, x, b, alpha=0.375)

    def equal(got, expected):
        assert got.dtype == expected.dtype == HALVES[name]
        np.testing.assert_array_equal(exact(got), exact(expected))

    expected = mx.stack([f(part) for part in a])
    equal(mx.vmap(f)(a), expected)
    equal(mx.compile(f)(a), expected)
    equal(mx.checkpoint(f)(a), expected)
    mx.export_function(tmp_path / "f.hf", f, a)
    equal(mx.import_function(tmp_path / "f.hf")(a)[0], expected)
    outputs, tangents = mx.jvp(f, [a], [mx.ones_like(a)])
    equal(outputs[0], expected)
    np.testing.assert_allclose(exact(tangents[0])[0, 0], 0.375 * exact(b).sum(0), rtol=0.02, atol=0.02)
    cotangents = mx.vjp(f, [a], [mx.ones_like(expected)])[1]
    np.testing.assert_allclose(exact(cotangents[0])[0, 0], 0.375 * exact(b).sum(1), rtol=0.02, atol=0.02)


def test_what_overflows_on_the_way():
    big = mx.full((4, 8), 160.0, mx.float16)
    assert mx.addmm(mx.zeros((4, 4), mx.float16), big, big.T, alpha=0.0625)[0, 0].item() == 12800
    assert mx.addmm(mx.full((4, 4), -60000.0, mx.float16), big, mx.full((8, 4), 60.0, mx.float16))[0, 0].item() == 16800
    mask = mx.full((1, 1), 0.0625)
    assert mx.block_masked_mm(big, big.T, 32, mask_out=mask)[0, 0].item() == 12800
    large = mx.array([300.0, -300.0, 400.0, -400.0], mx.float16)
    assert mx.std(large).item() == np.float16(np.sqrt(125000))
    assert mx.linalg.norm(large).item() == np.float16(np.sqrt(500000))
    assert mx.linalg.norm(large.reshape(2, 2), "fro").item() == np.float16(np.sqrt(500000))
    assert mx.median(mx.full((2,), 60000.0, mx.float16)).item() == 60000
    assert mx.mean(mx.full((100,), 60000.0, mx.float16)).item() == 60000
    assert mx.round(mx.array(30000.0, mx.float16), 1).item() == 30000
    assert mx.var(mx.full((9,), 60000.0, mx.float16)).item() == 0
    assert mx.logsumexp(mx.full((4,), 60000.0, mx.float16)).item() == 60000
    assert not mx.isclose(mx.array(60000.0, mx.float16), mx.array(-60000.0, mx.float16)).item()
    assert mx.sum(mx.full((4,), 30000.0, mx.float16) * mx.array([1, -1, 1, -1], mx.float16)).item() == 0
    heads = mx.full((1, 1, 2, 64), 100.0, mx.float16)
    assert mx.fast.scaled_dot_product_attention(heads, heads, heads, scale=1e-4)[0, 0, 0, 0].item() == 100
    assert mx.fast.rms_norm(mx.full((2, 64), 6000.0, mx.float16), None, 1e-5)[0, 0].item() == 1


@pytest.mark.parametrize("name", HALVES)
def test_sums_and_scales(name):
    x = operand((6, 3000), name, 4)
    values = exact(x)
    for got, expected in ((mx.sum(x, axis=1), values.sum(1)), (mx.mean(x, axis=1), values.mean(1)),
                          (mx.var(x, axis=1), values.var(1)), (mx.std(x, axis=1), values.std(1)),
                          (mx.linalg.norm(x, axis=1), np.linalg.norm(values, axis=1)),
                          (mx.linalg.norm(x, 1, axis=1), np.abs(values).sum(1)),
                          (mx.linalg.norm(x, 3, axis=1), (np.abs(values) ** 3).sum(1) ** (1 / 3)),
                          (mx.logsumexp(x, axis=1), np.log(np.exp(values).sum(1))),
                          (mx.cumsum(x, axis=1)[:, -1], values.sum(1)), (mx.degrees(x), np.degrees(values)),
                          (mx.radians(x), np.radians(values)), (mx.median(x, axis=1), np.median(values, axis=1)),
                          (mx.trace(x), np.trace(values)), (x @ x.T, values @ values.T)):
        np.testing.assert_allclose(exact(got), expected, rtol=0.51 * 2.0 ** (1 - DIGITS[name]), atol=2e-4)


# --- float64 ---

TENTH = np.float64(0.1)


def test_float64_keeps_its_digits():
    def check(made, expected=TENTH):
        assert made.dtype == mx.float64
        np.testing.assert_array_equal(np.array(made), np.broadcast_to(expected, made.shape))

    with mx.stream(mx.cpu):
        like = mx.zeros((2, 3), mx.float64)
        check(mx.full((2, 3), 0.1, mx.float64))
        check(mx.full((2, 3), TENTH, mx.float64))
        check(mx.full((2, 3), np.full(3, TENTH), mx.float64))
        check(mx.full_like(like, 0.1))
        check(mx.full_like(mx.zeros((2, 3)), 0.1, mx.float64))
        check(mx.array(0.1, mx.float64))
        check(mx.array([0.1, 0.1], mx.float64))
        check(mx.array(np.full(4, TENTH), mx.float64))
        check(mx.linspace(0.1, 3, 1, dtype=mx.float64))
        check(mx.linspace(0.1, 0.3, 3, dtype=mx.float64), [TENTH, 0.5 * TENTH + 0.5 * 0.3, 0.3])
        check(mx.arange(0, 0.35, 0.1, dtype=mx.float64), np.arange(4) * 0.1)
        check(like + 0.1)
        check(mx.where(like > 0, like, 0.1))
        check(mx.clip(like, 0.1, 0.2))
        check(mx.maximum(like, 0.1))
        check(mx.pad(like, 1, constant_values=0.1)[0])
        check(mx.nan_to_num(like / 0, 0.1))
        check(mx.nan_to_num(mx.full((2,), float("inf"), mx.float64), 0, 0.1, 0.2))
        check(mx.addmm(like[:, :2], like, mx.zeros((3, 2), mx.float64) + 1, beta=0.1) + 0.1)
        one = mx.ones((1, 1), mx.float64)
        check(mx.addmm(one, one, one, alpha=0.1, beta=0), 0.1)
        check(mx.addmm(one, one, one, alpha=0, beta=0.1), 0.1)
        check(mx.put_along_axis(like, mx.zeros((2, 1), mx.int32), mx.array(0.1, mx.float64), 1)[:, 0])
        check(mx.round(mx.array(0.1234, mx.float64), 1))
        check(mx.degrees(mx.array(1.0, mx.float64)), np.degrees(1.0))
        updated = mx.zeros((3,), mx.float64)
        updated[:] = 0.1
        check(updated)
        check(updated.at[0].multiply(0.1)[:1], TENTH * TENTH)


ON_THE_GPU = """
import numpy as np, holdfast.core as mx
mx.set_default_device(mx.gpu)
host = np.random.default_rng(1).random(3)
expected = host.astype(np.float32)
dlpack = type("Exporter", (), {"__dlpack__": lambda self, **k: host.__dlpack__(), "__dlpack_device__": lambda self: (1, 0)})()
x = mx.ones(3)
updated = mx.zeros(3)
updated[:] = host
for made, factor in ((mx.array(host), 1), (mx.array(host, mx.float32), 1), (mx.array(host, dtype=mx.float16), 1),
                     (mx.asarray(host), 1), (x * host, 1), (mx.add(x, host) - 1, 1), (updated, 1),
                     (mx.where(x > 0, host, x), 1), (mx.array(dlpack), 1), (mx.array(host[::2].repeat(2)[:3]), None),
                     (mx.full((3,), host), 1), (mx.array(host.tolist()), 1), (mx.array(host.astype(np.complex128)), 1),
                     (mx.array(np.float64(0.5)), None), (mx.concatenate([mx.array(host)]), 1)):
    assert made.dtype in (mx.float32, mx.float16, mx.complex64), made.dtype
    if factor:
        np.testing.assert_allclose(np.array(made), expected, rtol=1e-3 if made.dtype == mx.float16 else 1e-6)
assert mx.array(host, mx.float64).dtype == mx.float64  # as asked for: only ops on it need a CPU stream
print("converted")
"""


def test_host_data_is_converted_on_the_host():
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(holdfast.__file__))}
    result = subprocess.run([sys.executable, "-c", ON_THE_GPU], env=environment, capture_output=True, text=True)
    assert result.returncode == 0 and "converted" in result.stdout, result.stderr
