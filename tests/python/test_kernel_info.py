"""What became of a custom kernel: kernel.info(), HOLDFAST_LOWERING, and errors about small inputs."""

import subprocess
import sys

import pytest

import holdfast.core as mx
from test_package import ENVIRONMENT

pytestmark = pytest.mark.skipif(not mx.metal.is_available(), reason="built without the kernel compiler")


def scale(name, body="y[i] = x[i] * T(2);", x=None, **rest):
    kernel = mx.fast.metal_kernel(name, ["x"], ["y"], "uint i = thread_position_in_grid.x;\n" + body)
    x = mx.arange(8, dtype=mx.float32) if x is None else x
    (y,) = kernel(inputs=[x], template=[("T", mx.float32)], grid=(8, 1, 1), threadgroup=(8, 1, 1), output_shapes=[(8,)],
                  output_dtypes=[mx.float32], **rest)
    return kernel, y


def test_info_says_how_each_kind_was_compiled():
    kernel, y = scale("informed")
    # Not evaluated: it is compiled now.
    (row,) = kernel.info()
    assert row["code"] == "widened" and row["reason"] is None and row["missing_barrier"] is None
    assert row["template"] == {"T": mx.float32}
    assert row["from"] in ("compiler", "disk") and row["milliseconds"] > 0
    assert "const device float* x" in row["signature"] and "device float* y" in row["signature"]
    assert y.tolist() == [2.0 * i for i in range(8)]
    kernel(inputs=[mx.array(3.0)], template=[("T", mx.float16)], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(8,)],
           output_dtypes=[mx.float32])
    with pytest.raises(RuntimeError, match="subscripted value"):
        kernel.info()


def test_no_calls_no_rows():
    assert mx.fast.metal_kernel("silent", ["x"], ["y"], "y[0] = x[0];").info() == []


def test_the_reference_lowering_can_be_asked_for():
    code = """
import holdfast.core as mx
kernel = mx.fast.metal_kernel("slow", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = simd_sum(x[i]);")
(y,) = kernel(inputs=[mx.arange(8, dtype=mx.float32)], grid=(8, 1, 1), threadgroup=(8, 1, 1), output_shapes=[(8,)], output_dtypes=[mx.float32])
print(kernel.info()[0]["code"], y.tolist()[3])
"""
    for setting, expected in (("reference", "reference 28.0\n"), ("automatic", "widened 28.0\n")):
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                env={**ENVIRONMENT, "HOLDFAST_LOWERING": setting})
        assert (result.stdout, result.stderr) == (expected, "")


def test_errors_say_how_a_small_input_was_declared():
    with pytest.raises(RuntimeError) as error:
        mx.eval(scale("zero_d", x=mx.array(2.0))[1])
    assert "note: input 'x' has no dimensions: it is declared 'const constant float& x', a value that is used without [ ]" in str(error.value)
    with pytest.raises(RuntimeError) as error:
        mx.eval(scale("one_element", "y[i] = x * T(2);", mx.array([2.0]))[1])
    assert "note: input 'x' has 1 element, and fewer than 8: it is declared 'const constant float* x', in constant memory" in str(error.value)
    assert "its value is x[0]" in str(error.value)
    # An error about something else says nothing about inputs.
    with pytest.raises(RuntimeError) as error:
        mx.eval(scale("other", "y[i] = nothing;", mx.array([2.0]))[1])
    assert "note: input" not in str(error.value)
