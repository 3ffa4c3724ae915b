"""Custom kernels that leave their arguments harm nobody: no validator, no setting, any instruction set."""

import os
import subprocess
import sys

import numpy as np
import pytest

import holdfast.core as mx
from test_package import ENVIRONMENT

pytestmark = pytest.mark.skipif(not mx.metal.is_available(), reason="built without the kernel compiler")


def run(name, body, x, size=256, **options):
    kernel = mx.fast.metal_kernel(name, ["x"], ["y"], "uint i = thread_position_in_grid.x;\n" + body,
                                  compile_options=options or None)
    (y,) = kernel(inputs=[x], grid=(256, 1, 1), threadgroup=(64, 1, 1), output_shapes=[(size,)],
                  output_dtypes=[x.dtype])
    return y


# What a program of its own prints to stderr.
def said(code, **settings):
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom test_guards import *\n" + code
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**ENVIRONMENT, **settings})
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_a_write_outside_fails_the_outputs_and_nothing_else():
    neighbour = mx.arange(1024)
    mx.eval(neighbour)
    y = run("beside", "y[i + 1] = x[i];", mx.ones(256))
    place = r"\[beside\] the kernel writes outside of \"y\" at body:2:10: byte 1024 of 1024"
    for way_out in (mx.eval, np.array, repr, lambda a: a.tolist(), lambda a: (a + 1).sum().item()):
        with pytest.raises(RuntimeError, match=place):
            way_out(y)
    assert neighbour.tolist() == list(range(1024))
    assert run("inside", "y[i] = x[i] + 1;", mx.ones(256)).tolist() == [2.0] * 256


def test_far_writes_and_null():
    for body in ("y[(ulong(i) << 40)] = 1;", "y[int(i) * -4096 - 4096] = 1;",
                 "atomic_fetch_add_explicit((device atomic_float*)y + (i << 20) + 300, 1.0f, memory_order_relaxed);"):
        with pytest.raises(RuntimeError, match="the kernel writes outside of \"y\""):
            mx.eval(run("far", body, mx.ones(256)))


def test_a_read_outside_gives_zero_and_one_line():
    error = said("""
for _ in range(3):
    whole = mx.arange(512, dtype=mx.float32)
    mx.eval(whole)
    y = run("border", "y[i] = x[i + 1];", whole[:256])
    assert y.tolist() == [float(i) for i in range(1, 256)] + [0.0]
""")
    assert error.count("\n") == 1
    assert 'holdfast: [border] the kernel reads outside of "x" at body:2:' in error
    assert "byte 1024 of 1024" in error and "HOLDFAST_VALIDATE=1" in error


def test_strict_reads_fail():
    said("""
with pytest.raises(RuntimeError, match='the kernel reads outside of "x"'):
    mx.eval(run("border", "y[i] = x[i + 1];", mx.ones(256)))
""", HOLDFAST_GUARD_KERNELS="strict")


WHOLE = """
whole = mx.arange(512, dtype=mx.float32)
mx.eval(whole)
assert run("border", "y[i] = x[i + 1];", whole[:256], **options).tolist() == [float(i) for i in range(1, 257)]
"""


def test_guards_turned_off():
    assert said("options = {}" + WHOLE, HOLDFAST_GUARD_KERNELS="0") == ""
    assert said("options = {'guard': False}" + WHOLE) == ""


def test_guarded_and_not_are_two_kernels():
    whole = mx.arange(512, dtype=mx.float32)
    mx.eval(whole)
    for guard in (True, False, True):
        assert run("both", "y[i] = x[i + 1];", whole[:256], guard=guard).tolist()[255] == (0.0 if guard else 256.0)


def test_exported_functions_keep_it(tmp_path):
    whole = mx.arange(512, dtype=mx.float32)
    mx.eval(whole)
    for guard in (True, False):
        path = str(tmp_path / f"f{guard}")
        mx.export_function(path, lambda x: run("kept", "y[i] = x[i + 1];", x, guard=guard), whole[:256])
        (y,) = mx.import_function(path)(whole[:256])
        assert y.tolist()[255] == (0.0 if guard else 256.0)


def test_views_that_begin_elsewhere():
    # A kernel may go through the whole of what a view covers, and no further.
    x = mx.arange(300, dtype=mx.float32)
    kernel = mx.fast.metal_kernel("strided", ["x"], ["y"], """
        uint i = thread_position_in_grid.x;
        y[i] = x[int(i) * int(x_strides[0])];""", ensure_row_contiguous=False)
    for view in (x[::-1], x[10::3], mx.broadcast_to(x[7], (40,)), x[5:45]):
        (y,) = kernel(inputs=[view], grid=(view.size, 1, 1), threadgroup=(64, 1, 1), output_shapes=[view.shape],
                      output_dtypes=[mx.float32])
        assert y.tolist() == view.tolist()


def test_a_trap_is_an_exception():
    with pytest.raises(RuntimeError, match=r"\[trap\] the kernel did what the processor refuses"):
        mx.eval(run("trap", "if (x[i] == 1) __builtin_trap(); y[i] = 0;", mx.ones(256)))
    assert run("after", "y[i] = x[i];", mx.ones(256)).sum().item() == 256


def test_bad_options():
    with pytest.raises(ValueError, match="guard must be a bool"):
        run("bad", "y[i] = 0;", mx.ones(256), guard=1)


RACE = """threadgroup float s[64];
uint t = thread_position_in_threadgroup.x;
s[t] = x[i];
%s
y[i] = s[63 - t];"""


def test_a_missing_barrier_is_reported_once():
    code = f"""
for _ in range(3):
    mx.eval(run("raced", {RACE!r} % "", mx.ones(256)))
mx.eval(run("ordered", {RACE!r} % "threadgroup_barrier(mem_flags::mem_threadgroup);", mx.ones(256)))
"""
    # From the compiler, and from the kernels that it left on disk.
    for _ in range(2):
        assert said(code) == ("holdfast: [raced] threads read \"s\" at body:6:8 which others write at body:4:6, with no "
                              "threadgroup_barrier between them: results may differ from run to run (run with HOLDFAST_VALIDATE=1)\n")
