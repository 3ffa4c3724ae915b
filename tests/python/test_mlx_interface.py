"""What programs for MLX rely on beside values: how numbers print, names and versions under MLX's name, streams by position."""

import subprocess
import sys

import numpy as np
import pytest

import holdfast.core as mx
from test_package import ENVIRONMENT


def test_a_number_is_formatted_as_python_formats_it():
    loss = mx.array(1.25)
    assert f"{loss}" == "1.25" and f"{loss:.3f}" == "1.250" and format(loss, ".1e") == "1.2e+00"
    assert f"{mx.array(3)}" == "3" and f"{mx.array(3):>4d}" == "   3" and f"{mx.array(True)}" == "True"
    assert f"{mx.array(1 + 2j)}" == "(1+2j)"
    assert f"{mx.array([1, 2])}" == str(mx.array([1, 2]))
    for array in (mx.array([1.5]), mx.array([1.5, 2.0])):
        with pytest.raises(TypeError):
            format(array, ".3f")


def test_limits_of_complex_numbers_are_those_of_their_parts():
    info = mx.finfo(mx.complex64)
    assert info.dtype == mx.float32 and repr(info) == repr(mx.finfo(mx.float32))


def test_what_programs_ask_a_device():
    info = mx.device_info()
    for key in ("max_recommended_working_set_size", "max_buffer_length", "memory_size", "resource_limit"):
        assert isinstance(info[key], int) and info[key] > 0
    assert info["architecture"] and info["device_name"]
    assert set(info) <= set(mx.metal.device_info())


@pytest.mark.parametrize("shape", [2**31, (2, 2**33), -(2**40)])
def test_a_shape_beyond_32_bits_names_the_number(shape):
    number = shape[1] if isinstance(shape, tuple) else shape
    with pytest.raises(OverflowError, match=str(number)):
        mx.zeros(shape)


def test_one_pair_pads_each_axis():
    assert mx.pad(mx.ones((2, 2)), [(1, 2)]).shape == (5, 5)
    assert mx.pad(mx.ones((2, 3, 4)), ((1, 0),)).shape == (3, 4, 5)
    with pytest.raises(ValueError):
        mx.pad(mx.ones((2, 2, 2)), [(1, 1), (1, 1)])


def test_ranges():
    with pytest.raises(ValueError):
        mx.arange(True)
    with pytest.raises(ValueError):
        mx.arange(2**31)
    assert mx.arange(True, 3).tolist() == [1, 2]


def test_axes_and_shapes_are_arrays_too():
    a = mx.arange(6).reshape(2, 3)
    assert a.sum(mx.array(1)).tolist() == [3, 12] and a.sum(np.array([0, 1])).item() == 15
    assert mx.zeros(mx.array([2, 3])).shape == mx.zeros(np.array([2, 3])).shape == (2, 3)
    assert mx.transpose(a, np.array([1, 0])).shape == (3, 2) and mx.zeros(np.int64(2)).shape == (2,)
    square = mx.array([[1, 2], [3, 4]])
    for shift, axes in ((np.array([0, 1]), (0, 1)), (mx.array([0, 1]), np.array([0, 1]))):
        assert mx.roll(square, shift, axes).tolist() == [[2, 1], [4, 3]]
    assert mx.roll(square, (1, 1), mx.array([0, 1])).tolist() == [[4, 3], [2, 1]]
    assert [part.tolist() for part in mx.split(mx.arange(3), np.array([1, 2]))] == [[0], [1], [2]]
    for bad in (mx.array(1.5), np.array([0.5]), "x", [None]):
        with pytest.raises(TypeError):
            a.sum(bad)


