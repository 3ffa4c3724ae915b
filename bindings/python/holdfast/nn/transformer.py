"""Attention, transformers, and encodings of positions."""

from __future__ import annotations

import math
from typing import Any, Callable

import holdfast.core as mx
from holdfast.nn.activations import relu
from holdfast.nn.dropout import Dropout
from holdfast.nn.linear import Linear
from holdfast.nn.module import Module
from holdfast.nn.normalization import LayerNorm


class MultiHeadAttention(Module):
    """Attention with several heads, between learned projections."""

    def __init__(self, dims: int, num_heads: int, query_input_dims: int | None = None, key_input_dims: int | None = None,
                 value_input_dims: int | None = None, value_dims: int | None = None, value_output_dims: int | None = None, bias: bool = False):
        super().__init__()
        if dims % num_heads != 0:
            raise ValueError(f"[MultiHeadAttention] dims ({dims}) must be divisible by the heads ({num_heads})")
        self.num_heads = num_heads
        value_dims = value_dims or dims
        key_input_dims = key_input_dims or dims
        self.query_proj = Linear(query_input_dims or dims, dims, bias=bias)
        self.key_proj = Linear(key_input_dims, dims, bias=bias)
        self.value_proj = Linear(value_input_dims or key_input_dims, value_dims, bias=bias)
        self.out_proj = Linear(value_dims, value_output_dims or dims, bias=bias)

    def __call__(self, queries, keys, values, mask=None):
        q, k, v = (mx.unflatten(projected, -1, (self.num_heads, -1)).swapaxes(1, 2)
                   for projected in (self.query_proj(queries), self.key_proj(keys), self.value_proj(values)))
        mixed = mx.fast.scaled_dot_product_attention(q, k, v, scale=math.sqrt(1 / q.shape[-1]), mask=mask)
        return self.out_proj(mixed.swapaxes(1, 2).flatten(-2, -1))

    @staticmethod
    def create_additive_causal_mask(N: int, dtype: mx.Dtype = mx.float32):
        """A mask that is added to scores: as good as minus infinity where a position would see a later one."""
        positions = mx.arange(N)
        return (positions[:, None] < positions[None]).astype(dtype) * mx.finfo(dtype).min


