"""The programs in examples/python run, and what they show is so."""

import importlib.util
import os
import subprocess
import sys

import pytest

import holdfast
import holdfast.core as mx

EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "python")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(holdfast.__file__))}

needs_kernels = pytest.mark.skipif(not mx.metal.is_available(), reason="built without the kernel compiler")


@needs_kernels
@pytest.mark.parametrize("name, shown", [("write_a_kernel", ["undeclared identifier 'gelv'", "bindings.input-written", "bit for bit the same"]),
                                         ("fused_softmax", ["compiled: the same"])])
def test_program(name, shown):
    if name == "write_a_kernel" and not os.path.exists(os.path.join(os.path.dirname(holdfast.__file__), "bin", "holdfast")):
        pytest.skip("the command is not built")
    result = subprocess.run([sys.executable, os.path.join(EXAMPLES, name + ".py")], env=ENVIRONMENT,
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    for text in shown:
        assert text in result.stdout


def test_transformer_learns():
    spec = importlib.util.spec_from_file_location("transformer", os.path.join(EXAMPLES, "transformer.py"))
    transformer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(transformer)
    losses, write = transformer.train(60)
    assert losses[0] > 2.5 and losses[-1] < 0.8
    assert write("the ", 10).startswith("the ") and len(write("the ", 10)) == 14


def test_no_example_is_left_out():
    assert {name for name in os.listdir(EXAMPLES) if name.endswith(".py")} == {"fused_softmax.py", "transformer.py", "write_a_kernel.py"}
