#!/usr/bin/env python3
"""Builds a wheel and tries it with every Python from 3.10 on that this machine has.

    scripts/check_wheel.py [--wheel FILE] [--folder FOLDER] [PYTHON...]

Each interpreter gets an empty environment and nothing else: no PATH to this tree, no network, an empty home. There a custom kernel runs, the
command checks a kernel, and every library that the process has loaded is of the wheel, of Python, or one that manylinux wheels may
expect. Python 3.10 is refused, with a sentence. Without --wheel, `pip wheel` builds it first (HOLDFAST_BUILD_DIRECTORY, CMAKE_ARGS).
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_BYTES = 80 << 20

PROGRAM = """
import os, sys
import holdfast.core as mx
kernel = mx.fast.metal_kernel("twice", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = 2 * x[i] + T(simd_sum(1));")
x = mx.arange(64)
(y,) = kernel(inputs=[x], template=[("T", mx.int32)], grid=(64, 1, 1), threadgroup=(64, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype])
assert y.tolist() == [2 * i + 32 for i in range(64)], y
try:
    eval_error = None
    mx.fast.metal_kernel("wrong", ["x"], ["y"], "y[0] = no_such(x);")(
        inputs=[x], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)], output_dtypes=[mx.int32])[0].item()
except RuntimeError as error:
    eval_error = str(error)
assert "no_such" in eval_error, eval_error
assert mx.grad(lambda a: (a ** 2).sum())(mx.array([3.0])).item() == 6.0
mx.savez("t.npz", a=x)
assert mx.load("t.npz")["a"].tolist() == x.tolist()
mx.metal.start_capture("t.hfcap"); mx.eval(x + 1); mx.metal.stop_capture()
for line in open("/proc/self/maps"):
    path = line.split(maxsplit=5)[5].strip() if line.count("/") else ""
    if ".so" in path:
        print(path)
"""
KERNEL = """#include <metal_stdlib>
kernel void half_of(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = x[i] / 2; }
"""
OF_THE_SYSTEM = re.compile(r"/(ld-linux-x86-64|libc|libm|libmvec|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+)[-.\d]*\.so[.\d]*$")


def interpreters():
    """(version, path) of each from 3.10 on; one for each version."""
    found = {}
    candidates = [shutil.which(f"python3.{minor}") for minor in range(10, 20)] + ["/usr/bin/python3"]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))
    for path in candidates:
        if not path or not os.path.exists(path):
            continue
        result = subprocess.run([path, "-c", "import sys, ensurepip; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if result.returncode == 0:
            major, minor = map(int, result.stdout.split())
            if major == 3 and minor >= 10:
                found.setdefault((major, minor), path)
    return sorted(found.items())


def build(folder):
    started = time.monotonic()
    before = os.times()
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--wheel-dir", folder, ROOT], check=True,
                   stdout=subprocess.DEVNULL)
    after = os.times()
    (wheel,) = glob.glob(os.path.join(folder, "holdfast-*.whl"))
    print(f"built {os.path.basename(wheel)} in {time.monotonic() - started:.0f} s, "
          f"{after.children_user - before.children_user:.0f} s of processors", flush=True)
    return wheel


def run(words, folder, environment, expected=0):
    result = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if result.returncode != expected:
        sys.exit(f"{result.stdout}{result.stderr}\ncheck_wheel: exit status {result.returncode} of {' '.join(words)}")
    return result.stdout + result.stderr


def try_it(version, python, wheel, folder):
    environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    run([python, "-m", "venv", "environment"], folder, environment)
    place = os.path.join(folder, "environment")
    own = os.path.join(place, "bin", "python")
    install = [own, "-m", "pip", "install", wheel]
    if version < (3, 11):
        said = run(install, folder, environment, expected=1)
        assert "not a supported wheel" in said or "3.11" in said, said
        said = run([own, "-m", "pip", "install", ROOT], folder, environment, expected=1)
        assert "3.11" in said, said
        # And where something else put the package into its path.
        shutil.unpack_archive(wheel, os.path.join(folder, "unpacked"), "zip")
        said = run([own, "-c", "import holdfast.core"], folder, {**environment, "PYTHONPATH": os.path.join(folder, "unpacked")}, expected=1)
        assert "ImportError: holdfast needs Python 3.11 or newer" in said, said
        return "refused, with a sentence"
    run(install, folder, environment)
    loaded = run([own, "-c", PROGRAM], folder, environment).split()
    others = {os.path.realpath(path) for path in loaded if not OF_THE_SYSTEM.search(path)}
    own_folders = (os.path.realpath(place), os.path.realpath(os.path.dirname(os.path.dirname(os.path.realpath(python)))))
    of_python = {path for path in others if path.startswith(own_folders) and "holdfast" not in path or "/python3" in path and "holdfast" not in path}
    foreign = {path for path in others - of_python if "/holdfast/" not in path}
    # What Python itself is linked with (its lib-dynload, libz, libpython) is loaded without holdfast, too.
    bare = run([own, "-c", "import atexit, zipfile, os; print(*{l.split(maxsplit=5)[5].strip() for l in open('/proc/self/maps') if '.so' in l})"],
               folder, environment).split()
    foreign -= {os.path.realpath(path) for path in bare}
    if foreign:
        sys.exit(f"check_wheel: libraries that are neither of the wheel nor of every system: {sorted(foreign)}")
    assert any("libholdfast-jit" in path for path in loaded), loaded
    with open(os.path.join(folder, "kernels.metal"), "w") as file:
        file.write(KERNEL)
    command = os.path.join(place, "bin", "holdfast")
    assert "custom kernels   yes" in run([command, "info"], folder, environment)
    assert "half_of" in run([command, "kernel", "check", "kernels.metal"], folder, environment)
    assert "commands" in run([command, "trace", "info", "t.hfcap"], folder, environment)
    return "a custom kernel ran"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel")
    parser.add_argument("--folder", help="work here, and leave it")
    parser.add_argument("python", nargs="*")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp(prefix="holdfast-wheel-")
    try:
        os.makedirs(folder, exist_ok=True)
        wheel = os.path.abspath(options.wheel) if options.wheel else build(folder)
        bytes_of = os.path.getsize(wheel)
        if bytes_of > MOST_BYTES:
            sys.exit(f"check_wheel: the wheel has {bytes_of / 2**20:.1f} MiB, more than {MOST_BYTES >> 20}")
        print(f"{os.path.basename(wheel)}: {bytes_of / 2**20:.1f} MiB")
        if "manylinux" not in os.path.basename(wheel):
            sys.exit("check_wheel: the wheel is for this machine only")
        found = [(None, path) for path in options.python] or interpreters()
        for version, path in found:
            if version is None:
                text = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True).stdout
                version = tuple(map(int, text.split()))
            place = os.path.join(folder, "python" + ".".join(map(str, version)))
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
            print(f"Python {version[0]}.{version[1]} ({path}): {try_it(version, path, wheel, place)}", flush=True)
        if not any(version is None or version >= (3, 11) for version, _ in found):
            sys.exit("check_wheel: no Python 3.11 or newer on this machine")
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
