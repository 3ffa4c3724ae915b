"""`import mlx.core` as holdfast.core, where MLX's package is not installed, or where HOLDFAST_AS_MLX=1 says so.

A .pth file of the package calls start() whenever Python starts, so that console scripts and child processes of programs for MLX run. It is a
module of its own, which imports nothing of Holdfast until a program asks for mlx.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

# The version of MLX whose interface this is.
INTERFACE_VERSION = "0.32.4"

# Modules of MLX that have another place here.
_LAYERS = {"base": "module", "activations": "activations", "containers": "containers", "convolution": "convolutions",
           "convolution_transpose": "convolutions", "distributed": "distributed", "dropout": "dropout", "embedding": "linear", "linear": "linear",
           "normalization": "normalization", "pooling": "pooling", "positional_encoding": "transformer", "quantized": "linear",
           "recurrent": "recurrent", "transformer": "transformer", "upsample": "upsample"}
_MOVED = {"mlx.nn.layers": "holdfast.nn", **{"mlx.nn.layers." + theirs: "holdfast.nn." + ours for theirs, ours in _LAYERS.items()}}


def _ours(name):
    return _MOVED.get(name, "holdfast" + name.removeprefix("mlx"))


class InPlaceOfMlx(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds mlx and what is in it as modules of Holdfast; with `only_core`, mlx.core alone."""

    def __init__(self, only_core):
        self._only_core = only_core

    def find_spec(self, name, path=None, target=None):
        """Of MLX's modules; None for all others."""
        if name != "mlx" and not name.startswith("mlx."):
            return None
        if self._only_core and name != "mlx.core" and not name.startswith("mlx.core."):
            return None
        if name == "mlx":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if name.startswith("mlx.core."):
            importlib.import_module("holdfast.core")  # it has modules that are no files
        known = sys.modules.get(_ours(name))
        if known is None and importlib.util.find_spec(_ours(name)) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        """The module of ours, which keeps its own specification."""
        if spec.name == "mlx":
            return None
        module = importlib.import_module(_ours(spec.name))
        spec.loader_state = getattr(module, "__spec__", None)
        return module

    def exec_module(self, module):
        """Nothing is left to be executed."""
        spec = module.__spec__
        if spec.name == "mlx":
            module.__doc__ = "MLX's package, in whose place Holdfast is."
            return
        module.__spec__ = spec.loader_state
        if spec.name == "mlx.core":
            # Under MLX's name, what programs look at is MLX's: versions that they compare, names that they print.
            module.__version__ = INTERFACE_VERSION
            module._set_printed_module("mlx.core")


def hook():
    """Puts the finder in front. Imports nothing."""
    if not any(isinstance(finder, InPlaceOfMlx) for finder in sys.meta_path):
        sys.meta_path.insert(0, InPlaceOfMlx(only_core=importlib.util.find_spec("mlx") is not None))


def start():
    """What the .pth file calls."""
    wanted = os.environ.get("HOLDFAST_AS_MLX", "")
    if wanted != "0" and (wanted or importlib.util.find_spec("mlx") is None):
        hook()
