"""Where the packages are: ours in HOLDFAST_PYTHON_PACKAGE, or installed; MLX in this interpreter, or in the python3 that
is found first, if that is of the same version."""

import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
if "HOLDFAST_PYTHON_PACKAGE" in os.environ:
    sys.path.insert(0, os.environ["HOLDFAST_PYTHON_PACKAGE"])


def find_mlx():
    if importlib.util.find_spec("mlx") is not None:
        return
    code = ("import sys, importlib.util as u; print(*sys.version_info[:2], sep='.'); "
            "print(u.find_spec('mlx.core').origin)")
    try:
        result = subprocess.run(["python3", "-c", code], capture_output=True, text=True)
    except OSError:
        return
    lines = result.stdout.splitlines()
    if result.returncode == 0 and lines[0] == f"{sys.version_info[0]}.{sys.version_info[1]}":
        # By a link, so that nothing but this package comes from there.
        folder = tempfile.mkdtemp(prefix="holdfast-tests-")
        atexit.register(shutil.rmtree, folder)
        os.symlink(os.path.dirname(lines[1]), os.path.join(folder, "mlx"))
        sys.path.append(folder)


find_mlx()
