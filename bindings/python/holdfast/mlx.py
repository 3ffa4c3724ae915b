"""Programs written for MLX, with Holdfast in its place.

``python -m holdfast.mlx SCRIPT ARGUMENTS…`` runs a script whose ``import mlx.core`` gives ``holdfast.core``;
``-m MODULE`` and ``-c CODE`` work as for Python itself. Inside a program, ``holdfast.mlx.install()`` does it for
what is imported afterwards. The Python parts of MLX (mlx.nn, mlx.optimizers, mlx.utils) are used where installed; elsewhere
they are holdfast.nn, holdfast.optimizers and holdfast.utils.

Where no package of MLX is installed, and Holdfast is, ``import mlx.core`` works without any of this (holdfast_as_mlx.py).
``HOLDFAST_AS_MLX=1`` makes it so beside a package of MLX, ``HOLDFAST_AS_MLX=0`` never.
"""

import importlib
import os
import sys

import holdfast_as_mlx

USAGE = "usage: python -m holdfast.mlx (SCRIPT | -m MODULE | -c CODE) [ARGUMENT...]"


def install():
    """From now on `import mlx.core` gives holdfast.core. Nothing happens when it does already."""
    core = importlib.import_module("holdfast.core")
    present = sys.modules.get("mlx.core")
    if present is core:
        return
    if present is not None:
        raise RuntimeError("[install] mlx.core has been imported before: call holdfast.mlx.install() first")
    holdfast_as_mlx.hook()
    importlib.import_module("mlx.core")


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
