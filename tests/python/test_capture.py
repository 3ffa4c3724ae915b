"""Captures from Python: one file, one at a time."""

import os
import subprocess
import sys

import pytest

import holdfast.core as mx
from test_package import ENVIRONMENT, FOLDER

needs_command = pytest.mark.skipif(not os.path.exists(os.path.join(FOLDER, "bin", "holdfast")), reason="the command is not built")


def trace(*words):
    result = subprocess.run([sys.executable, "-m", "holdfast", "trace", *map(str, words)], env=ENVIRONMENT, capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def test_capture_is_a_file(tmp_path):
    path = tmp_path / "step.hfcap"
    mx.metal.start_capture(str(path))
    with pytest.raises(RuntimeError, match="recorded already"):
        mx.metal.start_capture(str(tmp_path / "other.hfcap"))
    mx.eval(mx.exp(mx.ones((16,)) * 2))
    mx.metal.stop_capture()
    assert path.read_bytes().startswith(b"SQLite format 3")
    assert [p.name for p in tmp_path.iterdir()] == ["step.hfcap"]


def test_paths_that_cannot_be_written_and_stop_without_start():
    with pytest.raises(RuntimeError, match="cannot open"):
        mx.metal.start_capture("/nowhere/at/all.hfcap")
    mx.metal.stop_capture()


@needs_command
def test_weights_are_copied_or_named(tmp_path):
    weights = tmp_path / "weights.safetensors"
    mx.save_safetensors(str(weights), {"w": mx.random.normal((64, 64), key=mx.random.key(1))})
    w = mx.load(str(weights))["w"]
    mx.eval(w)
    for name, options in (("copied", {}), ("named", {"reference_files": True})):
        mx.metal.start_capture(tmp_path / name, **options)
        mx.eval(w @ w)
        mx.metal.stop_capture()
    assert "hermetic: yes" in trace("info", tmp_path / "copied")[1]
    assert f"hermetic: no, it needs 16.0 KiB of {weights}\n" in trace("info", tmp_path / "named")[1]
    assert f"of {weights}" in trace("show", tmp_path / "named", 0)[1]
    assert trace("replay", tmp_path / "named") == trace("replay", tmp_path / "copied")
    assert trace("replay", tmp_path / "named")[0] == 0
    weights.rename(tmp_path / "elsewhere")
    assert ", which is missing" in trace("info", tmp_path / "named")[1]
    status, said = trace("replay", tmp_path / "named")
    assert status == 1 and f'"{weights}" is missing' in said


def test_what_is_recorded_is_chosen(tmp_path):
    mx.metal.start_capture(tmp_path / "commands", contents=False, digests=False)
    mx.eval(mx.ones(1000) + mx.arange(1000))
    mx.metal.stop_capture()
    mx.metal.start_capture(tmp_path / "all")
    mx.eval(mx.ones(1000) + mx.arange(1000))
    mx.metal.stop_capture()
    assert 0 < os.path.getsize(tmp_path / "commands") <= os.path.getsize(tmp_path / "all")


@needs_command
def test_variables_of_a_program(tmp_path):
    weights, path = tmp_path / "weights.npy", tmp_path / "run.hfcap"
    mx.save(str(weights), mx.arange(4096.0))
    code = f"import holdfast.core as mx; mx.eval(mx.load({str(weights)!r}).sum())"
    subprocess.run([sys.executable, "-c", code], check=True,
                   env={**ENVIRONMENT, "HOLDFAST_CAPTURE": str(path), "HOLDFAST_CAPTURE_REFERENCES": "1"})
    said = trace("info", path)[1]
    assert f"hermetic: no, it needs 16.0 KiB of {weights}\n" in said and "recorded results: Load" in said
    assert trace("replay", path)[0] == 0
