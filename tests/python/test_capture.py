"""Captures from Python: one file, one at a time."""

import pytest

import holdfast.core as mx


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
