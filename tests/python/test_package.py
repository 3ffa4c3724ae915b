"""The package around the module: programs written for MLX, the command, stubs, the cost of importing."""

import ast
import os
import subprocess
import sys

import pytest

import holdfast
import holdfast.core as mx
import surface

FOLDER = os.path.dirname(holdfast.__file__)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(FOLDER), os.environ.get("PYTHONPATH", "")])}


def run(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], env=ENVIRONMENT, capture_output=True, text=True, **options)


def test_programs_for_mlx(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    script.write_text(
        "import sys, beside\nimport mlx.core as mx\nfrom mlx.core import random\nimport mlx.core.linalg as linalg\n"
        "import mlx\nassert mlx.core is mx and mx.metal.is_available() is KERNELS and __name__ == '__main__'\n"
        "print(type(mx.ones(2) + random.uniform()).__module__, linalg.norm(mx.ones(4)).item(), sys.argv[1:], beside.VALUE)\n".replace("KERNELS", str(mx.metal.is_available())))
    result = run("-m", "holdfast.mlx", str(script), "one", "two")
    assert result.stdout.strip() == "holdfast.core 2.0 ['one', 'two'] 5", result.stderr
    result = run("-m", "holdfast.mlx", "-c", "import mlx.core as mx; print(mx.ones(2).sum().item())")
    assert result.stdout.strip() == "2.0", result.stderr
    assert run("-m", "holdfast.mlx").returncode == 2
    assert run("-m", "holdfast.mlx", "-c", "raise SystemExit(3)").returncode == 3


def test_install_in_a_program():
    code = ("import holdfast.mlx; holdfast.mlx.install(); holdfast.mlx.install(); import mlx.core, holdfast.core; "
            "assert mlx.core is holdfast.core")
    result = run("-c", code)
    assert result.returncode == 0, result.stderr


def test_the_command():
    if not os.path.exists(os.path.join(FOLDER, "bin", "holdfast")):
        pytest.skip("the command is not built")
    result = run("-m", "holdfast", "kernel", "--help")
    assert "check" in result.stdout + result.stderr


def test_stubs_cover_every_name():
    declared = {}
    for module in ["__init__", *surface.MODULES]:
        with open(os.path.join(FOLDER, "core", module + ".pyi")) as source:
            tree = ast.parse(source.read())
        names = set()
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
                if isinstance(node, ast.ClassDef):
                    names |= {f"{node.name}.{member.name}" for member in node.body if isinstance(member, ast.FunctionDef)}
            elif isinstance(node, ast.AnnAssign):
                names.add(node.target.id)
        prefix = "" if module == "__init__" else module + "."
        declared.update({prefix + name: True for name in names})
    missing = [name for name, _ in surface.names() if name not in declared]
    assert not missing


def test_import_loads_neither_numpy_nor_the_kernel_compiler():
    code = ("import sys, holdfast.core as mx; mx.eval(mx.ones(3) + 1); assert 'numpy' not in sys.modules; "
            "maps = open('/proc/self/maps').read(); assert 'holdfast-jit' not in maps and 'LLVM' not in maps")
    result = run("-c", code)
    assert result.returncode == 0, result.stderr


def test_exit_with_work_and_arrays_alive():
    code = ("import holdfast.core as mx\nimport numpy as np\n"
            "kept = [mx.asarray(np.ones(1000, np.float32)) for _ in range(100)]\n"
            "class Last:\n    def __del__(self):\n        kept.clear()\nlast = Last()\n"
            "mx.async_eval([a + 1 for a in kept])\nf = mx.compile(lambda x: x + kept[0])\nf(kept[1])\n")
    result = run("-c", code)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(not os.environ.get("HOLDFAST_TEST_LONG") or "LD_PRELOAD" in os.environ, reason="builds everything once more")
def test_pip_install_into_a_fresh_environment(tmp_path):
    if run("-m", "venv", str(tmp_path / "venv")).returncode != 0:
        pytest.skip("python3-venv is not installed")
    root, python = os.path.join(os.path.dirname(__file__), "..", ".."), str(tmp_path / "venv" / "bin" / "python")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HOLDFAST_PYTHON_PACKAGE")}
    environment["HOLDFAST_BUILD_DIRECTORY"] = str(tmp_path / "build")

    def check(*words):
        result = subprocess.run([python, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    check("-m", "pip", "install", "--no-index", os.path.abspath(root))
    assert check("-c", "import holdfast; print(holdfast.__version__)").strip() == holdfast.__version__
    check("-c", "import holdfast.core as mx; k = mx.fast.metal_kernel('k', ['x'], ['y'], 'y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];') "
          "if mx.metal.is_available() else None; r = k(inputs=[mx.arange(4)], grid=(4, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(4,)], "
          "output_dtypes=[mx.int32])[0] if k else 2 * mx.arange(4); assert r.tolist() == [0, 2, 4, 6]")
    assert "kernel" in check("-m", "holdfast", "help")


def test_version():
    assert holdfast.__version__ == mx.__version__ and holdfast.__version__.count(".") == 2
