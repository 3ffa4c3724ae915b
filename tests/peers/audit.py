"""Calls every public function and method of the mlx package and of ours with the same good and bad arguments.

    audit.py [--python PYTHON_WITH_MLX] [--package FOLDER_OF_HOLDFAST] [--only NAME] [--all] [--write]

Calls are made of the examples in our docstrings: each argument in turn is replaced by values of other dtypes, shapes and types, left out, given by
name, and followed by one too many. Compared are values, dtypes, shapes, and classes of exceptions. Differences that are meant are counted in
accepted_differences.tsv, function by function, each with a reason; where a function has more, they are printed, and are the exit status. Each side
runs in processes of its own: MLX ends the process for some calls.
"""

import argparse
import ast
import inspect
import json
import os
import re
import subprocess
import sys

# Why a difference is meant. Which calls differ so is in accepted_differences.tsv: a function, what MLX gives, what we give ("ok", "crash" or the
# class of an exception), the reason, and how many of its calls do.
REASONS = {
    "more is taken": "scalars, NumPy's arrays and names of arguments, where MLX's binding takes arrays by position only",
    "types first": "MLX's binding looks at the types of all arguments before the op looks at a value; a scalar for an array is an array here, and the op refuses it",
    "failed cast": "a cast that fails inside of MLX's binding (std::bad_cast), and bits of complex numbers",
    "dimensions": "an input with too few dimensions: MLX comes upon it when it looks at a dimension that is not there",
    "order of errors": "of two things that are wrong another one is found first",
    "crash": "MLX ends the process",
    "outside": "elements outside of the array, which MLX reads or writes, and sizes beyond 32 bits, which end its process",
    "undefined": "shifts beyond the width of the dtype and remainders of zero are undefined in MLX, 0 here",
    "NumPy's dtypes": "beside NumPy's arrays and scalars operands promote by both dtypes; MLX rounds NumPy's to the dtype of the array",
    "complex and bool": "complex numbers and bools, where MLX drops a part of them or gives them another order (registry/differences.h)",
    "dtype of the result": "the dtype that was named, or that the op has for all inputs; MLX keeps the input's where there is nothing to do",
    "no order": "what has no order or no value: places within a partition, inverse indices of values that are not there, numbers beyond their dtype",
    "does not fit": "shapes and settings that do not fit, which MLX lets pass",
    "defined": "what is well defined and MLX refuses: empty results, integers and complex numbers in convolutions, complex sigmoid and expm1",
}
ACCEPTED_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "accepted_differences.tsv")


def accepted():
    """{(function, MLX's answer, ours): (reason, count)} of the file."""
    rows = {}
    with open(ACCEPTED_FILE) as lines:
        for line in lines:
            path, mlx, ours, reason, count = line.rstrip("\n").split("\t")
            if reason not in REASONS:
                sys.exit(f"audit: {ACCEPTED_FILE}: {path} has a reason that is none: {reason}")
            rows[path, mlx, ours] = (reason, int(count))
    return rows


ARRAYS = ["mx.array(True)", "mx.array([True, False])", "mx.array(3)", "mx.array([1, 2, 3], mx.int8)", "mx.array([1, 2], mx.uint32)",
          "mx.array([[1, 2], [3, 4]])", "mx.array([1.5, 2.5], mx.float16)", "mx.array([1 + 2j, 3])", "mx.array(1.5)", "mx.zeros((0,))",
          "mx.zeros((0, 3))", "mx.ones((2, 2, 2))", "mx.array([[0.5, 2.0], [1.0, 3.0]])", "2", "2.5", "True", "1j", "None", "'x'", "[1, 2]", "(1.0, 2.0)",
          "[mx.array(1), 2.0]", "np.array([1.5, 2.5])", "np.float32(1.5)", "np.int64(2)"]
INTEGERS = ["0", "1", "-1", "2", "99", "-99", "2**40", "1.5", "True", "None", "'x'", "mx.array(1)", "np.int64(1)", "[0]", "(0, 0)", "()", "[0, 99]", "(0, -1)"]
NUMBERS = ["0", "1", "-1.0", "float('inf')", "float('nan')", "None", "'x'", "mx.array(1.0)", "np.float64(0.5)", "True", "[1.0]"]
LISTS = ["()", "[]", "(0,)", "[0, 1]", "(1, 0)", "(0, 0)", "(-1,)", "(99,)", "(-99,)", "(2**40,)", "3", "-1", "None", "'x'", "(1.5,)", "(None,)", "np.array([0, 1])",
         "mx.array([0, 1])"]
TEXTS = ["''", "'nonsense'", "None", "3"]
DTYPES = ["mx.bool_", "mx.uint8", "mx.int8", "mx.int64", "mx.float16", "mx.bfloat16", "mx.complex64", "None", "'float32'", "3"]
TRUTHS = ["True", "False", "None", "1", "'x'"]

