"""Saving and loading: npy, npz, safetensors, gguf; by name or through file objects."""

from __future__ import annotations

import os

from holdfast._native import core as _core

__all__ = ["save", "savez", "savez_compressed", "save_safetensors", "save_gguf", "load"]


def _is_file(file):
    return hasattr(file, "read") or hasattr(file, "write")


def _path(file, ending=""):
    path = os.fspath(file)
    if not isinstance(path, str):
        raise TypeError(f"expected a file or its name, got {type(file).__name__}")
    return path if path.endswith(ending) else path + ending


def save(file: str | os.PathLike | IO[bytes], arr: array) -> None:
    """Saves an array as npy.

    Args:
        file (str | os.PathLike | IO[bytes]): the file; a name gets the ending .npy where it has none
        arr (array): the array

    Returns:
        None

    Example:

        >>> mx.save(__import__("io").BytesIO(), mx.ones(2))
    """
    if _is_file(file):
        file.write(_core._save_npy(None, arr))
    else:
        _core._save_npy(_path(file, ".npy"), arr)


def _save_archive(file, args, kwargs, compressed):
    import zipfile  # a quarter of the time that importing the package would take

    arrays = {f"arr_{i}": value for i, value in enumerate(args)}
    for name in arrays:
        if name in kwargs:
            raise ValueError(f"[savez] the name {name} is taken by an argument without a name")
    arrays.update(kwargs)
    for name, value in arrays.items():
        if not isinstance(value, _core.array):
            raise ValueError(f"[savez] {name} must be an array, got {type(value).__name__}")
    _core.eval(arrays)

    def write(target):
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
            for name, value in arrays.items():
                with archive.open(name + ".npy", "w", force_zip64=True) as entry:
                    entry.write(_core._save_npy(None, value))

    if _is_file(file):
        write(file)
        return
    descriptor, replaced = _core._replace_file(_path(file, ".npz"), "savez")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as target:
            write(target)
        _core._commit_file(replaced)
    finally:
        del replaced  # what was not committed is gone before anybody sees the exception


def savez(file: str | os.PathLike | IO[bytes], *args: array, **kwargs: array) -> None:
    """Saves several arrays as npz: by their keyword, or as arr_0, arr_1, …

    Args:
        file (str | os.PathLike | IO[bytes]): the file; a name gets the ending .npz where it has none
        args (array): arrays that are named arr_0, arr_1, …
        kwargs (array): arrays by their names

    Returns:
        None

    Example:

        >>> mx.savez(__import__("io").BytesIO(), mx.ones(2), x=mx.zeros(3))
    """
    _save_archive(file, args, kwargs, False)


def savez_compressed(file: str | os.PathLike | IO[bytes], *args: array, **kwargs: array) -> None:
    """Saves several arrays as npz, compressed.

    Args:
        file (str | os.PathLike | IO[bytes]): the file; a name gets the ending .npz where it has none
        args (array): arrays that are named arr_0, arr_1, …
        kwargs (array): arrays by their names

    Returns:
        None

    Example:

        >>> mx.savez_compressed(__import__("io").BytesIO(), mx.ones(2), x=mx.zeros(3))
    """
    _save_archive(file, args, kwargs, True)


def save_safetensors(file: str | os.PathLike | IO[bytes], arrays: dict[str, array], metadata: dict[str, str] | None = None) -> None:
    """Saves a dict of arrays as safetensors, with texts beside them.

    Args:
        file (str | os.PathLike | IO[bytes]): the file; a name gets the ending .safetensors where it has none
        arrays (dict[str, array]): the arrays by their names
        metadata (dict[str, str] | None): texts that are kept beside them

    Returns:
        None

    Example:

        >>> mx.save_safetensors(__import__("io").BytesIO(), {"x": mx.ones(2)}, {"made": "today"})
    """
    if _is_file(file):
        file.write(_core._save_safetensors(None, arrays, metadata))
    else:
        _core._save_safetensors(_path(file, ".safetensors"), arrays, metadata)


def save_gguf(file: str | os.PathLike, arrays: dict[str, array], metadata: dict[str, array | str | list[str]] | None = None) -> None:
    """Saves a dict of arrays as gguf, with arrays, texts and lists of texts beside them.

    Args:
        file (str | os.PathLike): the name of the file; gets the ending .gguf where it has none
        arrays (dict[str, array]): the arrays by their names
        metadata (dict[str, array | str | list[str]] | None): what is kept beside them

    Returns:
        None
    """
    _core._save_gguf(_path(file, ".gguf"), arrays, {} if metadata is None else metadata)


def load(file: str | os.PathLike | IO[bytes], /, format: str | None = None, return_metadata: bool = False, *, stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array | dict[str, array] | tuple[dict[str, array], dict[str, Any]]:
    """Loads an npy file as an array; npz, safetensors and gguf as a dict of arrays.

    The format is the ending of the name unless it is given. With `return_metadata`, what safetensors and gguf hold
    beside arrays comes too. Elements are read when an array is evaluated.

    Args:
        file (str | os.PathLike | IO[bytes]): the file
        format (str | None): "npy", "npz", "safetensors" or "gguf"; None: by the ending of the name
        return_metadata (bool): also what safetensors and gguf hold beside arrays
        stream (Stream | ThreadLocalStream | Device | DeviceType | None): where it runs: a stream, or the default stream of a device; None: the default stream

    Returns:
        array | dict[str, array] | tuple[dict[str, array], dict[str, Any]]: the array, or arrays by name, or these and the metadata
    """
    if _is_file(file):
        if format is None:
            format = os.path.splitext(getattr(file, "name", ""))[1][1:] or "npy"
        source = file.read()
    else:
        source = _path(file)
        if format is None:
            format = os.path.splitext(source)[1][1:]
    if return_metadata and format not in ("safetensors", "gguf"):
        raise ValueError(f"[load] a file of format {format!r} has no metadata")
    if format == "npy":
        return _core._load_npy(source, stream)
    if format == "npz":
        return _core._load_npz(source, stream)
    if format == "safetensors":
        arrays, metadata = _core._load_safetensors(source, stream)
    elif format == "gguf":
        arrays, metadata = _core._load_gguf(source, stream)
    else:
        raise ValueError(f"[load] the format must be npy, npz, safetensors or gguf, got {format!r}")
    return (arrays, metadata) if return_metadata else arrays
