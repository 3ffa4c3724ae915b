"""An array that could not be computed gives its elements to nobody: every way out raises what went wrong."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("kind, fault", [("kernel", "dispatch:1"), ("memory", "alloc:30+"), ("load", "")])
def test_every_way_out_raises(kind, fault, tmp_path):
    script = os.path.join(os.path.dirname(__file__), "ways_out.py")
    result = subprocess.run([sys.executable, script, kind, str(tmp_path)], capture_output=True, text=True,
                            env={**os.environ, "HOLDFAST_FAULT": fault})
    assert (result.stdout, result.returncode) == ("", 0), result.stderr
