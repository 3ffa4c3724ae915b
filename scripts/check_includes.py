#!/usr/bin/env python3
"""Checks who includes whom.

The folders stand in a row (LAYERS, from left to right); a file may include what stands to its left or in its own layer, never
what stands to its right. Public headers belong to the layer they declare (PUBLIC_HEADERS) and include only public headers.
No file may include itself, directly or through others. A function is defined in the layer of the header that declares it
(scripts/definitions.py finds both).

Behind the wall (WALLED) ops say what is computed: there the script also refuses addresses, the names of devices, and back-ends.

  scripts/check_includes.py               check the tree
  scripts/check_includes.py --self-test   plant one violation of each kind and see that it is reported
"""

import argparse
import pathlib
import re
import sys
import tempfile

import definitions

# (layer, path prefixes), from left to right. The longest matching prefix decides.
LAYERS = [
    ("base", ["src/base/"]),
    ("msl", ["src/msl/"]),
    ("device interface", ["src/devices/"]),
    ("devices", ["src/devices/cpu/", "src/devices/cuda/", "src/devices/simulated/"]),
    ("exec", ["src/exec/"]),
    ("graph", ["src/graph/"]),
    ("kernels", ["src/kernels/"]),
    ("ops", ["src/ops/"]),
    ("transforms", ["src/transforms/"]),
    ("io", ["src/io/"]),
    ("export", ["src/export/"]),
    ("capture", ["src/capture/"]),
    ("start", ["src/start/"]),
    ("lm", ["src/lm/"]),
    ("programs", ["tools/", "compat/", "bindings/", "benchmarks/", "registry/", "examples/"]),
    ("tests", ["tests/"]),
]
RANK = {name: rank for rank, (name, _) in enumerate(LAYERS)}

# Neighbours of which neither may include the other.
SEPARATE = {frozenset({"transforms", "io"})}

# The layer of a public header. One that is not named here belongs to PUBLIC_DEFAULT: a header that
# lower layers need has to be entered.
PUBLIC_DEFAULT = "ops"
PUBLIC_HEADERS = {
    "holdfast/types.h": "base",
    "holdfast/dtype.h": "base",
    "holdfast/elementwise.def": "base",
    "holdfast/small_vector.h": "base",
    "holdfast/errors.h": "base",
    "holdfast/label.h": "base",
    "holdfast/version.h": "base",
    "holdfast/allocator.h": "base",
    "holdfast/native_context.h": "base",
    "holdfast/device.h": "exec",
    "holdfast/stream.h": "exec",
    "holdfast/memory.h": "exec",
    "holdfast/event.h": "exec",
    "holdfast/kernel.h": "exec",
    "holdfast/kernel_cache.h": "exec",
    "holdfast/metal.h": "exec",
    "holdfast/validation.h": "exec",
    "holdfast/array.h": "graph",
    "holdfast/primitive.h": "graph",
    "holdfast/op.h": "graph",
    "holdfast/encoder.h": "graph",
    "holdfast/utils.h": "graph",
    "holdfast/graph_utils.h": "graph",
    "holdfast/eval.h": "graph",
    "holdfast/tracing.h": "graph",
    "holdfast/transforms.h": "transforms",
    "holdfast/transforms_impl.h": "transforms",
    "holdfast/compile.h": "transforms",
    "holdfast/compile_impl.h": "transforms",
    "holdfast/io.h": "io",
    "holdfast/export.h": "export",
    "holdfast/holdfast.h": "start",
    "holdfast/lm.h": "lm",
    "holdfast/lm/": "lm",
}

# A library of its own on the public API: of the tree it includes public headers and itself only.
PUBLIC_API_ONLY = "src/lm/"

