"""Programs written for MLX, with Holdfast in its place.

``python -m holdfast.mlx SCRIPT ARGUMENTS…`` runs a script whose ``import mlx.core`` gives ``holdfast.core``;
``-m MODULE`` and ``-c CODE`` work as for Python itself. Inside a program, ``holdfast.mlx.install()`` does it for
what is imported afterwards. The Python parts of MLX (mlx.nn, mlx.optimizers, mlx.utils) are used where installed.
"""

import importlib
import importlib.util
import os
import sys
import types

# The version of MLX whose interface this is.
INTERFACE_VERSION = "0.32.4"

USAGE = "usage: python -m holdfast.mlx (SCRIPT | -m MODULE | -c CODE) [ARGUMENT...]"


class _WithoutMlx:
    """Comes last in sys.meta_path: says what to do where the package of MLX is not installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("mlx."):
            raise ModuleNotFoundError(
                f"No module named {name!r}: holdfast has mlx.core, and takes the Python parts of MLX (mlx.nn, mlx.optimizers, mlx.utils) from "
                f"its package, which is not installed here: pip install mlx", name=name)
        return None


def install():
    """From now on `import mlx.core` gives holdfast.core. Nothing happens when it does already."""
    import holdfast.core as core

    present = sys.modules.get("mlx.core")
    if present is core:
        return
    if present is not None:
        raise RuntimeError("[install] mlx.core has been imported before: call holdfast.mlx.install() first")
    if "mlx" not in sys.modules:
        if importlib.util.find_spec("mlx") is None:
            package = types.ModuleType("mlx", "MLX's package; its core is holdfast.core.")
            package.__path__ = []
            sys.modules["mlx"] = package
            sys.meta_path.append(_WithoutMlx)
        else:
            importlib.import_module("mlx")
    sys.modules["mlx"].core = core
    # Under MLX's name, what programs look at is MLX's: versions that they compare, names that they print.
    core.__version__ = INTERFACE_VERSION
    core._set_printed_module("mlx.core")
    for name, module in list(sys.modules.items()):
        if name == "holdfast.core" or name.startswith("holdfast.core.") and not name.startswith("holdfast.core._"):
            sys.modules["mlx" + name.removeprefix("holdfast")] = module


def main(arguments):
    """Runs a program as Python would, with MLX replaced."""
    import runpy

    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    install()
    if arguments[0] in ("-m", "-c"):
        if len(arguments) < 2:
            print(USAGE, file=sys.stderr)
            return 2
        sys.path[0] = ""
        sys.argv = arguments[1:] if arguments[0] == "-m" else ["-c", *arguments[2:]]
        if arguments[0] == "-m":
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
        return 0
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    # Not as __main__: the module that programs import must be the one that knows it is installed.
    sys.exit(importlib.import_module("holdfast.mlx").main(sys.argv[1:]))
