#!/usr/bin/env python3
"""The commands on a capture of the demonstration: three streams that were made while it was recorded, with wired memory.

  check_command.py HOLDFAST
"""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile


KERNEL = """kernel void twice(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] = 2 * x[i];
}
"""


def run(*words, status=0, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, **options)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def expect(text, *parts):
    for part in parts:
        assert part in text, (part, text)


def main():
    tool = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        page, file = pathlib.Path(folder, "demo.html"), str(pathlib.Path(folder, "demo.hfcap"))
        expect(run(tool, "demo", "--report", str(page)), str(page), "bit for bit the same   yes (5 passes")
        expect(page.read_text(), "sequence 2", "y[i] = x[i] + x[i]")
        # Nothing is left but the two.
        assert sorted(os.listdir(folder)) == ["demo.hfcap", "demo.html"], os.listdir(folder)
        expect(run(tool, "trace", "info", file), "hermetic")

        # Residency as in production, however often: its sets are attached once, and results stay the same.
        expect(run(tool, "trace", "replay", file, "--passes", "1000"), "1000 passes", "bit for bit the same")
        expect(run(tool, "trace", "replay", file, "--validate", "--only", "3..20"), "validated: nothing was found",
               "bit for bit the same")

        # A disk that is full in the middle: the program's own work goes on, and the file is marked.
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

        partial = str(pathlib.Path(folder, "partial.hfcap"))
        kernels = pathlib.Path(folder, "twice.metal")
        kernels.write_text(KERNEL)
        command = [tool, "kernel", "run", str(kernels), "--kernel", "twice", "--in", "x=f32[16]:range", "--out", "y=f32[16]", "--grid", "16",
                   "--threadgroup", "16", "--repeat", "2000"]
        said = run(*command, preexec_fn=small_files, env={**os.environ, "HOLDFAST_CAPTURE": partial})
        expect(said, "greatest 30", "the capture is not complete: [capture] cannot write")
        expect(run(tool, "trace", "info", partial), "not complete")
        expect(run(*command, env={**os.environ, "HOLDFAST_CAPTURE": "/nowhere/at/all"}), "greatest 30",
               "nothing is captured: [capture] cannot open")
        expect(run(tool, "trace", "replay", partial, status=1), "cannot be replayed: it is not complete")


if __name__ == "__main__":
    main()
