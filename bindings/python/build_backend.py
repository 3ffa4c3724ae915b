"""The build backend of `pip install .`: CMake builds the extension, and this makes the wheel. It needs nothing but
Python itself."""

import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import zipfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("HOLDFAST_BUILD_DIRECTORY", os.path.join(ROOT, "build", "wheel"))


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt")) as source:
        for line in source:
            if line.startswith("project(holdfast VERSION "):
                return line.split()[2]
    raise RuntimeError("no version in CMakeLists.txt")


def metadata():
    return (f"Metadata-Version: 2.1\nName: holdfast\nVersion: {version()}\n"
            "Summary: Lazy arrays for machine learning whose command buffers own what they refer to\n"
            "License: MIT\nRequires-Python: >=3.11\n")


def run(*command):
    subprocess.run(command, check=True, cwd=ROOT)


def build():
    run("cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", "-DHOLDFAST_TESTS=OFF",
        f"-DHOLDFAST_PYTHON_EXECUTABLE={sys.executable}",
        *([] if os.path.exists(os.path.join(BUILD, "CMakeCache.txt")) else ["-G", "Ninja"]))
    run("cmake", "--build", BUILD, "--target", "holdfast-python", "holdfast-tool")


def contents():
    """(name in the wheel, file) of everything; links become files."""
    package = os.path.join(BUILD, "python", "holdfast")
    for folder, _, files in os.walk(package, followlinks=True):
        for file in sorted(files):
            path = os.path.join(folder, file)
            if not file.endswith(".pyc") and os.path.exists(path):
                yield os.path.join("holdfast", os.path.relpath(path, package)), path


def tag():
    return "cp311-abi3-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def wheel_file():
    return f"Wheel-Version: 1.0\nGenerator: holdfast\nRoot-Is-Purelib: false\nTag: {tag()}\n"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """What pip asks for first; without it, it would build everything to find out."""
    information = f"holdfast-{version()}.dist-info"
    folder = os.path.join(metadata_directory, information)
    os.makedirs(folder, exist_ok=True)
    for name, text in (("METADATA", metadata()), ("WHEEL", wheel_file())):
        with open(os.path.join(folder, name), "w") as target:
            target.write(text)
    return information


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build()
    information = f"holdfast-{version()}.dist-info"
    name = f"holdfast-{version()}-{tag()}.whl"
    record = []
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(target, data, executable=False):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{target},sha256={digest},{len(data)}")
            entry = zipfile.ZipInfo(target)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, data)

        for target, path in contents():
            with open(path, "rb") as source:
                add(target, source.read(), os.access(path, os.X_OK))
        add(f"{information}/METADATA", metadata().encode())
        add(f"{information}/WHEEL", wheel_file().encode())
        record.append(f"{information}/RECORD,,")
        wheel.writestr(f"{information}/RECORD", "\n".join(record) + "\n")
    return name
