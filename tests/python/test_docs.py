"""What help() shows: parameters with types and meaning, the result, and examples with what they give."""

import ast
import importlib.util
import inspect
import os
import re
import types

import pytest

import holdfast.core as mx
import surface

BINDINGS = os.path.join(os.path.dirname(__file__), "..", "..", "bindings", "python")
_spec = importlib.util.spec_from_file_location("make_examples", os.path.join(BINDINGS, "make_examples.py"))
make_examples = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_examples)

# Where what they give is left open: of this machine, of this moment, or of several processes.
FUNCTIONS = [(name, value) for name, value in surface.names() if inspect.isroutine(value)]


def shown(function):
    """(expression, output) of each example."""
    found, lines = [], None
    for line in (inspect.getdoc(function) or "").splitlines():
        if line.strip().startswith(">>> "):
            lines = []
            found.append((line.strip()[4:], lines))
        elif lines is not None and line.startswith("    "):
            lines.append(line[4:])
        else:
            lines = None
    return [(expression, "\n".join(lines)) for expression, lines in found]


EXAMPLES = [(name, *example) for name, value in FUNCTIONS for example in shown(value)]


@pytest.mark.parametrize("name, function", FUNCTIONS, ids=lambda x: x if isinstance(x, str) else "")
def test_parameters_and_result(name, function):
    text = inspect.getdoc(function)
    assert "\nReturns:\n" in text
    described = re.findall(r"^    (\w+) \(.+?\): \S", text.partition("\nReturns:")[0], re.M)
    assert described == [each for each in inspect.signature(function).parameters if each != "self"]


@pytest.mark.parametrize("name, expression, output", EXAMPLES)
def test_example_gives_what_it_shows(name, expression, output):
    if name == "fast.metal_kernel" and not mx.metal.is_available():
        pytest.skip("built without the kernel compiler")
    result = eval(expression, {"mx": mx})
    text = repr(result)
    if output:
        assert make_examples.is_same(output, text), text
    else:
        assert result is None or make_examples.OPEN.search(expression) or make_examples.OPEN.search(text) or text.count("\n") >= make_examples.MOST_LINES


KINDS = {"array": mx.array, "tuple": tuple, "list": list, "dict": dict, "None": type(None), "int": int, "bool": bool, "float": float, "complex": complex,
         "str": str, "Device": mx.Device, "Dtype": mx.Dtype, "Stream": mx.Stream}


def is_one_call(name, expression):
    node = ast.parse(expression, mode="eval").body
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "mx." + name


@pytest.mark.parametrize("name, expression, output", [each for each in EXAMPLES if is_one_call(*each[:2])])
def test_example_gives_the_type_that_is_documented(name, expression, output):
    function = mx
    for part in name.split("."):
        function = getattr(function, part)
    declared = re.search(r"^Returns:\n    (.+?)(?:: |$)", inspect.getdoc(function), re.M).group(1)
    while "[" in declared:
        declared = re.sub(r"\[[^\[\]]*\]", "", declared)
    kinds = [KINDS.get(each.strip()) for each in declared.split("|")]
    if None in kinds:
        pytest.skip(f"{declared} is not looked at")
    if name == "fast.metal_kernel" and not mx.metal.is_available():
        pytest.skip("built without the kernel compiler")
    assert isinstance(eval(expression, {"mx": mx}), tuple(kinds)), declared


def test_no_row_of_an_example_is_left_over():
    known = make_examples.written(os.path.join(BINDINGS, "src", "example_outputs.def"))
    of_the_extension = {expression for function in make_examples.functions(mx) for expression, _ in shown(function)}
    assert not known.keys() - of_the_extension
    assert len(known) > 400


def test_help_of_a_function():
    import pydoc

    text = pydoc.plain(pydoc.render_doc(mx.add))
    for part in ("add(a, b, *, stream=None)", "a (array | bool | int | float | complex): numbers or bools", "Returns:",
                 "in the shape that both broadcast to", ">>> mx.add(mx.array([1, 2]), 3)\n        array([4, 5], dtype=int32)"):
        assert part in text


def test_elementwise_functions_follow_the_table():
    assert "become float32" in inspect.getdoc(mx.exp) and "become float32" not in inspect.getdoc(mx.square)
    assert "bools, in the shape of `a`" in inspect.getdoc(mx.isnan)
    assert "integers or bools" in inspect.getdoc(mx.bitwise_and)
    assert inspect.getdoc(mx.asin).partition("\n")[2] == inspect.getdoc(mx.arcsin).partition("\n")[2].replace("mx.arcsin(", "mx.asin(")
    assert isinstance(mx.asin, types.BuiltinFunctionType)