REFUSED = [
    (lambda: mx.fast.rope(mx.ones((1, 2, 4)), 0, traditional=False, base=10.0, scale=1.0, offset=0), ValueError),
    (lambda: mx.fast.rope(mx.ones((1, 2, 4)), 4, traditional=False, base=10.0, scale=1.0, offset=True), ValueError),
    (lambda: mx.fast.scaled_dot_product_attention(*[mx.ones((1, 1, 2, 4))] * 3, scale=1.0, mask=""), ValueError),
    (lambda: mx.fft.rfftfreq(4, 0), ValueError), (lambda: mx.fft.fftfreq(4, 0), ValueError), (lambda: mx.fft.fftn(mx.ones((2, 2)), s=(2,)), ValueError),
    (lambda: mx.fft.fft(mx.array(1.0)), ValueError), (lambda: mx.softmax(mx.array(1.0), axis=0), ValueError),
    (lambda: mx.logsumexp(mx.array(1.0), axis=0), ValueError), (lambda: mx.matrix_transpose(mx.ones(3)), ValueError),
    (lambda: mx.unique(mx.array([1, 2]), -1), ValueError), (lambda: mx.full_like(mx.array([1, 2]), 2**40), ValueError),
    (lambda: mx.exp([1, 2]), ValueError), (lambda: mx.diff([1, 2]), TypeError), (lambda: mx.add([1, 2], 3), ValueError), (lambda: mx.sum(mx.ones(2), axis=1), IndexError),
]


@pytest.mark.parametrize("call, error", REFUSED)
def test_what_mlx_refuses_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_the_gradient_of_a_stopped_output_is_zero():
    outputs, gradients = mx.vjp(lambda x: (mx.stop_gradient(x), x * 2), [mx.array(3.0)], [mx.array(1.0), mx.array(1.0)])
    assert gradients[0].item() == 2.0
    assert mx.vjp(mx.stop_gradient, [mx.array(3.0)], [mx.array(1.0)])[1][0].item() == 0.0


def test_exact_results():
    powers = [10.0**k for k in range(-10, 30)]
    assert mx.log10(mx.array(powers)).tolist() == [float(k) for k in range(-10, 30)]
    assert mx.fft.fft(mx.array([0.1, 0.2]))[1].item().imag == 0
    assert all(part.imag == 0 for part in mx.fft.fft(mx.array([1.0, 2.0, 1.0, 2.0])).tolist())


def test_flip_takes_an_axis_twice():
    assert mx.flip(mx.arange(3), axis=(0, -1)).tolist() == [2, 1, 0]


def test_limits_in_the_wrong_order():
    drawn = mx.random.truncated_normal(1.0, -1.0, (4,), key=mx.random.key(0))
    assert drawn.tolist() == [1.0] * 4


X = mx.ones((2, 2))
BY_POSITION = [
    lambda s: X.astype(mx.float16, s), lambda s: mx.diagonal(X, 0, 0, 1, s), lambda s: X.diagonal(0, 0, 1, s),
    lambda s: mx.linspace(0, 1, 3, True, mx.float32, s), lambda s: mx.random.bernoulli(0.5, (2,), None, s),
    lambda s: mx.random.categorical(X, -1, None, None, None, s), lambda s: mx.random.gumbel((2,), mx.float32, None, s),
    lambda s: mx.random.laplace((2,), mx.float32, 0.0, 1.0, None, s),
    lambda s: mx.random.multivariate_normal(mx.zeros(2), mx.eye(2), (2,), mx.float32, None, s),
    lambda s: mx.random.normal((2,), mx.float32, None, None, None, s), lambda s: mx.random.permutation(X, 0, None, s),
    lambda s: mx.random.randint(0, 4, (2,), mx.int32, None, s), lambda s: mx.random.split(mx.random.key(1), 2, s),
    lambda s: mx.random.truncated_normal(-1.0, 1.0, (2,), mx.float32, None, s),
    lambda s: mx.random.uniform(0, 1, (2,), mx.float32, None, s), lambda s: mx.fft.fft(X, None, -1, "backward", s),
]


@pytest.mark.parametrize("call", BY_POSITION)
def test_a_stream_by_position(call):
    assert call(mx.new_stream(mx.cpu)).size > 0
    with pytest.raises(TypeError):
        call("cpu")


AS_MLX = """
import holdfast.mlx, pickle
holdfast.mlx.install()
import mlx.core as mx
assert [int(part) for part in mx.__version__.split(".")] >= [0, 32, 0], mx.__version__
assert repr(mx.float32) == str(mx.float32) == "mlx.core.float32" and f"{mx.array([1]).dtype}" == "mlx.core.int32"
assert pickle.loads(pickle.dumps(mx.float32)) is mx.float32
import holdfast
assert holdfast.__version__.startswith("0.1")
"""


def test_names_and_version_under_the_name_of_mlx():
    subprocess.run([sys.executable, "-c", AS_MLX], env=ENVIRONMENT, check=True)
    assert repr(mx.float32) == "holdfast.core.float32"