# No function of its arguments, or what it does is no value.
SKIPPED = re.compile(
    r"^mx\.(eval|async_eval|save\w*|load|export\w*|import_function|exporter|compile|disable_compile|enable_compile|set_\w+|get_\w+|reset_\w+|clear_\w+|"
    r"synchronize|new_\w+|default_\w+|device_\w+|is_available|metal\..*|cuda\..*|distributed\..*|stream|printoptions|custom_function|checkpoint|grad|value_and_grad|"
    r"vjp|jvp|vmap|depends|random\.seed|fast\.(metal_kernel|cuda_kernel|precompiled_cuda_kernel)|Stream\w*|PrintOptions|ArrayLike|FunctionExporter|from_dlpack|minmax)$")


def examples(mx):
    """(the path of a function, an example of a call) for each public function and method."""
    modules = {"mx": mx, **{"mx." + name: getattr(mx, name) for name in ("random", "linalg", "fft", "fast")}}
    rows = [(f"{prefix}.{name}", getattr(module, name)) for prefix, module in modules.items() for name in sorted(dir(module)) if not name.startswith("_")]
    rows += [("array." + name, getattr(mx.array, name)) for name in sorted(dir(mx.array)) if not name.startswith("_")]
    for path, function in rows:
        if SKIPPED.match(path) or inspect.isclass(function) or not callable(function):
            continue
        for line in re.findall(r">>> (mx\..*|\(?\w.*)", function.__doc__ or ""):
            yield path, function, line