# The wall between ops and devices: what may not be said in these folders, by kind.
WALLED = ("src/ops/", "src/graph/", "src/transforms/")
WALL = {
    "include": (re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(kernels/(?:cpu|metal|cuda)|devices/(?:cpu|cuda|simulated))/', re.MULTILINE),
                "includes what belongs to one back-end or device"),
    "backend": (re.compile(r"\bcpu::"), "names the CPU back-end"),
    "device": (re.compile(r"\bDevice::(cpu|gpu)\b"), "branches on the kind of a device"),
    "address": (re.compile(r"\bdata<|\braw_ptr\("), "takes an address"),
}
# (file, kind): why it may.
WALL_EXCEPTIONS = {
    ("src/graph/array.cpp", "device"): "refuses float64 for GPU primitives, as MLX does",
    ("src/graph/print.cpp", "address"): "prints what the host holds",
    ("src/graph/eval.cpp", "device"): "calls the public eval_cpu or eval_gpu",
    ("src/ops/linalg.cpp", "device"): "refuses factorisations on GPU streams, as MLX does",
    ("src/ops/creation.cpp", "address"): "reads a constant that the host made",
    ("src/transforms/program.cpp", "address"): "compares constants that the host made",
}

# What is not defined in the layer that declares it, (header, name or class): the layer that defines it, and why.
DEFINED_ELSEWHERE = {
    ("src/exec/start.h", "start"): ("start", "the composition root: it sees all layers, and exec calls it"),
    ("include/holdfast/array.h", "array"): ("ops", "iteration over rows is made of slices"),
    ("include/holdfast/array.h", "ArrayIterator"): ("ops", "as above"),
    ("include/holdfast/allocator.h", "allocator"): ("exec", "buffers know the handle; the process's allocator is behind it"),
    ("include/holdfast/allocator.h", "Buffer"): ("exec", "as above"),
    ("src/devices/memory.h", "Storage"): ("exec", "where memory goes when its last owner goes"),
    ("src/devices/memory.h", "Buffer"): ("exec", "as above"),
    ("src/devices/memory.h", "DeferredDeleters"): ("exec", "as above"),
}

SOURCE_SUFFIXES = {".h", ".cpp", ".def", ".inc"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.MULTILINE)
LINE_COMMENT = re.compile(r"//[^\n]*")
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def layer_of(path):
    """The layer of a file, given by its path from the root; None for what the table does not know."""
    if path.startswith("include/"):
        name = path.removeprefix("include/")
        folder = name[: name.rfind("/") + 1]
        return PUBLIC_HEADERS.get(name) or PUBLIC_HEADERS.get(folder, PUBLIC_DEFAULT)
    matches = [(len(p), name) for name, prefixes in LAYERS for p in prefixes if path.startswith(p)]
    return max(matches)[1] if matches else None


def source_files(root):
    for top in ("include", "src", "tools", "compat", "bindings", "benchmarks", "tests"):
        for path in sorted((root / top).rglob("*")):
            relative = path.relative_to(root).as_posix()
            # The consumer project is a user of the installed package, and the others are what kernels include: neither is a part
            # of the tree.
            if path.suffix in SOURCE_SUFFIXES and path.is_file() and not relative.startswith(
                ("tests/consumer/", "src/msl/include/", "src/kernels/metal/support/",
                 "src/kernels/elementwise/math.h", "src/kernels/elementwise/complex.h")):
                yield relative


def blank(match):
    """Removes a comment but keeps its line breaks, so that line numbers stay right."""
    return "\n" * match.group(0).count("\n")


def includes_of(root, path):
    """(line, spelling, is_quoted) of each include in the file."""
    text = BLOCK_COMMENT.sub(blank, (root / path).read_text(encoding="utf-8", errors="replace"))
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield line, match.group(1) or match.group(2), match.group(1) is None


def resolve(root, path, spelling, is_quoted):
    """The included file as (path from the root, None), (None, complaint), or (None, None) for a foreign header."""
    is_public_file = path.startswith("include/")
    if spelling.startswith("holdfast/") and (root / "include" / spelling).is_file():
        if is_quoted:
            return None, f'public headers are included with angle brackets: <{spelling}>'
        return f"include/{spelling}", None
    if not is_quoted:
        if spelling.startswith("holdfast/"):
            return None, f"there is no public header <{spelling}>"
        if (root / "src" / spelling).is_file():
            return None, f'internal headers are included with quotes: "{spelling}"'
        return None, None
    if is_public_file:
        return None, f'a public header may include only public headers, not "{spelling}"'
    if ".." in spelling.split("/"):
        return None, f'"{spelling}": includes are written as paths from src, without ".."'
    if (root / "src" / spelling).is_file():
        return f"src/{spelling}", None
    # Outside src a file may also name its neighbours: by path from the root, from tests, from compat, or from
    # its own folder.
    if not path.startswith("src/"):
        own_folder = pathlib.PurePosixPath(path).parent.as_posix()
        for base in ("", "tests/", "compat/", own_folder + "/"):
            if (root / (base + spelling)).is_file():
                return base + spelling, None
    return None, f'"{spelling}" is not a file under src (internal includes are paths from src)'


