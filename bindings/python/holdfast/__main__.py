"""`holdfast …` after `pip install`, and `python -m holdfast …`: the command, with kernel, info, trace, and the others."""

import os
import shutil
import sys


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    tool = os.path.join(folder, "bin", "holdfast")
    if not os.path.exists(tool):
        tool = shutil.which("holdfast")
    if tool is None or os.path.realpath(tool) == os.path.realpath(sys.argv[0]):  # the script that called this
        sys.exit("holdfast: the command is not installed with this package, nor in PATH")
    os.execv(tool, [tool, *sys.argv[1:]])


if __name__ == "__main__":
    main()
