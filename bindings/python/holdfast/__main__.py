"""`python -m holdfast …` is the `holdfast` command: kernel, bench, info, and the others."""

import os
import shutil
import sys


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    tool = os.path.join(folder, "bin", "holdfast")
    if not os.path.exists(tool):
        tool = shutil.which("holdfast")
    if tool is None:
        sys.exit("holdfast: the command is not installed with this package, nor in PATH")
    # The command looks for the kernel compiler beside itself; the package has it beside the extension.
    compiler = os.path.join(folder, "libholdfast-jit.so")
    if os.path.exists(compiler):
        os.environ.setdefault("HOLDFAST_JIT_LIBRARY", os.path.realpath(compiler))
    os.execv(tool, [tool, *sys.argv[1:]])


if __name__ == "__main__":
    main()