def find_cycle(graph):
    """One include cycle as a list of files, or None. Iterative, because include chains can be deep."""
    done = set()
    for start in sorted(graph):
        if start in done:
            continue
        trail, on_trail = [(start, iter(graph[start]))], {start}
        while trail:
            node, successors = trail[-1]
            following = next(successors, None)
            if following is None:
                trail.pop()
                on_trail.discard(node)
                done.add(node)
            elif following in on_trail:
                names = [name for name, _ in trail]
                return names[names.index(following):] + [following]
            elif following not in done and following in graph:
                trail.append((following, iter(graph[following])))
                on_trail.add(following)
    return None


def behind_the_wall(root, path):
    """Complaints about what a file behind the wall says, one per kind."""
    text = LINE_COMMENT.sub("", BLOCK_COMMENT.sub(blank, (root / path).read_text(encoding="utf-8", errors="replace")))
    for kind, (pattern, what) in WALL.items():
        match = pattern.search(text)
        if match and (path, kind) not in WALL_EXCEPTIONS:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {what} ({match.group(0).strip()}); that belongs to src/kernels or src/devices"
        if not match and (path, kind) in WALL_EXCEPTIONS:
            yield f"{path}: has an exception for '{kind}' in WALL_EXCEPTIONS that it does not need any more"


def defined_elsewhere(root, paths):
    """Complaints about functions whose definition is not in the layer of a header that declares them."""
    needed = set()
    for name, where, headers in definitions.misplaced(root, paths, layer_of):
        path, line = where
        scope = name.split("::")[-2] if "::" in name else ""
        rows = {(header, scope) for header in headers} & DEFINED_ELSEWHERE.keys()
        rows = {row for row in rows if DEFINED_ELSEWHERE[row][0] == layer_of(path)}
        needed |= rows
        if not rows:
            declared = ", ".join(f"{header} ({layer_of(header)})" for header in sorted(headers))
            yield f"{path}:{line}: layer {layer_of(path)} defines {name}, which is declared in {declared}"
    # Only what is in the tree can be needed: the self-test has other trees.
    for header, scope in sorted(DEFINED_ELSEWHERE.keys() - needed):
        if (root / header).is_file():
            yield f"{header}: has an exception for '{scope}' in DEFINED_ELSEWHERE that it does not need any more"


def check(root):
    """All complaints about the tree, as sentences."""
    problems, graph, count = [], {}, 0
    for path in source_files(root):
        count += 1
        graph[path] = []
        layer = layer_of(path)
        if layer is None:
            problems.append(f"{path}: this folder is in no layer; enter it in LAYERS of scripts/check_includes.py")
            continue
        if path.startswith(WALLED):
            problems.extend(behind_the_wall(root, path))
        for line, spelling, is_quoted in includes_of(root, path):
            target, complaint = resolve(root, path, spelling, is_quoted)
            if complaint:
                problems.append(f"{path}:{line}: {complaint}")
            if target is None:
                continue
            graph[path].append(target)
            target_layer = layer_of(target)
            if target_layer is None:
                continue
            if path.startswith(PUBLIC_API_ONLY) and not target.startswith(("include/", PUBLIC_API_ONLY)):
                problems.append(f"{path}:{line}: {PUBLIC_API_ONLY} is made of the public API, and may not include {spelling}")
            elif frozenset({layer, target_layer}) in SEPARATE:
                problems.append(f"{path}:{line}: {layer} and {target_layer} may not include each other ({spelling})")
            elif RANK[target_layer] > RANK[layer]:
                hint = ""
                if target.startswith("include/") and spelling not in PUBLIC_HEADERS:
                    hint = " (by default; if it declares a lower layer, enter it in PUBLIC_HEADERS)"
                problems.append(f"{path}:{line}: layer {layer} may not include {spelling}, "
                                f"which belongs to {target_layer}{hint}")
    problems.extend(defined_elsewhere(root, [path for path in graph if not path.startswith("tests/")]))
    cycle = find_cycle(graph)
    if cycle:
        problems.append("include cycle: " + " -> ".join(cycle))
    return problems, count


