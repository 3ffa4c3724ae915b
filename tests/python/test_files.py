"""Saving and loading, by name and through file objects; NumPy reads what we write and the other way round."""

import io
import pathlib

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
