"""Writes, or compares, what the examples of the C++ functions give: make_examples.py FOLDER FILE [--check]

FOLDER holds the built package; FILE is src/example_outputs.def, rows of which docstrings show. Numbers may differ a little from machine to
machine, so --check compares them with a tolerance.
"""

import inspect
import re
import sys
import types

HEADER = """// What the examples in docstrings give: written by bindings/python/make_examples.py, compared by tests/python.
//
//   OUTPUT(expression, output)
"""

# Of this machine, of this moment, or left open by LAPACK.
OPEN = re.compile(r"device_info|_limit\(|linalg\.(qr|svd|eig|lu)|depends on|topk| object at 0x")
MOST_LINES = 8
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def functions(core):
    """Every function of the extension, and every method of its types."""
    modules = [core] + [value for value in vars(core).values() if isinstance(value, types.ModuleType) and value.__name__.startswith("holdfast.core.")]
    for owner in [*modules, core.array, core.ArrayAt]:
        for name, value in vars(owner).items():
            if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType)) and not name.startswith("_"):
                yield value


def outputs(core):
    """{expression: output} of each example that shows something."""
    shown = {}
    for function in functions(core):
        for line in (inspect.getdoc(function) or "").splitlines():
            if not line.strip().startswith(">>> "):
                continue
            expression = line.strip()[4:]
            result = eval(expression, {"mx": core})
            text = repr(result)
            if result is not None and not OPEN.search(expression) and not OPEN.search(text) and text.count("\n") < MOST_LINES:
                shown[expression] = text
    return shown


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def is_same(one, other):
    """The same text, and numbers that are nearly the same."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other))
    return all(abs(float(a) - float(b)) <= max(1e-6, 1e-4 * abs(float(a))) for a, b in pairs)


def written(path):
    with open(path, encoding="utf-8") as source:
        rows = re.findall(r'^OUTPUT\((".*"), (".*")\)$', source.read(), re.M)
    return {eval(expression): eval(output) for expression, output in rows}


def main(folder, path, *options):
    sys.path.insert(0, folder)
    import holdfast.core as core

    shown = outputs(core)
    if "--check" in options:
        known = written(path)
        wrong = [each for each in shown.keys() | known.keys() if each not in shown or each not in known or not is_same(shown[each], known[each])]
        for each in sorted(wrong):
            print(f"{each}\n  gives  {shown.get(each)}\n  shows  {known.get(each)}")
        return f"make_examples: {len(wrong)} examples differ; bindings/python/make_examples.py writes them" if wrong else None
    with open(path, "w", encoding="utf-8") as target:
        target.write(HEADER + "".join(f"OUTPUT({quoted(expression)}, {quoted(output)})\n" for expression, output in shown.items()))
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
