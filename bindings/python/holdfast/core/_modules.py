"""The modules inside ``holdfast.core``: random, linalg, fft, fast, metal, cuda, distributed."""

from __future__ import annotations

import sys
import types

from holdfast import _native
from holdfast._native import core as _core

random = _native.random
linalg = _native.linalg
fft = _native.fft
fast = _native.fast


class _RandomState:
    """The key that random functions split when none is given, one a thread: a list of one array."""

    def __len__(self):
        return 1

    def __getitem__(self, place):
        if place not in (0, -1):
            raise IndexError("the state has one key")
        return random._get_state()

    def __setitem__(self, place, key):
        self[place]
        random._set_state(key)

    def __iter__(self):
        yield random._get_state()


_RandomState.__module__ = random.__name__
random._RandomState = _RandomState
random.state = _RandomState()
_core._set_random_state_type(_RandomState)


def _module(name, doc, **members):
    module = types.ModuleType("holdfast.core." + name, doc)
    for key, value in members.items():
        if isinstance(value, types.FunctionType):
            value.__module__ = module.__name__
            value.__name__ = value.__qualname__ = key
        setattr(module, key, value)
    return module


def _start_capture(path: str | os.PathLike, *, contents: bool = True, digests: bool = True, reference_files: bool = False) -> None:
    """Records what runs into a file, for ``python -m holdfast trace``.

    Without ``contents`` it can be looked at, and not replayed; without ``digests`` a replay is not checked. With
    ``reference_files``, what was loaded from files is named instead of copied.

    Args:
        path (str | os.PathLike): the file
        contents (bool): record what memory holds
        digests (bool): record digests of what ops write
        reference_files (bool): name what was loaded from files

    Returns:
        None

    Example:

        >>> mx.metal.stop_capture()
    """
    _core._start_capture(str(path), contents, digests, reference_files)


def _stop_capture() -> None:
    """Ends the recording.

    Returns:
        None

    Example:

        >>> mx.metal.stop_capture()
    """
    _core._stop_capture()


def _metal_is_available() -> bool:
    """Do kernels in the Metal Shading Language run here?

    Returns:
        bool: whether they do

    Example:

        >>> mx.metal.is_available()
        True
    """
    return _core._metal_is_available()


def _metal_device_info() -> dict[str, str | int]:
    """What is known about the device that runs kernels, as a dict.

    Returns:
        dict[str, str | int]: what is known

    Example:

        >>> sorted(mx.metal.device_info())
    """
    return _core._metal_device_info()


metal = _module(
    "metal",
    "What programs written for Metal ask about it.",
    is_available=_metal_is_available,
    device_info=_metal_device_info,
    start_capture=_start_capture,
    stop_capture=_stop_capture,
    clear_cache=_core.clear_cache,
    get_active_memory=_core.get_active_memory,
    get_cache_memory=_core.get_cache_memory,
    get_peak_memory=_core.get_peak_memory,
    reset_peak_memory=_core.reset_peak_memory,
    set_cache_limit=_core.set_cache_limit,
    set_memory_limit=_core.set_memory_limit,
    set_wired_limit=_core.set_wired_limit,
)


def _cuda_is_available() -> bool:
    """Is there a CUDA device?

    Returns:
        bool: whether there is

    Example:

        >>> mx.cuda.is_available()
        False
    """
    return False


cuda = _module("cuda", "CUDA devices.", is_available=_cuda_is_available)


class Group:
    """A group of processes: here always of this one alone."""

    def rank(self) -> int:
        """The place of this process in the group."""
        return 0

    def size(self) -> int:
        """The number of processes."""
        return 1

    def split(self, color: int, key: int = -1) -> Group:
        """A part of the group: a group of one cannot be split, which is an error."""
        _core._split_group(color, key)
        return Group()


Group.__module__ = "holdfast.core.distributed"


