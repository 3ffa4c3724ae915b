"""Arrays that a GPU has, as NumPy sees them: on the simulated GPU, whose memory the host cannot touch. In a process of its own, since the
environment decides."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import gc, os, sys
if "HOLDFAST_PYTHON_PACKAGE" in os.environ:
    sys.path.insert(0, os.environ["HOLDFAST_PYTHON_PACKAGE"])
import numpy as np
import holdfast.core as mx


def on_gpu():
    a = mx.add(mx.arange(6, dtype=mx.float32), 1, stream=mx.gpu)
    mx.eval(a)
    return a
"""


def run(program):
    environment = dict(os.environ, HOLDFAST_GPU="simulated", HOLDFAST_DEFAULT_DEVICE="gpu")
    result = subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr


def test_views_are_read_only_and_live_as_long_as_needed():
    pytest.importorskip("numpy")
    run("""
a = on_gpu()
view = np.asarray(a)
assert view.tolist() == [1, 2, 3, 4, 5, 6]
assert not view.flags.writeable and memoryview(a).readonly
again = mx.multiply(a, 2, stream=mx.gpu)
assert again.tolist() == [2, 4, 6, 8, 10, 12]
del a, again
gc.collect()
mx.clear_cache()
other = [np.asarray(on_gpu()) for _ in range(8)]
assert view.tolist() == [1, 2, 3, 4, 5, 6]
host = mx.array([1.0, 2.0])
assert np.asarray(host).flags.writeable
""")


def test_what_is_written_before_the_next_use_counts():
    pytest.importorskip("numpy")
    run("""
import io, struct
a = on_gpu()
io.BytesIO(struct.pack("6f", 1, 2, 70, 4, 5, 6)).readinto(a)
assert (a + 1).tolist() == [2, 3, 71, 5, 6, 7]
b = on_gpu()
shared = np.from_dlpack(b)
assert shared.tolist() == [1, 2, 3, 4, 5, 6] and (b * 2).tolist() == [2, 4, 6, 8, 10, 12]
""")


def test_every_way_to_the_elements():
    pytest.importorskip("numpy")
    run("""
import copy, pickle
a = on_gpu()
assert a[3].item() == 4 and a.sum().item() == 21 and float(a[0]) == 1 and list(a[:2]) == [1, 2]
assert pickle.loads(pickle.dumps(a)).tolist() == a.tolist() == copy.deepcopy(a).tolist()
assert a[a > 4].tolist() == [5, 6] and "4" in str(a)
assert mx.array(np.asarray(a)).tolist() == a.tolist()
""")
