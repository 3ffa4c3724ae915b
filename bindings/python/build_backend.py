"""The build backend of `pip install .` and `pip wheel .`: CMake builds what a wheel holds (the preset `wheel`), and this packs it. It needs nothing
but Python itself, CMake, a compiler, and the libraries that are linked in.

CMAKE_ARGS are further arguments of CMake: -DHOLDFAST_STATIC_DEPENDENCIES=OFF links the system's shared libraries, for a wheel that is to run on
this machine only. HOLDFAST_BUILD_DIRECTORY is the folder to build in, build/wheel by default.
"""

import base64
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("HOLDFAST_BUILD_DIRECTORY", os.path.join(ROOT, "build", "wheel"))
SUMMARY = "Lazy arrays for machine learning whose command buffers own what they refer to"

# What the manylinux policies let a wheel take from the system; all but the C++ library are parts of glibc.
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libmvec.so.1", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2", "libgcc_s.so.1",
                 "libstdc++.so.6"}


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt")) as source:
        for line in source:
            if line.startswith("project(holdfast VERSION "):
                return line.split()[2]
    raise RuntimeError("no version in CMakeLists.txt")


def metadata():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as source:
        readme = source.read()
    return (f"Metadata-Version: 2.1\nName: holdfast\nVersion: {version()}\nSummary: {SUMMARY}\nLicense: MIT\nRequires-Python: >=3.11\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def run(*command, **options):
    return subprocess.run(command, check=True, cwd=ROOT, **options)


def build():
    """Builds, and returns the folder of what belongs into the wheel."""
    run("cmake", "--preset", "wheel", "-B", BUILD, f"-DHOLDFAST_PYTHON_EXECUTABLE={sys.executable}", *shlex.split(os.environ.get("CMAKE_ARGS", "")))
    run("cmake", "--build", BUILD, "--target", "holdfast-wheel")
    folder = os.path.join(BUILD, "wheel")
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "--install", BUILD, "--strip", "--prefix", folder)
    return folder


def contents(folder):
    """(name in the wheel, file) of everything."""
    for parent, _, files in sorted(os.walk(folder)):
        for file in sorted(files):
            path = os.path.join(parent, file)
            yield os.path.relpath(path, folder), path


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def tag(folder):
    """manylinux with this system's glibc, if nothing else of this system is needed: what was linked here may need all that came with it."""
    own, needed = set(), set()
    for name, path in contents(folder):
        if is_elf(path):
            own.add(os.path.basename(name))
            listed = run("objdump", "-p", path, stdout=subprocess.PIPE, text=True).stdout
            needed |= set(re.findall(r"NEEDED +(\S+)", listed))
    others = needed - own - OF_THE_SYSTEM
    name, glibc = platform.libc_ver()
    if others or name != "glibc":
        print(f"the wheel is for this machine only: it needs {', '.join(sorted(others)) or name}", file=sys.stderr)
        return "cp311-abi3-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"cp311-abi3-manylinux_{glibc.replace('.', '_')}_{platform.machine()}"


def wheel_file(tag):
    return f"Wheel-Version: 1.0\nGenerator: holdfast\nRoot-Is-Purelib: false\nTag: {tag}\n"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """What pip asks for first; without it, it would build everything to find out."""
    information = f"holdfast-{version()}.dist-info"
    folder = os.path.join(metadata_directory, information)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "METADATA"), "w", encoding="utf-8") as target:
        target.write(metadata())
    return information


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = build()
    this = tag(folder)
    information = f"holdfast-{version()}.dist-info"
    name = f"holdfast-{version()}-{this}.whl"
    record = []
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED, compresslevel=6) as wheel:

        def add(target, data, executable=False):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{target},sha256={digest},{len(data)}")
            entry = zipfile.ZipInfo(target)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, data)

        for target, path in contents(folder):
            with open(path, "rb") as source:
                add(target, source.read(), os.access(path, os.X_OK))
        add(f"{information}/METADATA", metadata().encode())
        add(f"{information}/WHEEL", wheel_file(this).encode())
        add(f"{information}/entry_points.txt", b"[console_scripts]\nholdfast = holdfast.__main__:main\n")
        record.append(f"{information}/RECORD,,")
        wheel.writestr(f"{information}/RECORD", "\n".join(record) + "\n")
    return name
