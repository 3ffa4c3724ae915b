"""The audit of tests/peers: what MLX and this package do with the same good and bad arguments differs only where it is meant to."""

import os
import subprocess
import sys

import pytest

from test_mlx_packages import folder_of_mlx
from test_package import ENVIRONMENT, FOLDER

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "peers", "audit.py")


def is_audited_version():
    folder = folder_of_mlx()
    if folder is None:
        return False
    names = os.listdir(os.path.dirname(os.path.realpath(os.path.join(folder, "mlx"))))
    return "mlx-0.32.4.dist-info" in names


@pytest.mark.skipif(not is_audited_version(), reason="mlx 0.32.4 is not installed")
def test_no_difference_without_a_reason():
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([ENVIRONMENT["PYTHONPATH"], folder_of_mlx()]), "HOLDFAST_AS_MLX": "0"}
    result = subprocess.run([sys.executable, SCRIPT, "--package", os.path.dirname(FOLDER)], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert int(result.stdout.splitlines()[-1].split()[0]) > 20000
