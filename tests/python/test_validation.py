"""The validator from Python: scopes, reports as objects, errors that are raised."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import holdfast.core as mx
from holdfast import validation
from test_package import ENVIRONMENT

needs_kernels = pytest.mark.skipif(not mx.metal.is_available(), reason="built without the kernel compiler")

CLEAN = "uint i = thread_position_in_grid.x; y[i] = metal::max(x[i], 0.0f);"
WRITES_ITS_INPUT = "uint i = thread_position_in_grid.x; ((device float*)x)[i] = 0; y[i] = x[i];"
OUT_OF_BOUNDS = "uint i = thread_position_in_grid.x; y[i] = x[i + 1000000];"


def run(name, source):
    kernel = mx.fast.metal_kernel(name, ["x"], ["y"], source)
    (y,) = kernel(inputs=[mx.ones(256)], grid=(256, 1, 1), threadgroup=(64, 1, 1), output_shapes=[(256,)],
                  output_dtypes=[mx.float32])
    mx.eval(y)
    mx.synchronize()


@needs_kernels
def test_reports_are_objects():
    with validation.Scope() as scope:
        assert scope.reports == []
        run("clean", CLEAN)
        assert scope.reports == []
        run("writes", WRITES_ITS_INPUT)
        inside = scope.reports
    assert scope.reports == inside
    (report,) = [each for each in inside if each.id == "bindings.input-written"]
    assert report.severity == "error" and report.count == 1 and report.sentence and report.advice
    assert "writes" in report.text and str(report) == report.text and report.fields
    assert '"bindings.input-written"' in report.json
    run("writes", WRITES_ITS_INPUT)  # outside nobody looks
    assert scope.reports == inside


@needs_kernels
def test_errors_are_raised():
    with validation.Scope(mode="throw") as scope:
        run("clean", CLEAN)
        # Found when it ran, and raised by whoever waits for it.
        with pytest.raises(validation.ValidationError, match="bounds") as caught:
            run("bounds", OUT_OF_BOUNDS)
        assert isinstance(caught.value, RuntimeError)
        raised, (kept,) = caught.value.report, scope.reports
        assert raised.id == "kernels.out-of-bounds" and raised.fields == kept.fields and raised.json == kept.json
        assert (raised.sentence, raised.advice, raised.text) == (kept.sentence, kept.advice, kept.text)
        # Found when it is encoded, and thrown by the call that does it.
        with pytest.raises(validation.ValidationError) as early:
            run("writes", WRITES_ITS_INPUT)
        assert early.value.report.id == "bindings.input-written"
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.report == caught.value.report and str(again) == str(caught.value)


def uses_of_a_result():
    """By name: what reads the numbers of an array, or begins to."""
    return {
        "eval": mx.eval, "item": lambda y: y[0].item(), "print": str, "tolist": lambda y: y.tolist(), "numpy": np.array,
        "memory": memoryview, "dlpack": np.from_dlpack, "float": lambda y: float(y.sum()), "pickle": pickle.dumps,
        "async_eval": lambda y: (mx.async_eval(y), mx.eval(y)), "an op on it": lambda y: mx.eval(mx.exp(y) + 1),
        "synchronize": lambda y: (mx.async_eval(y), mx.synchronize()),
    }


@needs_kernels
@pytest.mark.parametrize("use", uses_of_a_result().values(), ids=list(uses_of_a_result()))
def test_what_a_kernel_does_wrong_is_raised_by_every_use_of_its_outputs(use):
    kernel = mx.fast.metal_kernel("bounds", ["x"], ["y"], "uint i = thread_position_in_grid.x; x[0]; y[i + 200] = 1;")
    with validation.Scope(mode="throw"):
        for _ in range(2):
            (y,) = kernel(inputs=[mx.ones(256)], grid=(256, 1, 1), threadgroup=(64, 1, 1), output_shapes=[(256,)],
                          output_dtypes=[mx.float32])
            with pytest.raises(validation.ValidationError, match="out-of-bounds"):
                use(y)


@needs_kernels
def test_checks_and_reports_that_are_not_wanted():
    with validation.Scope(["lifetime", "hazards"]) as scope:
        run("writes", WRITES_ITS_INPUT)
    assert not scope.reports
    with validation.Scope(ignore=["bindings.input-written"]) as scope:
        run("writes", WRITES_ITS_INPUT)
    assert "bindings.input-written" not in [each.id for each in scope.reports]


def test_what_is_left_over(tmp_path):
    with validation.Scope() as scope:
        mx.metal.start_capture(tmp_path / "left.hfcap")
        scope.check_left_over()
        mx.metal.stop_capture()
    assert [each for each in scope.reports if "capture" in each.sentence]


def test_bad_arguments_and_nesting():
    for arguments in ({"checks": "nothing-of-the-kind"}, {"mode": "shout"}, {"ignore": "no.such"}):
        with pytest.raises(ValueError):
            validation.Scope(**arguments).__enter__()
    with validation.Scope() as scope:
        with pytest.raises(RuntimeError):
            validation.Scope().__enter__()
        mx.eval(mx.ones(3) + 1)
    with pytest.raises(RuntimeError):
        scope.check_left_over()
    with pytest.raises(ZeroDivisionError):
        with validation.Scope():
            1 / 0
    with validation.Scope():
        pass


@needs_kernels
def test_raised_where_a_variable_asked_for_it():
    code = ("import holdfast.core as mx\n"
            "k = mx.fast.metal_kernel('w', ['x'], ['y'], 'uint i = thread_position_in_grid.x; ((device float*)x)[i] = 0; y[i] = 1;')\n"
            "try:\n"
            "    mx.eval(k(inputs=[mx.ones(4)], grid=(4, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(4,)], output_dtypes=[mx.float32]))\n"
            "    mx.synchronize()\n"
            "except RuntimeError as error:\n"
            "    print(type(error).__module__, type(error).__name__, error.report.id)\n")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            env={**ENVIRONMENT, "HOLDFAST_VALIDATE": "1", "HOLDFAST_VALIDATE_MODE": "throw"})
    assert result.stdout.strip() == "holdfast.validation ValidationError bindings.input-written", result.stderr
