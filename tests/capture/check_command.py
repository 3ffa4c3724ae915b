#!/usr/bin/env python3
"""The commands on a capture of the demonstration: three streams that were made while it was recorded, with wired memory.

  check_command.py HOLDFAST
"""

import ctypes
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import struct
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


def digest(data):
    """Of a blob: base/hash.h."""
    mask = (1 << 64) - 1
    p = [0x243f6a8885a308d3, 0x13198a2e03707345, 0xa4093822299f31d1, 0xb7e151628aed2a6b, 0xbf7158809cf4f3c7]

    def fold(x, y):
        return (x * y & mask) ^ (x * y >> 64)

    def rotate(x):
        return (x << 23 | x >> 41) & mask

    a, b = p[0] ^ len(data), (p[1] + len(data)) & mask
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        x, y = struct.unpack_from("<QQ", data, at)
        a, b = fold(a ^ x, p[2] ^ y), fold((b + y) & mask, (p[3] + x) & mask) ^ rotate(b)
    left = len(data) - whole
    x, y = struct.unpack("<QQ", data[whole:].ljust(16, b"\0"))
    a, b = fold(a ^ x, p[2] ^ y ^ left), fold((b + y) & mask, (p[3] + x + left) & mask) ^ rotate(b)
    return f"{fold((a + p[1]) & mask, (b + p[4]) & mask) ^ a:016x}{fold(a ^ p[4], b ^ p[0]):016x}"


def plant_attachments(file):
    """Puts an attachment of a residency set before the commands of each list, as other tools record it. Returns how many."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = zstd.ZSTD_decompress.restype = ctypes.c_size_t
    size = ctypes.c_size_t
    database = sqlite3.connect(file)
    lists = database.execute("select lists.id, size, data, digest from lists join blobs on blobs.id = commands").fetchall()
    for number, length, packed, recorded in lists:
        room = ctypes.create_string_buffer(length)
        assert zstd.ZSTD_decompress(room, size(length), packed, size(len(packed))) == length
        text = room.raw
        assert digest(text) == recorded
        at = 8  # behind the time: waits, then ops, then the count of commands
        at += 8 + 12 * struct.unpack_from("<Q", text, at)[0]
        (ops,) = struct.unpack_from("<Q", text, at)
        at += 8
        for _ in range(ops):
            at += 9
            at += 8 + struct.unpack_from("<Q", text, at)[0]
        (count,) = struct.unpack_from("<Q", text, at)
        attachment = struct.pack("<BQ", 4, 20) + b"attach residency set"
        text = text[:at] + struct.pack("<Q", count + 1) + attachment + text[at + 8:]
        room = ctypes.create_string_buffer(zstd.ZSTD_compressBound(size(len(text))))
        used = zstd.ZSTD_compress(room, size(len(room)), text, size(len(text)), 1)
        packed = room.raw[:used]
        row = database.execute("insert into blobs(digest, size, data) values(?, ?, ?)", (digest(text), len(text), packed)).lastrowid
        database.execute("update lists set commands = ? where id = ?", (row, number))
    database.commit()
    database.close()
    return len(lists)


def on_a_small_disk(folder, *words):
    """Words that run a command with a file system of 400 KiB mounted on the folder; none where this process may not mount."""
    script = 'mount -t tmpfs -o size=400k none "$0" && "$@"'
    for options in ([], ["--user", "--map-root-user"]):
        inside = ["unshare", "--mount", *options, "sh", "-c", script, folder]
        if shutil.which("unshare") and subprocess.run([*inside, "true"], capture_output=True).returncode == 0:
            return [*inside, *words]
    return None


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

        # What other tools do, and why their replays die: the queue's state among its commands.
        planted = str(pathlib.Path(folder, "planted.hfcap"))
        shutil.copyfile(file, planted)
        assert plant_attachments(planted) >= 9
        for words in (["replay", planted, "--passes", "1000"], ["info", planted]):
            expect(run(tool, "trace", *words, status=1), "lists row 1, command 0: it attaches a residency set: residency is state of a "
                   "queue, recorded once, and never a command")

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

        # A process that is stopped while it writes, as by SIGKILL: the file is as it was at the last commit.
        def stopped():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

        killed = str(pathlib.Path(folder, "killed.hfcap"))
        run(*command, status=-signal.SIGXFSZ, preexec_fn=stopped, env={**os.environ, "HOLDFAST_CAPTURE": killed})
        assert os.path.exists(killed + "-journal")
        expect(run(tool, "trace", "info", killed), "format 3", "hermetic: no, it is not complete (recording)")
        assert not os.path.exists(killed + "-journal")

        small = pathlib.Path(folder, "small")
        small.mkdir()
        partial_there = str(small / "partial.hfcap")
        on_disk = on_a_small_disk(str(small), "sh", "-c", 'HOLDFAST_CAPTURE="$0" "$@" && exec "$1" trace info "$0"', partial_there, *command)
        if on_disk:
            said = run(*on_disk)
            expect(said, "greatest 30", "the capture is not complete: [capture] cannot write", "database or disk is full",
                   "hermetic: no, it is not complete")
        else:
            print("no file system can be mounted here: a full disk was a limit of a file's size")
        expect(run(*command, env={**os.environ, "HOLDFAST_CAPTURE": "/nowhere/at/all"}), "greatest 30",
               "nothing is captured: [capture] cannot open")
        expect(run(tool, "trace", "replay", partial, status=1), "cannot be replayed: it is not complete")


if __name__ == "__main__":
    main()
