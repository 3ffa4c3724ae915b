"""The stubs, as type checkers read them: a program with transforms has no error, and each line of one with mistakes has."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from test_package import ENVIRONMENT, FOLDER

HERE = os.path.join(os.path.dirname(__file__), "typed")
PACKAGES = os.path.dirname(FOLDER)


def command(name):
    """A checker of this interpreter, of the path, or of HOLDFAST_TYPE_CHECKERS, a folder with programs."""
    folders = [os.environ.get("HOLDFAST_TYPE_CHECKERS", ""), os.path.dirname(sys.executable), os.environ.get("PATH", "")]
    return shutil.which(name, path=os.pathsep.join(folders))


def mypy(file, tmp_path):
    """The lines with errors."""
    program = command("mypy")
    if program is None:
        pytest.skip("mypy is not installed")
    result = subprocess.run([program, "--strict", "--cache-dir", str(tmp_path), "--python-version", "3.11", file], env={**ENVIRONMENT, "MYPYPATH": PACKAGES},
                            capture_output=True, text=True)
    assert "usage:" not in result.stderr, result.stderr
    found = re.findall(r"^(.+?):(\d+): error: (.*)", result.stdout, re.M)
    return {int(line): message for path, line, message in found if os.path.basename(path) == os.path.basename(file)}


def pyright(file, tmp_path):
    program = command("pyright") or command("basedpyright")
    if program is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [PACKAGES], "pythonVersion": "3.11", "typeCheckingMode": "standard", "include": [file]}))
    result = subprocess.run([program, "--project", str(tmp_path), "--outputjson"], env=ENVIRONMENT, capture_output=True, text=True)
    found = json.loads(result.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1: each["message"] for each in found if each["severity"] == "error"}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_program_has_no_error(checker, tmp_path):
    assert checker(os.path.join(HERE, "program.py"), tmp_path) == {}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_each_mistake_is_found(checker, tmp_path):
    file = os.path.join(HERE, "mistakes.py")
    with open(file) as lines:
        expected = {number for number, line in enumerate(lines, 1) if line.rstrip().endswith("# refused")}
    assert set(checker(file, tmp_path)) == expected