def _init(strict: bool = False, backend: str = "any", *, all_gather_factory: Callable[[int, int], Callable[[bytes], bytes]] | None = None) -> Group:
    """The group of this process; with `strict`, an error, since no back-end is there.

    Args:
        strict (bool): raise where there is no back-end
        backend (str): the name of a back-end, or "any"
        all_gather_factory (Any): accepted for MLX's sake

    Returns:
        Group: the group

    Example:

        >>> mx.distributed.init().size()
        1
    """
    _core._init_group(strict, backend)
    return Group()


def _distributed_is_available(backend: str = "any") -> bool:
    """Is there a back-end for several processes?

    Args:
        backend (str): the name of a back-end, or "any"

    Returns:
        bool: whether there is

    Example:

        >>> mx.distributed.is_available()
        False
    """
    return _core._group_available(backend)


def _alone(name, summary):
    def function(x: array, *, group: Group | None = None, stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array:
        return _core.positive(x, stream=stream)

    function.__doc__ = (
        f"{summary} Of a group of one: the array.\n\nArgs:\n    x (array): the array of this process\n"
        f"    group (Group | None): the group; None: that of all processes\n"
        f"    stream (Stream | ThreadLocalStream | Device | DeviceType | None): where it runs: a stream, or the default stream of a device; None: the default stream\n\nReturns:\n    array: the result, on every process\n\n"
        f"Example:\n\n    >>> mx.distributed.{name}(mx.ones(2))\n    array([1, 1], dtype=float32)\n")
    return function


def _send(x: array, dst: int, *, group: Group | None = None, stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array:
    """Sends an array to another process: an error in a group of one.

    Args:
        x (array): the array
        dst (int): the rank of the process that receives it
        group (Group | None): the group; None: that of all processes
        stream (Stream | ThreadLocalStream | Device | DeviceType | None): where it runs: a stream, or the default stream of a device; None: the default stream

    Returns:
        array: the array
    """
    raise ValueError("[send] a group of one process has nobody to send to")


def _recv(shape: Sequence[int], dtype: Dtype, src: int, *, group: Group | None = None, stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array:
    """Receives an array from another process: an error in a group of one.

    Args:
        shape (Sequence[int]): its shape
        dtype (Dtype): its dtype
        src (int): the rank of the process that sends it
        group (Group | None): the group; None: that of all processes
        stream (Stream | ThreadLocalStream | Device | DeviceType | None): where it runs: a stream, or the default stream of a device; None: the default stream

    Returns:
        array: the array
    """
    raise ValueError("[recv] a group of one process has nobody to receive from")


def _recv_like(x: array, src: int, *, group: Group | None = None, stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array:
    """Receives an array like another one: an error in a group of one.

    Args:
        x (array): an array of that shape and dtype
        src (int): the rank of the process that sends it
        group (Group | None): the group; None: that of all processes
        stream (Stream | ThreadLocalStream | Device | DeviceType | None): where it runs: a stream, or the default stream of a device; None: the default stream

    Returns:
        array: the array
    """
    raise ValueError("[recv_like] a group of one process has nobody to receive from")


distributed = _module(
    "distributed",
    "Groups of processes.",
    init=_init,
    is_available=_distributed_is_available,
    all_sum=_alone("all_sum", "The sum over all processes."),
    all_max=_alone("all_max", "The maximum over all processes."),
    all_min=_alone("all_min", "The minimum over all processes."),
    all_gather=_alone("all_gather", "The arrays of all processes, joined."),
    sum_scatter=_alone("sum_scatter", "The sum over all processes, of which each gets a part."),
    send=_send,
    recv=_recv,
    recv_like=_recv_like,
)
distributed.Group = Group


def _check_arrays(name, ndim, **values):
    """TypeError for what is no array, ValueError for too few dimensions."""
    for key, value in values.items():
        if not isinstance(value, _core.array):
            raise TypeError(f"[{name}] {key} must be an array, got {type(value).__name__}")
        if value.ndim < ndim:
            raise ValueError(f"[{name}] {key} must have {ndim} dimensions or more, got {value.ndim}")


def _frames(x, n_fft, hop):
    count = 1 + (x.shape[-1] - n_fft) // hop
    places = _core.arange(n_fft) + hop * _core.arange(count)[:, None]
    return _core.take(x, places, axis=-1)


def _window(window, win_length, n_fft, dtype):
    if window is None:
        window = _core.hanning(win_length + 1)[:win_length]
    if window.ndim != 1 or window.shape[0] != win_length:
        raise ValueError(f"[stft] the window must have {win_length} elements, got the shape {window.shape}")
    low = (n_fft - win_length) // 2
    return _core.pad(window, (low, n_fft - win_length - low))


def _stft(x: array, n_fft: int = 2048, hop_length: int | None = None, win_length: int | None = None, window: array | None = None,
          center: bool = True, pad_mode: str = "reflect", norm: str = "backward", onesided: bool | None = None,
          stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array:
    """The Fourier transforms of overlapping windows of a signal: (..., frequencies, frames).

    Args:
        x (array): signals, along the last axis
        n_fft (int): samples that are transformed
        hop_length (int | None): samples from one window to the next; None: win_length / 4
        win_length (int | None): samples of a window; None: n_fft
        window (array | None): the window, of `win_length` elements; None: Hann's
        center (bool): the signal is padded so that frame i is centred at i * hop_length
        pad_mode (str): how it is padded, as in pad, or "reflect"
        norm (str): as in fft
        onesided (bool | None): only the frequencies from 0 on; None: of real signals
        stream (Stream | ThreadLocalStream | Device | DeviceType | None): where it runs: a stream, or the default stream of a device; None: the default stream

    Returns:
        array: complex64, of shape (..., frequencies, frames)

    Example:

        >>> mx.fft.stft(mx.arange(32, dtype=mx.float32), n_fft=8).shape
        (5, 17)
    """
    _check_arrays("stft", 1, x=x)
    win_length = n_fft if win_length is None else win_length
    hop = win_length // 4 if hop_length is None else hop_length
    onesided = x.dtype != _core.complex64 if onesided is None else onesided
    if center:
        x = _core.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=pad_mode, stream=stream)
    if x.shape[-1] < n_fft or hop < 1:
        raise ValueError(f"[stft] a signal of {x.shape[-1]} samples has no window of {n_fft} with hop {hop}")
    frames = _frames(x, n_fft, hop) * _window(window, win_length, n_fft, x.dtype)
    transform = fft.rfft if onesided else fft.fft
    return _core.swapaxes(transform(frames, axis=-1, norm=norm, stream=stream), -1, -2)


def _istft(stft_matrix: array, n_fft: int | None = None, hop_length: int | None = None, win_length: int | None = None,
           window: array | None = None, center: bool = True, norm: str = "backward", onesided: bool | None = None,
           length: int | None = None, stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array:
    """The signal whose windows were transformed: the inverse of stft.

    Args:
        stft_matrix (array): what stft gave
        n_fft (int | None): samples that were transformed; None: what follows from the shape
        hop_length (int | None): samples from one window to the next; None: win_length / 4
        win_length (int | None): samples of a window; None: n_fft
        window (array | None): the window, of `win_length` elements; None: Hann's
        center (bool): the signal is padded so that frame i is centred at i * hop_length
        norm (str): as in fft
        onesided (bool | None): only the frequencies from 0 on are there; None: yes
        length (int | None): samples of the result; None: all
        stream (Stream | ThreadLocalStream | Device | DeviceType | None): where it runs: a stream, or the default stream of a device; None: the default stream

    Returns:
        array: the signals

    Example:

        >>> mx.fft.istft(mx.fft.stft(mx.arange(32, dtype=mx.float32), n_fft=8), n_fft=8).shape
        (32,)
    """
    _check_arrays("istft", 2, stft_matrix=stft_matrix)
    onesided = True if onesided is None else onesided
    n_fft = (stft_matrix.shape[-2] - 1) * 2 if n_fft is None and onesided else n_fft or stft_matrix.shape[-2]
    win_length = n_fft if win_length is None else win_length
    hop = win_length // 4 if hop_length is None else hop_length
    if n_fft < 1 or hop < 1:
        raise ValueError(f"[istft] n_fft and hop_length must be positive, got {n_fft} and {hop}")
    spectra = _core.swapaxes(stft_matrix, -1, -2)
    transform = fft.irfft if onesided else fft.ifft
    frames = transform(spectra, n_fft, axis=-1, norm=norm, stream=stream)
    window = _window(window, win_length, n_fft, frames.dtype)
    count = frames.shape[-2]
    size = n_fft + hop * (count - 1)
    places = (_core.arange(n_fft) + hop * _core.arange(count)[:, None]).reshape(-1)
    flat = (frames * window).reshape(*frames.shape[:-2], -1)
    zeros = _core.zeros((*frames.shape[:-2], size), flat.dtype)
    signal = zeros.at[..., places].add(flat)
    weight = _core.zeros(size).at[places].add(_core.tile(window * window, count))
    signal = signal / _core.where(weight > 1e-10, weight, 1)
    if center:
        signal = signal[..., n_fft // 2 : size - n_fft // 2]
    return signal if length is None else signal[..., :length]


for _name, _function in (("stft", _stft), ("istft", _istft)):
    _function.__name__ = _function.__qualname__ = _name
    _function.__module__ = "holdfast.core.fft"
    setattr(fft, _name, _function)


def _gated_delta_update(q: array, k: array, v: array, gamma: array, beta: array, initial_state: array | None = None, mask: array | None = None,
                        stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> list[array]:
    """The gated delta rule over time: each step the state decays by gamma, and moves by beta towards v at k.

    Shapes: q and k (batch, time, key heads, key size), v (batch, time, heads, value size), gamma and beta (batch,
    time, heads). Returns the outputs, in the shape of v, and the last state (batch, heads, value size, key size).

    Args:
        q (array): queries
        k (array): keys
        v (array): values
        gamma (array): by what the state decays
        beta (array): how far it moves
        initial_state (array | None): the state before; None: zeros
        mask (array | None): bool, of shape (batch, time): steps that count
        stream (Stream | ThreadLocalStream | Device | DeviceType | None): where it runs: a stream, or the default stream of a device; None: the default stream

    Returns:
        list[array]: the outputs and the last state

    Example:

        >>> mx.fast.gated_delta_update(mx.ones((1, 2, 1, 4)), mx.ones((1, 2, 1, 4)), mx.ones((1, 2, 1, 4)), mx.ones((1, 2, 1)), mx.ones((1, 2, 1)))
        [array([[[[4, 4, 4, 4]],
                [[-8, -8, -8, -8]]]], dtype=float32), array([[[[-2, -2, -2, -2],
                 [-2, -2, -2, -2],
                 [-2, -2, -2, -2],
                 [-2, -2, -2, -2]]]], dtype=float32)]
    """
    _check_arrays("gated_delta_update", 4, q=q, k=k, v=v)
    _check_arrays("gated_delta_update", 3, gamma=gamma, beta=beta)
    batch, time, heads, value_size = v.shape
    repeats = heads // k.shape[2]
    if repeats > 1:
        q = _core.repeat(q, repeats, axis=2)
        k = _core.repeat(k, repeats, axis=2)
    state = initial_state
    if state is None:
        state = _core.zeros((batch, heads, value_size, k.shape[-1]), v.dtype)
    outputs = []
    for t in range(time):
        key, query = k[:, t, :, None, :], q[:, t, :, None, :]
        decay = gamma[:, t, :, None, None]
        step = beta[:, t, :, None]
        before = state
        state = state * decay
        change = (v[:, t] - (state * key).sum(-1)) * step
        state = state + change[..., None] * key
        output = (state * query).sum(-1)
        if mask is not None:
            state = _core.where(mask[:, t, None, None, None], state, before)
        outputs.append(output)
    return [_core.stack(outputs, axis=1), state]


_gated_delta_update.__name__ = _gated_delta_update.__qualname__ = "gated_delta_update"
_gated_delta_update.__module__ = "holdfast.core.fast"
fast.gated_delta_update = _gated_delta_update

for _module_object in (random, linalg, fft, fast, metal, cuda, distributed):
    sys.modules[_module_object.__name__] = _module_object
