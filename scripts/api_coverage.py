#!/usr/bin/env python3
"""Says which functions of MLX's C++ API our headers declare, and which ops have a row in the registry.

  scripts/api_coverage.py             a line for each section, and what is missing
  scripts/api_coverage.py --strict    exit status 1 when a declared op has no row in the registry

Declarations are found by name; the number of overloads is compared where a function is declared with fewer than the list says.
Macros that declare a family (reductions, scans) are expanded by hand below.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "tests/ops/api_rows.txt"
REGISTRY_SECTIONS = re.compile(r"Creation|Type|Shape|Split|Slicing|Comparison|Element|Reductions|Sort|Matrix|Convolution|Quantised|"
                               r"random|linalg|fft|fast|einsum")

# They run code of the user's, or refuse to; tests/kernel_library and tests/compat have them.
TESTED_ELSEWHERE = {"metal_kernel", "cuda_kernel", "precompiled_cuda_kernel"}


def public_text():
    """All public headers in one text, with what macros declare written out."""
    text = ""
    for path in sorted((ROOT / "include/holdfast").glob("*.h")):
        if path.name in ("primitive.h", "encoder.h", "array.h"):
            continue  # members, not functions
        text += f"\nnamespace_of {path.stem}\n" + path.read_text()
    table = (ROOT / "include/holdfast/elementwise.def").read_text()
    text += "".join(f"array {name}(a)\n" for name in re.findall(r"^(?:UNARY|BINARY|TERNARY)\((\w+),", table, flags=re.M))
    return re.sub(r"//.*", "", text)


def count_overloads(text):
    counts = {}
    # A family: "#define HOLDFAST_X(name) … array name(… #undef", used as HOLDFAST_X(sum).
    for macro, body in re.findall(r"#define (HOLDFAST_\w+)\((?:name|op, function)\)((?:.*\\\n)*.*\n)", text):
        overloads = len(re.findall(r"\barray name\(", body))
        for name in re.findall(rf"^{macro}\((\w+)\)", text, flags=re.M):
            counts[name] = counts.get(name, 0) + overloads
    # fft, fft2, fftn: one macro declares two, two and three overloads.
    for one, two, many in re.findall(r"^HOLDFAST_FFT_FORMS\((\w+), (\w+), (\w+)\)", text, flags=re.M):
        counts.update({one: 2, two: 2, many: 3})
    for name in re.findall(r"[\w>&*\]]\s+\*?&?(\w+)\((?=[^()]|\))", text):
        counts[name] = counts.get(name, 0) + 1
    return counts


def main():
    counts = count_overloads(public_text())
    registry = "".join((ROOT / "registry" / name).read_text() for name in ("ops.def", "products.def", "language_models.def"))
    # "sort", "linalg.qr", "fast.rope.offsets": the op behind its namespace.
    rows = {re.sub(r"^(linalg|fast|random|fft)\.", "", name).split(".")[0]
            for name in re.findall(r'^OP\(\s*"([\w.]+)"', registry, flags=re.M)}
    rows |= set(re.findall(r"^FOURIER_\w+\((\w+),", registry, flags=re.M))
    rows |= TESTED_ELSEWHERE
    table = (ROOT / "include/holdfast/elementwise.def").read_text()
    rows |= set(re.findall(r"^(?:UNARY|BINARY|TERNARY)\((\w+),", table, flags=re.M))

    section, sections, missing, untested, fewer = "", {}, [], [], []
    for line in ROWS.read_text().splitlines():
        if line.startswith("# "):
            section = line[2:]
        elif line and not line.startswith("#"):
            space, name, overloads = line.split()
            full = name if space == "-" else f"{space}::{name}"
            have = counts.get(name, 0)
            total = sections.setdefault(section, [0, 0])
            total[1] += 1
            if have == 0:
                missing.append((section, full))
                continue
            total[0] += 1
            if have < int(overloads):
                fewer.append(f"{full} ({have} of {overloads})")
            if REGISTRY_SECTIONS.match(section) and name not in rows:
                untested.append(full)
    for name, (have, total) in sections.items():
        print(f"{have:4d} of {total:4d}  {name}")
    print(f"{sum(h for h, _ in sections.values()):4d} of {sum(t for _, t in sections.values()):4d}  all")
    if missing:
        print("\nnot declared: " + ", ".join(full for _, full in missing))
    if fewer:
        print("\nfewer overloads declared than listed: " + ", ".join(fewer))
    if untested:
        print("\nno row in the registry: " + ", ".join(untested))
    return 1 if "--strict" in sys.argv and untested else 0


if __name__ == "__main__":
    sys.exit(main())
