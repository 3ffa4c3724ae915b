"""Saving and loading, by name and through file objects; NumPy reads what we write and the other way round."""

import concurrent.futures
import io
import os
import pathlib
import zipfile

import numpy as np
import pytest

import holdfast.core as mx

A, B = mx.arange(6).reshape(2, 3), mx.array([1.5, 2.5], mx.float16)


def test_npy(tmp_path):
    mx.save(tmp_path / "a", A)
    assert np.load(tmp_path / "a.npy").tolist() == A.tolist()
    np.save(tmp_path / "b.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert mx.load(str(tmp_path / "b.npy")).tolist() == [[0, 1, 2], [3, 4, 5]]
    file = io.BytesIO()
    mx.save(file, B)
    file.seek(0)
    assert mx.load(file).tolist() == B.tolist()


@pytest.mark.parametrize("save", [mx.savez, mx.savez_compressed])
def test_npz(tmp_path, save):
    save(tmp_path / "a", A, x=B)
    with np.load(tmp_path / "a.npz") as archive:
        assert archive["arr_0"].tolist() == A.tolist() and archive["x"].dtype == np.float16
    loaded = mx.load(tmp_path / "a.npz")
    assert loaded["arr_0"].tolist() == A.tolist() and loaded["x"].tolist() == B.tolist()
    file = io.BytesIO()
    save(file, A)
    file.seek(0)
    assert mx.load(file, format="npz")["arr_0"].tolist() == A.tolist()
    with pytest.raises(ValueError):
        save(tmp_path / "a", 3)
    with pytest.raises(ValueError):
        save(tmp_path / "a", A, arr_0=B)


def test_safetensors(tmp_path):
    mx.save_safetensors(str(tmp_path / "a"), {"a": A, "b": B}, {"made": "today"})
    arrays, metadata = mx.load(tmp_path / "a.safetensors", return_metadata=True)
    assert arrays["a"].tolist() == A.tolist() and arrays["b"].dtype == mx.float16 and metadata["made"] == "today"
    file = io.BytesIO()
    mx.save_safetensors(file, {"a": A})
    file.seek(0)
    assert mx.load(file, format="safetensors")["a"].tolist() == A.tolist()
    with pytest.raises(TypeError):
        mx.save_safetensors(tmp_path / "b", {"a": 3})


def test_gguf(tmp_path):
    mx.save_gguf(tmp_path / "a", {"a": A, "b": B}, {"name": "x", "list": ["a", "b"], "number": mx.array(3)})
    arrays, metadata = mx.load(tmp_path / "a.gguf", return_metadata=True)
    assert arrays["a"].tolist() == A.tolist() and metadata["name"] == "x" and metadata["list"] == ["a", "b"]
    assert metadata["number"].item() == 3


def test_bad_files(tmp_path):
    for name in ("a.npy", "a.npz", "a.safetensors", "a.gguf"):
        (tmp_path / name).write_bytes(b"not such a file at all, but long enough to be one")
        with pytest.raises(RuntimeError):
            mx.eval(mx.load(tmp_path / name))
    with pytest.raises(ValueError):
        mx.load(tmp_path / "a.txt")
    with pytest.raises(RuntimeError):
        mx.load(pathlib.Path("nothing.npy"))
    with pytest.raises(TypeError):
        mx.load(3)
    mx.save(tmp_path / "b.npy", A)
    with pytest.raises(ValueError):
        mx.load(tmp_path / "b.npy", return_metadata=True)


@pytest.mark.parametrize("save", [mx.savez, mx.savez_compressed])
def test_npz_goes_through_links_and_keeps_the_mode(tmp_path, save):
    target, link = tmp_path / "target.npz", tmp_path / "link.npz"
    link.symlink_to("target.npz")
    save(link, A)  # makes what the link leads to
    target.chmod(0o600)
    save(link, A, B)
    assert link.is_symlink() and target.stat().st_mode & 0o777 == 0o600
    assert mx.load(link)["arr_1"].tolist() == B.tolist()


def test_npz_to_what_is_no_regular_file(tmp_path):
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        got = threads.submit(pipe.read_bytes)
        mx.savez(pipe, A)
        assert np.load(io.BytesIO(got.result()))["arr_0"].tolist() == A.tolist()
    assert pipe.is_fifo()
    full = tmp_path / "full.npz"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        mx.savez(full, A)
    assert full.is_char_device() and sorted(os.listdir(tmp_path)) == ["full.npz", "pipe.npz"]


def test_npz_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    mx.savez(path, A)
    before = path.read_bytes()

    def fails(*_, **__):
        raise OSError("no luck")

    monkeypatch.setattr(zipfile.ZipFile, "open", fails)
    with pytest.raises(OSError, match="no luck"):
        mx.savez(path, B)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.npz"]