# Each case: name, files, and a text that one complaint must contain (None: there must be no
# complaint).
CLEAN = {
    "include/holdfast/dtype.h": "#pragma once\n#include <vector>\n",
    "include/holdfast/array.h": "#pragma once\n#include <holdfast/dtype.h>\n"
                                "class array {\n  struct ArrayIterator {\n    ArrayIterator();\n  };\n  ArrayIterator begin();\n};\n",
    "src/ops/array_iterator.cpp": "array::ArrayIterator::ArrayIterator() {}\narray::ArrayIterator array::begin() { return {}; }\n",
    "include/holdfast/event.h": "#pragma once\nnamespace n {\nstruct Event {\n  Event(int a = f(1));\n  bool is_done() const;\n};\n"
                                "void wait(int);\n}\n",
    "src/exec/event.cpp": "#include <holdfast/event.h>\nnamespace n {\nEvent::Event(int a) : b{a} {}\n"
                          "bool Event::is_done() const { return true; }\nvoid wait(int) {}\n}\n",
    "src/base/sync.h": "#pragma once\n#include <mutex>\n",
    "src/devices/device.h": '#include "base/sync.h"\n',
    "src/devices/cpu/pool.h": '#include "devices/device.h"\n',
    "src/exec/queue.h": '#include <holdfast/dtype.h>\n#include "devices/cpu/pool.h"\n// #include "ops/add.h"\n'
                        '/*\n#include "ops/add.h"\n*/\n',
    "src/ops/add.h": '#include <holdfast/array.h>\n#include "exec/queue.h"\n',
    "tests/support/graphs.h": "#pragma once\n",
    "tests/unit/queue.cpp": '#include "exec/queue.h"\n#include "support/graphs.h"\n#include <doctest/doctest.h>\n',
}
SELF_TESTS = [
    ("clean tree", {}, None),
    ("to the right", {"src/exec/bad.cpp": '\n#include "ops/add.h"\n'}, "src/exec/bad.cpp:2: layer exec may not include"),
    ("device interface to a device", {"src/devices/device.cpp": '#include "devices/cpu/pool.h"\n'}, "may not include"),
    ("low layer to a high public header", {"src/exec/bad.cpp": "#include <holdfast/array.h>\n"}, "belongs to graph"),
    ("public header that no row names", {"include/holdfast/new.h": "", "src/graph/bad.cpp": "#include <holdfast/new.h>\n"},
     "enter it in PUBLIC_HEADERS"),
    ("public header, public order", {"include/holdfast/types.h": "#include <holdfast/array.h>\n"}, "may not include"),
    ("public header to an internal one", {"include/holdfast/new.h": '#include "exec/queue.h"\n'}, "only public headers"),
    ("siblings", {"src/io/a.h": "", "src/transforms/bad.cpp": '#include "io/a.h"\n'}, "may not include each other"),
    ("library to tests", {"src/exec/bad.cpp": '#include "support/graphs.h"\n'}, "not a file under src"),
    ("language models on internals", {"src/lm/bad.cpp": '#include "exec/queue.h"\n'}, "src/lm/bad.cpp:1: src/lm/ is made of the public API"),
    ("language models on the public API", {"include/holdfast/lm/a.h": "", "src/lm/good.h": "#include <holdfast/lm/a.h>\n#include <holdfast/array.h>\n"}, None),
    ("library to language models", {"include/holdfast/lm/a.h": "", "src/ops/bad.cpp": "#include <holdfast/lm/a.h>\n"}, "belongs to lm"),
    ("path with ..", {"src/exec/bad.cpp": '#include "../base/sync.h"\n'}, 'without ".."'),
    ("neighbour without its path", {"src/exec/bad.cpp": '#include "queue.h"\n'}, "not a file under src"),
    ("internal header in angle brackets", {"src/exec/bad.cpp": "#include <base/sync.h>\n"}, "with quotes"),
    ("public header in quotes", {"src/exec/bad.cpp": '#include "holdfast/dtype.h"\n'}, "angle brackets"),
    ("missing public header", {"src/exec/bad.cpp": "#include <holdfast/gone.h>\n"}, "no public header"),
    ("folder without a layer", {"src/misc/a.cpp": ""}, "in no layer"),
    ("op that includes a back-end", {"src/kernels/cpu/copy.h": "", "src/ops/bad.cpp": '#include "kernels/cpu/copy.h"\n'},
     "src/ops/bad.cpp:1: includes what belongs to one back-end"),
    ("op that names a back-end", {"src/ops/bad.cpp": "\nint a = kernels::cpu::f();\n"}, "src/ops/bad.cpp:2: names the CPU back-end"),
    ("op that takes an address", {"src/ops/bad.cpp": "float* p = a.data<float>();\n"}, "takes an address"),
    ("transform that branches on a device", {"src/transforms/bad.cpp": "bool b = d == Device::gpu;\n"}, "branches on the kind"),
    ("comment about an address", {"src/ops/good.cpp": "// a.data<float>() of Device::cpu\n"}, None),
    ("exception that is not needed", {"src/ops/creation.cpp": "int a;\n"}, "does not need any more"),
    ("method defined in another layer", {"src/graph/bad.cpp": "namespace n {\n\nbool Event::is_done() const { return f(\"{\"); }\n}\n"},
     "src/graph/bad.cpp:3: layer graph defines n::Event::is_done, which is declared in include/holdfast/event.h (exec)"),
    ("constructor defined in another layer", {"src/graph/bad.cpp": "namespace n {\nEvent::Event(int a) : b{a} {}\n}\n"},
     "src/graph/bad.cpp:2: layer graph defines n::Event::Event"),
    ("function defined in another layer", {"src/graph/bad.cpp": "namespace n {\n// {\nvoid wait(int) {}\n}\n"},
     "src/graph/bad.cpp:3: layer graph defines n::wait"),
    ("method of a class of another namespace, seen through a using", {
        "src/graph/bad.cpp": "namespace m {\nusing n::Event;\nbool Event::is_done() const { return true; }\n}\n"},
     "layer graph defines m::Event::is_done"),
    ("class of a file's own", {"src/graph/good.cpp": "namespace m {\nstruct Event {\n  bool is_done();\n};\nbool Event::is_done() { return 1; }\n}\n"},
     None),
    ("function of a file's own", {"src/graph/good.cpp": "namespace n {\nnamespace {\nvoid wait(int) {}\n}\nvoid run() { wait(1); }\n}\n"}, None),
    ("overload declared in both layers", {"src/graph/wait.h": "namespace n {\nvoid wait(float);\n}\n",
                                          "src/graph/good.cpp": "namespace n {\nvoid wait(float) {}\n}\n"}, None),
    ("exception that no definition needs", {"src/exec/start.h": "namespace n {\nvoid f();\n}\n"}, "does not need any more"),
    ("cycle", {"src/exec/a.h": '#include "exec/b.h"\n', "src/exec/b.h": '#include "exec/c.h"\n',
               "src/exec/c.h": '#include "exec/a.h"\n'}, "include cycle: src/exec/a.h -> src/exec/b.h"),
]


def self_test():
    failures = 0
    for name, files, expected in SELF_TESTS:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {**CLEAN, **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            problems, _ = check(root)
        # Exactly one complaint: a planted violation must not be found by accident, through another
        # rule.
        good = not problems if expected is None else len(problems) == 1 and expected in problems[0]
        if not good:
            failures += 1
            print(f"self-test '{name}': expected {expected!r}, got {problems}")
    print(f"check_includes: self-test, {len(SELF_TESTS) - failures} of {len(SELF_TESTS)} cases as expected")
    return failures == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true", help="prove that the check can fail")
    arguments = parser.parse_args()
    if arguments.self_test:
        return 0 if self_test() else 1
    problems, count = check(pathlib.Path(__file__).resolve().parent.parent)
    for problem in problems:
        print(problem)
    print(f"check_includes: {count} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
