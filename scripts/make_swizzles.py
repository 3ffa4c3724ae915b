#!/usr/bin/env python3
"""Writes src/msl/include/holdfast/swizzles.h: one row for each swizzle of a vec of two, three and four components.

A row is HF_READ<k> or HF_WRITE<k> (the components are distinct, so the swizzle may be assigned to) with the components' names, once
as x, y, z, w and once as r, g, b, a. vec.h says what a row becomes.
"""

import itertools
import pathlib

HEADER = """// The swizzles of a vec, one row each: written by scripts/make_swizzles.py.
// clang-format off
#pragma once
"""


def rows(size):
    for count in (2, 3, 4):
        for choice in itertools.product(range(size), repeat=count):
            kind = "WRITE" if len(set(choice)) == count else "READ"
            names = [letters[i] for letters in ("xyzw", "rgba") for i in choice]
            yield f"HF_{kind}{count}({', '.join(names)})"


def main():
    text = HEADER
    for size in (2, 3, 4):
        text += f"\n#define HF_SWIZZLES{size} \\\n" + " \\\n".join(f"  {row}" for row in rows(size)) + "\n"
    path = pathlib.Path(__file__).parent.parent / "src/msl/include/holdfast/swizzles.h"
    path.write_text(text)


main()