def calls_of(tree, name):
    """The outermost call of the function in an expression."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            last = called.attr if isinstance(called, ast.Attribute) else None
            if last == name:
                return node
    return None


def pool_for(value, mx):
    if isinstance(value, mx.array):
        return ARRAYS
    if isinstance(value, bool):
        return TRUTHS
    if isinstance(value, int):
        return INTEGERS
    if isinstance(value, float):
        return NUMBERS
    if isinstance(value, str):
        return TEXTS
    if isinstance(value, mx.Dtype):
        return DTYPES
    if isinstance(value, (list, tuple)):
        return LISTS
    return ["None", "3", "'x'"]


BY_NAME = {"axis": INTEGERS, "axes": LISTS, "keepdims": TRUTHS, "dtype": DTYPES, "stream": ["mx.cpu", "3", "None"], "shape": LISTS, "ddof": ["0", "1", "-1", "5"],
           "k": INTEGERS, "n": INTEGERS, "offset": INTEGERS, "axis1": INTEGERS, "axis2": INTEGERS, "norm": TEXTS, "s": LISTS, "num": INTEGERS, "decimals": INTEGERS,
           "start_axis": INTEGERS, "end_axis": INTEGERS, "mode": TEXTS, "side": TEXTS, "stride": INTEGERS, "padding": INTEGERS, "dilation": INTEGERS, "groups": INTEGERS,
           "reverse": TRUTHS, "inclusive": TRUTHS, "key": ["None", "mx.random.key(3)", "3", "mx.zeros(2)"], "indexing": TEXTS, "upper": TRUTHS, "UPLO": TEXTS}


def variants(mx):
    """All calls, as text."""
    import numpy as np

    seen = set()
    for path, function, line in examples(mx):
        name = path.rpartition(".")[2]
        try:
            tree = ast.parse(line, mode="eval")
        except SyntaxError:
            continue
        call = calls_of(tree, name)
        if call is None:
            continue

        def say(changed):
            text = ast.unparse(changed)
            if text not in seen:
                seen.add(text)
                return [(path, text)]
            return []

        yield from say(tree)
        arguments = list(call.args)
        for i, argument in enumerate(arguments):
            try:
                value = eval(compile(ast.Expression(argument), "", "eval"), {"mx": mx, "np": np})
            except Exception:
                continue
            for replacement in pool_for(value, mx):
                call.args[i] = ast.parse(replacement, mode="eval").body
                yield from say(tree)
            call.args[i] = argument
        if arguments:
            call.args = arguments[:-1]
            yield from say(tree)
        for extra in ("None", "mx.cpu", "3"):
            call.args = [*arguments, ast.parse(extra, mode="eval").body]
            yield from say(tree)
        call.args = arguments
        keywords = list(call.keywords)
        for i, keyword in enumerate(keywords):
            try:
                value = eval(compile(ast.Expression(keyword.value), "", "eval"), {"mx": mx, "np": np})
            except Exception:
                continue
            for replacement in pool_for(value, mx):
                call.keywords[i] = ast.keyword(keyword.arg, ast.parse(replacement, mode="eval").body)
                yield from say(tree)
            call.keywords[i] = keyword
        given = {keyword.arg for keyword in keywords}
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except ValueError:
            parameters = []
        if path.startswith("array."):
            parameters = parameters[1:]
        for parameter in parameters[len(arguments):]:
            for replacement in BY_NAME.get(parameter.name, []):
                if parameter.name not in given:
                    call.keywords = [*keywords, ast.keyword(parameter.name, ast.parse(replacement, mode="eval").body)]
                    yield from say(tree)
        # An argument by its name.
        for i, parameter in enumerate(parameters[:len(arguments)]):
            call.args = arguments[:i]
            call.keywords = keywords + [ast.keyword(p.name, a) for p, a in zip(parameters[i:], arguments[i:])]
            if parameter.kind is not parameter.VAR_POSITIONAL:
                yield from say(tree)
        call.args, call.keywords = arguments, [*keywords, ast.keyword("nonsense", ast.Constant(1))]
        yield from say(tree)
        call.keywords = keywords


def shown(value, mx, np):
    if isinstance(value, mx.array):
        mx.eval(value)
        dtype = str(value.dtype).rpartition(".")[2]
        if value.size > 64:
            return ["array", dtype, list(value.shape), None]
        dense = value.astype(mx.complex64).tolist() if "complex" in dtype else value.astype(mx.float32).tolist() if "float" in dtype else value.tolist()
        return ["array", dtype, list(value.shape), repr(dense)]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__ if type(value) in (list, tuple) else "tuple", [shown(item, mx, np) for item in value]]
    if isinstance(value, dict):
        return ["dict", {str(key): shown(item, mx, np) for key, item in value.items()}]
    return ["value", re.sub(r"\b(mlx|holdfast)\.core\.", "", repr(value))[:200] if not callable(value) else "callable"]


def serve(side, package):
    """Answers the calls that come in, one a line."""
    import numpy as np

    if side == "mlx":
        import mlx.core as mx
    else:
        if package:
            sys.path.insert(0, package)
        import holdfast.core as mx
    mx.set_default_device(mx.cpu)
    for line in sys.stdin:
        text = json.loads(line)
        mx.random.seed(1)
        try:
            answer = ["ok", shown(eval(text, {"mx": mx, "np": np}), mx, np)]
        except BaseException as error:
            answer = ["error", type(error).__name__, str(error)[:160]]
        print("\n@" + json.dumps(answer), flush=True)  # a call may print, too


class Side:
    def __init__(self, command):
        self.command, self.process = command, None

    def ask(self, text):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps(text) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            while line and not line.startswith("@"):
                line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.wait()
            return ["crash", str(self.process.returncode)]
        return json.loads(line[1:])

    def ask_again(self, text):
        """As ask, but what ends a process that earlier calls have damaged is asked once more, of a fresh one."""
        answer = self.ask(text)
        return self.ask(text) if answer[0] == "crash" else answer


def close(a, b):
    if isinstance(a, str) and isinstance(b, str) and a != b:
        names = {"nan": float("nan"), "inf": float("inf"), "infj": complex(0, float("inf")), "nanj": complex(0, float("nan"))}
        try:
            return close(eval(a, {}, names), eval(b, {}, names))
        except Exception:
            return False
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if isinstance(a, (float, complex)) or isinstance(b, (float, complex)):
        return a == b or (a != a and b != b) or abs(a - b) <= 2e-3 * abs(b) + 1e-5
    return a == b


def same(mlx, ours):
    if mlx[0] == "error" and ours[0] == "error":
        return mlx[1] == ours[1]
    return mlx[0] == ours[0] == "ok" and (mlx[1] == ours[1] or close(mlx[1], ours[1]))


def kind_of(answer):
    return answer[1] if answer[0] == "error" else answer[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--package", default=os.environ.get("HOLDFAST_PYTHON_PACKAGE", ""))
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true", help="print accepted differences, too")
    parser.add_argument("--write", action="store_true", help="write the file of accepted differences anew; new ones get ? for a reason, which is to be replaced")
    parser.add_argument("--serve")
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments.serve, arguments.package)
    if arguments.package:
        sys.path.insert(0, arguments.package)
    import holdfast.core as mx

    command = [__file__, "--package", arguments.package, "--serve"]
    mlx, ours = Side([arguments.python, *command, "mlx"]), Side([sys.executable, *command, "holdfast"])
    total, found = 0, {}
    for path, text in variants(mx):
        if not re.search(arguments.only, path):
            continue
        total += 1
        expected, got = mlx.ask_again(text), ours.ask(text)
        if not same(expected, got):
            # What MLX reads or writes outside of an array may end its process, or not.
            theirs = "ok" if kind_of(expected) == "crash" and got[0] == "error" else kind_of(expected)
            found.setdefault((path, theirs, kind_of(got)), []).append((text, expected, got))
    known = accepted()
    if arguments.write:
        with open(ACCEPTED_FILE, "w") as out:
            for key, calls in sorted(found.items()):
                out.write("\t".join([*key, known.get(key, ("?", 0))[0], str(len(calls))]) + "\n")
    differ = 0
    for key, calls in sorted(found.items()):
        reason, count = known.get(key, ("none", 0))
        if len(calls) <= count and not arguments.all:
            continue
        differ += max(0, len(calls) - count)
        print(f"{key[0]}: MLX {key[1]}, ours {key[2]}: {len(calls)} calls, accepted {count} ({reason})")
        for text, expected, got in calls:
            print(f"  {text}\n    mlx:  {str(expected)[:220]}\n    ours: {str(got)[:220]}", flush=True)
    if not arguments.only:
        for key in sorted(known.keys() - found.keys()):
            print(f"no difference any more: {' '.join(key)}; --write takes the row out")
    for reason, text in REASONS.items():
        print(f"{sum(len(calls) for key, calls in found.items() if known.get(key, ('',))[0] == reason)} accepted: {text}")
    print(f"{total} calls, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
