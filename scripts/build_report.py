#!/usr/bin/env python3
"""Prints how long each folder takes to build and how much machine code it gives, from a build folder of ninja.

  scripts/build_report.py [BUILD-FOLDER]        default: build/release

Times are those of ninja's log: the processor's only when nothing else ran, and small where ccache knew the result. For times of a
clean build: CCACHE_DISABLE=1 cmake --build BUILD-FOLDER --clean-first. Sizes are the text and data of object files.
"""

import collections
import pathlib
import re
import subprocess
import sys


def read_log(build):
    """The last (start, end) in seconds of each output."""
    times = {}
    for line in (build / ".ninja_log").read_text().splitlines():
        if not line.startswith("#"):
            start, end, _, output, _ = line.split("\t")
            times[output] = (int(start) / 1000, int(end) / 1000)
    return times


def folder_of(output):
    """The folder of the source that an object was made of: src/ops, src/kernels/cpu/simd (avx2), tests/ops, …"""
    match = re.fullmatch(r"(?:(\w+)/)?CMakeFiles/([^/]+)\.dir/(.*)/[^/]+\.o", output)
    if match is None:
        return None
    top, target, folder = match.groups()
    folder = re.sub(r"^__/", "", folder)
    path = f"{top}/{folder}" if top else folder
    variant = re.fullmatch(r"holdfast_simd_(\w+)", target)
    return f"{path} ({variant[1]})" if variant else path


def sizes_of(objects):
    """Bytes of text and data of each object file."""
    sizes = {}
    for first in range(0, len(objects), 200):
        done = subprocess.run(["size", "-B", *objects[first:first + 200]], capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines()[1:]:
            text, data, *_, name = line.split()
            sizes[name] = int(text) + int(data)
    return sizes


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    if not (build / ".ninja_log").exists():
        print(f"build_report: no ninja log in {build}", file=sys.stderr)
        return 1
    times = {output: span for output, span in read_log(build).items() if (build / output).exists()}
    seconds, files, objects = collections.Counter(), collections.Counter(), {}
    for output, (start, end) in times.items():
        if folder := folder_of(output):
            seconds[folder] += end - start
            files[folder] += 1
            objects[str(build / output)] = folder
    code = collections.Counter()
    for name, size in sizes_of(list(objects)).items():
        code[objects[name]] += size
    print(f"{'folder':44}{'files':>6}{'seconds':>10}{'KiB of code':>13}")
    for folder, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"{folder:44}{files[folder]:6}{spent:10.1f}{code[folder] / 1024:13.0f}")
    print(f"{'all':44}{sum(files.values()):6}{sum(seconds.values()):10.1f}{sum(code.values()) / 1024:13.0f}")
    print(f"\n{'library or program':44}{'KiB':>10}")
    made = sorted(build.glob("*.a")) + sorted(build.glob("*.so*")) + sorted((build / "lib").glob("*")) + sorted((build / "bin").glob("holdfast*"))
    for path in made:
        if path.is_file() and not path.is_symlink():
            print(f"{str(path.relative_to(build)):44}{path.stat().st_size / 1024:10.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
