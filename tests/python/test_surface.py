"""Every name: it is there, it is documented, its examples run; where MLX is installed, it has the same names and
gives the same results."""

import inspect
import math

import numpy as np
import pytest

import holdfast.core as mx
import surface

try:
    import mlx.core as mlx
except ImportError:
    mlx = None

needs_mlx = pytest.mark.skipif(mlx is None, reason="mlx is not installed")

# Examples whose results differ on purpose, or are of this machine.
DIFFERENT = {
    "device_info": "the keys are our own",
    "metal.device_info": "MLX has no Metal on Linux",
    "metal.is_available": "MSL kernels run here",
    "fast.metal_kernel": "MLX has no Metal on Linux",
    "distributed.is_available": "MLX has back-ends for several processes",
    "clear_streams": "MLX cannot evaluate on this thread any more then",
    "linalg.qr": "signs are free",
    "qqmm": "MLX has none on CPUs",
    "gather_qqmm": "MLX has none on CPUs",
}

# Names of MLX that are not here, and why.
NOT_HERE = {
    "_gc_func": "of its binding library",
    "array.__setstate__": "pickle goes through __reduce__",
    "PrintOptions.precision": "an attribute of objects here",
}


@pytest.mark.parametrize("name, value", surface.names(), ids=lambda x: x if isinstance(x, str) else "")
def test_documented(name, value):
    if callable(value):
        assert inspect.getdoc(value), name


@pytest.mark.parametrize("name, expression", surface.examples())
def test_example_runs(name, expression):
    if name == "fast.metal_kernel" and not mx.metal.is_available():
        pytest.skip("built without the kernel compiler")
    result = eval(expression, {"mx": mx})
    mx.eval(result)


def has_example(name, value):
    return not inspect.isroutine(value) or any(each == name for each, _ in surface.examples())


def test_functions_have_examples():
    without = {name for name, value in surface.names() if inspect.isroutine(value) and not has_example(name, value)}
    # Those need files, several processes, CUDA, or a capture.
    assert without <= {"save_gguf", "load", "export_function", "exporter", "import_function", "fast.cuda_kernel",
                       "fast.precompiled_cuda_kernel", "distributed.send", "distributed.recv", "distributed.recv_like"}


def plain(value):
    """A result as NumPy arrays, numbers and text."""
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    kind = type(value).__name__
    if kind == "array" and hasattr(value, "tolist"):
        return repr(value.dtype).rpartition(".")[2], value.shape, np.array(value.tolist())
    if isinstance(value, (bool, int, float, complex, type(None))):
        return value
    if isinstance(value, str):
        return value.replace("mlx.core", "holdfast.core")
    text = repr(value)
    return kind if " object at 0x" in text else text.replace("mlx.core", "holdfast.core")


def assert_same(ours, theirs):
    if isinstance(ours, tuple) and len(ours) == 3 and isinstance(ours[2], np.ndarray):
        assert ours[:2] == theirs[:2]
        np.testing.assert_allclose(ours[2], theirs[2], rtol=2e-5, atol=2e-6)
    elif isinstance(ours, (list, tuple)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_same(a, b)
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours:
            assert_same(ours[key], theirs[key])
    elif isinstance(ours, float):
        assert math.isclose(ours, theirs, rel_tol=1e-6) or ours == theirs or ours != ours
    else:
        assert ours == theirs


@needs_mlx
@pytest.mark.parametrize("name, expression", [each for each in surface.examples() if each[0] not in DIFFERENT])
def test_same_as_mlx(name, expression):
    assert_same(plain(eval(expression, {"mx": mx})), plain(eval(expression, {"mx": mlx})))


@needs_mlx
def test_names_of_mlx():
    missing = [name for name in dir(mlx) if not name.startswith("__") and not hasattr(mx, name)]
    for module in surface.MODULES:
        missing += [f"{module}.{name}" for name in dir(getattr(mlx, module))
                    if not name.startswith("__") and not hasattr(getattr(mx, module), name)]
    for kind in ("array", "Dtype", "Device", "Stream", "StreamContext", "ArrayAt", "ArrayIterator", "custom_function",
                 "FunctionExporter", "PrintOptions", "finfo", "iinfo"):
        ours = mx.finfo(mx.float32) if kind == "finfo" else mx.iinfo(mx.int32) if kind == "iinfo" else getattr(mx, kind)
        missing += [f"{kind}.{name}" for name in vars(getattr(mlx, kind))
                    if not hasattr(ours, name) and name not in ("__div__", "__rdiv__")]
    assert set(missing) <= set(NOT_HERE)


@needs_mlx
@pytest.mark.parametrize("name, value", surface.names(), ids=lambda x: x if isinstance(x, str) else "")
def test_parameters_of_mlx(name, value):
    """Each parameter that MLX names in its signature is a parameter here."""
    theirs = mlx
    for part in name.split("."):
        theirs = getattr(theirs, part, None)
    signatures = getattr(theirs, "__nb_signature__", None)
    if not signatures or not inspect.isroutine(value):
        return
    import re

    ours = inspect.signature(value).parameters
    text = signatures[0][0]
    for found in re.findall(r"[(,] *\**(\w+) *[:=)]", text.replace("\\", "")):
        if found in ("self", "arg", "args", "kwargs") or f"*{found}" in text:
            continue
        if re.search(rf"\b{found}\s*:", text):
            assert found in ours, f"{name} has no parameter {found}: {text}"