def _feed_forward(layer, dims, mlp_dims):
    layer.linear1 = Linear(dims, mlp_dims or dims * 4)
    layer.linear2 = Linear(mlp_dims or dims * 4, dims)


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself, and two dense layers."""

    def __init__(self, dims: int, num_heads: int, mlp_dims: int | None = None, dropout: float = 0.0, activation: Callable[[Any], Any] = relu,
                 norm_first: bool = True):
        super().__init__()
        self.attention = MultiHeadAttention(dims, num_heads)
        self.ln1, self.ln2 = LayerNorm(dims), LayerNorm(dims)
        _feed_forward(self, dims, mlp_dims)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation, self.norm_first = activation, norm_first

    def _dense(self, x):
        return self.linear2(self.dropout2(self.activation(self.linear1(x))))

    def __call__(self, x, mask):
        if self.norm_first:
            y = self.ln1(x)
            x = x + self.dropout1(self.attention(y, y, y, mask))
            return x + self._dense(self.ln2(x))
        x = self.ln1(x + self.dropout1(self.attention(x, x, x, mask)))
        return self.ln2(x + self._dense(x))


class TransformerDecoderLayer(Module):
    """Attention of a sequence to itself and to a memory, and two dense layers."""

    def __init__(self, dims: int, num_heads: int, mlp_dims: int | None = None, dropout: float = 0.0, activation: Callable[[Any], Any] = relu,
                 norm_first: bool = True):
        super().__init__()
        self.self_attention = MultiHeadAttention(dims, num_heads)
        self.cross_attention = MultiHeadAttention(dims, num_heads)
        self.ln1, self.ln2, self.ln3 = LayerNorm(dims), LayerNorm(dims), LayerNorm(dims)
        _feed_forward(self, dims, mlp_dims)
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.activation, self.norm_first = activation, norm_first

    def _dense(self, x):
        return self.linear2(self.dropout3(self.activation(self.linear1(x))))

    def __call__(self, x, memory, x_mask, memory_mask):
        if self.norm_first:
            y = self.ln1(x)
            x = x + self.dropout1(self.self_attention(y, y, y, x_mask))
            x = x + self.dropout2(self.cross_attention(self.ln2(x), memory, memory, memory_mask))
            return x + self._dense(self.ln3(x))
        x = self.ln1(x + self.dropout1(self.self_attention(x, x, x, x_mask)))
        x = self.ln2(x + self.dropout2(self.cross_attention(x, memory, memory, memory_mask)))
        return self.ln3(x + self._dense(x))


class _Stack(Module):
    """Layers, one after the other, and a norm; with `checkpoint` their insides are computed again for the gradient."""

    _layer = None

    def __init__(self, num_layers: int, dims: int, num_heads: int, mlp_dims: int | None = None, dropout: float = 0.0, activation=relu,
                 norm_first: bool = True, checkpoint: bool = False):
        super().__init__()
        self.layers = [self._layer(dims, num_heads, mlp_dims, dropout, activation, norm_first) for _ in range(num_layers)]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def __call__(self, x, *others):
        for layer in self.layers:
            x = (_checkpointed(layer) if self.checkpoint else layer)(x, *others)
        return self.ln(x)


class TransformerEncoder(_Stack):
    """A stack of TransformerEncoderLayer: call it with a sequence and a mask."""

    _layer = TransformerEncoderLayer


class TransformerDecoder(_Stack):
    """A stack of TransformerDecoderLayer: call it with a sequence, a memory and their masks."""

    _layer = TransformerDecoderLayer


def _checkpointed(module, fn=None):
    """`fn`, or the module, as a function whose gradient computes its insides again; by the trainable parameters, too."""
    fn = fn or module

    def inner(parameters, *args, **kwargs):
        module.update(parameters)
        return fn(*args, **kwargs)

    again = mx.checkpoint(inner)
    return lambda *args, **kwargs: again(module.trainable_parameters(), *args, **kwargs)


class Transformer(Module):
    """An encoder and a decoder: call it with a source, a target and their masks."""

    def __init__(self, dims: int = 512, num_heads: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, mlp_dims: int | None = None,
                 dropout: float = 0.0, activation: Callable[[Any], Any] = relu, custom_encoder: Any | None = None, custom_decoder: Any | None = None,
                 norm_first: bool = True, checkpoint: bool = False):
        super().__init__()
        settings = (dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
        self.encoder = custom_encoder or TransformerEncoder(num_encoder_layers, *settings)
        self.decoder = custom_decoder or TransformerDecoder(num_decoder_layers, *settings)

    def __call__(self, src, tgt, src_mask, tgt_mask, memory_mask):
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)


# --- positions ---


class RoPE(Module):
    """Rotary encoding of positions."""

    def __init__(self, dims: int, traditional: bool = False, base: float = 10000, scale: float = 1.0) -> None:
        super().__init__()
        self.dims, self.traditional, self.base, self.scale = dims, traditional, base, scale

    def _extra_repr(self):
        return f"{self.dims}, traditional={self.traditional}"

    def __call__(self, x, offset: int = 0):
        return mx.fast.rope(x, self.dims, traditional=self.traditional, base=self.base, scale=self.scale, offset=offset)


class SinusoidalPositionalEncoding(Module):
    """Sines and cosines of positions, at frequencies from min_freq to max_freq."""

    def __init__(self, dims: int, min_freq: float = 0.0001, max_freq: float = 1, scale: float | None = None, cos_first: bool = False,
                 full_turns: bool = False):
        super().__init__()
        falling = 1 - mx.arange(0, dims // 2) / (dims // 2 - 1)
        self._sigmas = mx.exp(falling * (math.log(max_freq) - math.log(min_freq)) + math.log(min_freq))
        if full_turns:
            self._sigmas = self._sigmas * (2 * math.pi)
        self.scale = scale or math.sqrt(2 / dims)
        self.cos_first = cos_first

    def __call__(self, x: mx.array) -> mx.array:
        angles = x[..., None] * self._sigmas
        parts = [mx.cos(angles), mx.sin(angles)]
        y = mx.concatenate(parts if self.cos_first else parts[::-1], axis=-1)
        return y if self.scale == 1 else y * self.scale


class ALiBi(Module):
    """Scores of attention that fall with the distance, at a slope for each head."""

    @staticmethod
    def create_alibi_slope(num_heads: int):
        """The slopes of the heads."""
        x = (2**8) ** (1 / num_heads)
        return mx.power(x, -mx.arange(1, num_heads + 1))[..., None, None]

    @staticmethod
    def create_alibi_matrix(q_sequence_length: int, k_sequence_length: int, num_heads: int, offset: int, dtype: mx.Dtype = mx.float32):
        """What is added to the scores: (1, heads, queries, keys)."""
        distance = mx.abs(mx.arange(offset, q_sequence_length)[:, None] - mx.arange(0, k_sequence_length)[None])
        return (-distance[None, None] * ALiBi.create_alibi_slope(num_heads)).astype(dtype)

    def __call__(self, attention_scores, offset=0, mask=None):
        matrix = self.create_alibi_matrix(attention_scores.shape[-2] + offset, attention_scores.shape[-1], attention_scores.shape[1], offset,
                                          attention_scores.dtype)
        return attention_scores + (matrix if mask is None else matrix + mask)
