"""Layers that multiply by a matrix: dense, and quantised."""

from __future__ import annotations

import math
from typing import Any, Callable

import holdfast.core as mx
from holdfast.nn.module import Module
from holdfast.utils import tree_map_with_path


def _uniform(bound, shape):
    return mx.random.uniform(low=-bound, high=bound, shape=shape)


class Identity(Module):
    """Gives back its input; takes and ignores any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __call__(self, x: mx.array) -> mx.array:
        return x


class Linear(Module):
    """x @ weight.T + bias."""

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        bound = math.sqrt(1 / input_dims)
        self.weight = _uniform(bound, (output_dims, input_dims))
        if bias:
            self.bias = _uniform(bound, (output_dims,))

    def _extra_repr(self):
        return f"input_dims={self.weight.shape[1]}, output_dims={self.weight.shape[0]}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.addmm(self["bias"], x, self["weight"].T) if "bias" in self else x @ self["weight"].T

    def to_quantized(self, group_size: int | None = None, bits: int | None = None, mode: str = "affine", quantize_input: bool = False):
        """A QuantizedLinear of this layer; with `quantize_input` a QQLinear."""
        if quantize_input:
            if mode not in ("nvfp4", "mxfp8"):
                raise ValueError(f"[Linear] inputs are quantised in the modes nvfp4 and mxfp8, got {mode}")
            return QQLinear.from_linear(self, group_size, bits, mode)
        return QuantizedLinear.from_linear(self, group_size, bits, mode)


class Bilinear(Module):
    """x1 @ weight @ x2 + bias, for each output."""

    def __init__(self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        bound = math.sqrt(1 / input1_dims)
        self.weight = _uniform(bound, (output_dims, input2_dims, input1_dims))
        if bias:
            self.bias = _uniform(bound, (output_dims,))

    def _extra_repr(self):
        out, in2, in1 = self.weight.shape
        return f"input1_dims={in1}, input2_dims={in2}, output_dims={out}, bias={'bias' in self}"

    def __call__(self, x1: mx.array, x2: mx.array) -> mx.array:
        out, in2, in1 = self.weight.shape
        left = (x1 @ self.weight.reshape(out * in2, in1).T).reshape(*x1.shape[:-1], out, in2)
        y = (left @ x2[..., None]).squeeze(-1)
        return y + self.bias if "bias" in self else y


class Embedding(Module):
    """Rows of a matrix, by their numbers."""

    def __init__(self, num_embeddings: int, dims: int) -> None:
        super().__init__()
        self.weight = mx.random.normal(shape=(num_embeddings, dims), scale=math.sqrt(1 / dims))

    def _extra_repr(self):
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"

    def __call__(self, x: mx.array) -> mx.array:
        return self["weight"][x]

    def as_linear(self, x):
        """x @ weight.T: for models whose last layer is their first."""
        return x @ self["weight"].T

    def to_quantized(self, group_size: int | None = None, bits: int | None = None, mode: str = "affine", quantize_input: bool = False):
        """A QuantizedEmbedding of this layer."""
        if quantize_input:
            raise ValueError("[Embedding] the input of an embedding cannot be quantised")
        return QuantizedEmbedding.from_embedding(self, group_size, bits, mode)


# --- quantised ---

_DEFAULTS = {"affine": (64, 4), "mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}


def _settings(mode, group_size, bits):
    if mode not in _DEFAULTS:
        raise ValueError(f"[quantize] mode must be one of {', '.join(_DEFAULTS)}, got {mode!r}")
    return group_size or _DEFAULTS[mode][0], bits or _DEFAULTS[mode][1]


class _Quantized(Module):
    """A quantised matrix and how it is quantised. It is frozen: packed numbers have no gradient."""

    def _take(self, weight, group_size, bits, mode):
        self.group_size, self.bits = _settings(mode, group_size, bits)
        self.mode = mode
        self.weight, self.scales, *biases = mx.quantize(weight, self.group_size, self.bits, mode=mode)
        if biases:
            self.biases = biases[0]

    def unfreeze(self, *args, **kwargs):
        """Its own parameters stay frozen."""
        super().unfreeze(*args, **kwargs)
        return self.freeze(recurse=False)

    def _times(self, x, transpose=True):
        return mx.quantized_matmul(x, self["weight"], scales=self["scales"], biases=self.get("biases"), transpose=transpose,
                                   group_size=self.group_size, bits=self.bits, mode=self.mode)

    def _columns(self):
        return self.weight.shape[-1] * 32 // self.bits


class QuantizedLinear(_Quantized):
    """Linear with a quantised matrix."""

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True, group_size: int | None = None, bits: int | None = None, mode: str = "affine") -> None:
        super().__init__()
        self._take(_uniform(math.sqrt(1 / input_dims), (output_dims, input_dims)), group_size, bits, mode)
        if bias:
            self.bias = mx.zeros((output_dims,))
        self.freeze()

    def _extra_repr(self):
        return (f"input_dims={self._columns()}, output_dims={self.weight.shape[0]}, bias={'bias' in self}, group_size={self.group_size}, "
                f"bits={self.bits}, mode={self.mode}")

    def __call__(self, x: mx.array) -> mx.array:
        y = self._times(x)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_linear(cls, linear_layer: Module, group_size: int | None = None, bits: int | None = None, mode: str = "affine"):
        """The layer with its matrix quantised."""
        made = cls.__new__(cls)
        Module.__init__(made)
        made._take(linear_layer.weight, group_size, bits, mode)
        if "bias" in linear_layer:
            made.bias = linear_layer.bias
        return made.freeze()


class QuantizedEmbedding(_Quantized):
    """Embedding with a quantised matrix."""

    def __init__(self, num_embeddings: int, dims: int, group_size: int | None = None, bits: int | None = None, mode: str = "affine") -> None:
        super().__init__()
        self._take(mx.random.normal(shape=(num_embeddings, dims), scale=math.sqrt(1 / dims)), group_size, bits, mode)
        self.num_embeddings, self.dims = num_embeddings, dims
        self.freeze()

    def _extra_repr(self):
        return f"{self.num_embeddings}, {self.dims}, group_size={self.group_size}, bits={self.bits}, mode={self.mode}"

    def __call__(self, x: mx.array) -> mx.array:
        biases = self.get("biases")
        return mx.dequantize(self["weight"][x], scales=self["scales"][x], biases=None if biases is None else biases[x], group_size=self.group_size,
                             bits=self.bits, mode=self.mode)

    def as_linear(self, x):
        """x @ weight.T: for models whose last layer is their first."""
        return self._times(x)

    @classmethod
    def from_embedding(cls, embedding_layer: Module, group_size: int | None = None, bits: int | None = None, mode: str = "affine"):
        """The layer with its matrix quantised."""
        made = cls.__new__(cls)
        Module.__init__(made)
        made.num_embeddings, made.dims = embedding_layer.weight.shape
        made._take(embedding_layer.weight, group_size, bits, mode)
        return made.freeze()


class QQLinear(Module):
    """Linear whose inputs are quantised, too. While it trains, the matrix is kept as it is; eval() packs it."""

    def __init__(self, input_dims: int, output_dims: int, group_size: int | None = None, bits: int | None = None, mode: str = "nvfp4") -> None:
        super().__init__()
        self.group_size, self.bits = _settings(mode, group_size, bits)
        self.mode = mode
        self._quantized = False
        self.weight = _uniform(math.sqrt(1 / input_dims), (output_dims, input_dims))

    def _extra_repr(self):
        columns = self.weight.shape[-1] * (32 // self.bits if self._quantized else 1)
        return f"input_dims={columns}, output_dims={self.weight.shape[0]}, group_size={self.group_size}, bits={self.bits}, mode={self.mode}"

    def quantize(self):
        """Packs the matrix."""
        if not self._quantized:
            self.weight, self.scales = mx.quantize(self.weight, self.group_size, self.bits, mode=self.mode)
            self._quantized = True

    def dequantize(self):
        """Unpacks the matrix."""
        if self._quantized:
            self.weight = mx.dequantize(self.weight, scales=self.scales, group_size=self.group_size, bits=self.bits, mode=self.mode)
            del self.scales
            self._quantized = False

    def __setattr__(self, key, value):
        super().__setattr__(key, value)
        if key == "_training" and "weight" in self:
            self.dequantize() if value else self.quantize()

    def __call__(self, x: mx.array) -> mx.array:
        return mx.qqmm(x, self["weight"], self.get("scales"), group_size=self.group_size, bits=self.bits, mode=self.mode)

    @classmethod
    def from_linear(cls, linear_layer: Module, group_size: int | None = None, bits: int | None = None, mode: str = "nvfp4"):
        """The layer, which must have no bias, with quantised products."""
        if "bias" in linear_layer:
            raise NotImplementedError("[QQLinear] a bias is not supported")
        rows, columns = linear_layer.weight.shape
        made = cls(columns, rows, group_size, bits, mode)
        made.weight = linear_layer.weight
        made.train(linear_layer.training)
        return made


def quantize(model: Module, group_size: int | None = None, bits: int | None = None, *, mode: str = "affine", quantize_input: bool = False,
             class_predicate: Callable[[str, Module], bool | dict] | None = None) -> None:
    """Replaces the layers of a model that can be quantised, in place.

    Args:
        model (Module): the model
        group_size (int | None): numbers that share a scale; None: as the mode has it
        bits (int | None): bits of a number; None: as the mode has it
        mode (str): "affine", "mxfp4", "mxfp8" or "nvfp4"
        quantize_input (bool): products with quantised inputs
        class_predicate (Callable | None): takes a place and a layer; says whether, or with which settings; None: all that have to_quantized
    """
    wanted = class_predicate or (lambda _, layer: hasattr(layer, "to_quantized"))

    def replaced(place, layer):
        answer = wanted(place, layer)
        if not answer:
            return layer
        if not hasattr(layer, "to_quantized"):
            raise ValueError(f"[quantize] a {type(layer).__name__} at {place!r} cannot be quantised")
        if isinstance(answer, dict):
            return layer.to_quantized(**answer)
        if answer is not True:
            raise ValueError(f"[quantize] class_predicate must return a bool or a dict, got {type(answer).__name__}")
        options = {"quantize_input": True} if quantize_input and isinstance(layer, Linear) else {}
        return layer.to_quantized(group_size=group_size, bits=bits, mode=mode, **options)

    model.update_modules(tree_map_with_path(replaced, model.leaf_modules(), is_leaf=Module.is_module))
