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


def test_stubs_have_types():
    with open(os.path.join(FOLDER, "core", "__init__.pyi")) as source:
        functions = {node.name: node for node in ast.parse(source.read()).body if isinstance(node, ast.FunctionDef)}
    assert ast.unparse(functions["grad"].returns) == "Callable[P, Any]"
    assert ast.unparse(functions["compile"].returns) == "Callable[P, R]"
    assert ast.unparse(functions["load"].returns).startswith("array | dict[str, array]")
    assert ast.unparse(functions["add"].args.args[0].annotation) == "array | _Scalar"
    untyped = {name for name, node in functions.items() if ast.unparse(node.returns) == "Any"}
    assert untyped <= {"import_function", "printoptions"}


def test_another_python_is_refused_with_a_sentence():
    code = ("import sys; sys.version_info = (3, 10, 13, 'final', 0); import holdfast")
    result = run("-c", code)
    assert result.returncode == 1 and "ImportError: holdfast needs Python 3.11 or newer, and " in result.stderr


SINGULAR = "import holdfast.core as mx\nmx.eval(mx.linalg.inv(mx.zeros((2, 2)), stream=mx.cpu))\n"
FAILING = SINGULAR.replace("linalg.inv(mx.zeros((2, 2)), stream=mx.cpu)", "take(mx.arange(3), mx.array([9]))")
ANNOUNCED = "[holdfast] a command failed; what ran before it is in "


@pytest.mark.parametrize("handled", [True, False])
def test_failures_that_nothing_handles_leave_a_file(tmp_path, handled):
    code = FAILING
    if handled:
        code = "try:\n    exec(CODE)\nexcept RuntimeError as error:\n    print('handled', error)\n".replace("CODE", repr(FAILING))
    result = subprocess.run([sys.executable, "-c", code], env={**ENVIRONMENT, "HOLDFAST_RING_DIR": str(tmp_path)}, capture_output=True, text=True)
    files = list(tmp_path.iterdir())
    if handled:
        assert result.returncode == 0 and result.stdout.startswith("handled [") and not result.stderr and not files
    else:
        assert result.returncode == 1
        assert len(files) == 1 and result.stderr.rstrip().endswith(ANNOUNCED + str(files[0]))
        assert "Traceback" in result.stderr and files[0].read_text().startswith("[")


def test_an_error_raised_from_another_is_not_handled(tmp_path):
    code = f"try:\n    exec({FAILING!r})\nexcept RuntimeError as error:\n    raise KeyError('gone') from error\n"
    result = subprocess.run([sys.executable, "-c", code], env={**ENVIRONMENT, "HOLDFAST_RING_DIR": str(tmp_path)}, capture_output=True, text=True)
    assert ANNOUNCED in result.stderr and len(list(tmp_path.iterdir())) == 1


def test_version():
    assert holdfast.__version__ == mx.__version__ and holdfast.__version__.count(".") == 2
