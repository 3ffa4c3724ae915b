"""Layers, losses and initialisers of neural networks, with the names and the behaviour of ``mlx.nn``."""

from holdfast.nn import activations, init, losses
from holdfast.nn.activations import *  # noqa: F401,F403
from holdfast.nn.containers import Sequential
from holdfast.nn.convolutions import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from holdfast.nn.distributed import (AllToShardedLinear, FullyShardedModule, QuantizedAllToShardedLinear, QuantizedShardedToAllLinear,
                                     ShardedToAllLinear, fully_shard)
from holdfast.nn.dropout import Dropout, Dropout2d, Dropout3d
from holdfast.nn.linear import Bilinear, Embedding, Identity, Linear, QQLinear, QuantizedEmbedding, QuantizedLinear, quantize
from holdfast.nn.module import Module
from holdfast.nn.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from holdfast.nn.pooling import AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d
from holdfast.nn.recurrent import GRU, LSTM, RNN
from holdfast.nn.transformer import (ALiBi, MultiHeadAttention, RoPE, SinusoidalPositionalEncoding, Transformer, TransformerDecoder,
                                     TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer)
from holdfast.nn.upsample import Upsample
from holdfast.nn.utils import average_gradients, value_and_grad

__all__ = ["init", "losses", "ALiBi", "AllToShardedLinear", "average_gradients", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm", "Bilinear", "Conv1d",
           "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Dropout", "Dropout2d", "Dropout3d", "Embedding", "fully_shard",
           "FullyShardedModule", "GroupNorm", "GRU", "Identity", "InstanceNorm", "LayerNorm", "Linear", "LSTM", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Module",
           "MultiHeadAttention", "QQLinear", "quantize", "QuantizedAllToShardedLinear", "QuantizedEmbedding", "QuantizedLinear", "QuantizedShardedToAllLinear",
           "RMSNorm", "RNN", "RoPE", "Sequential", "ShardedToAllLinear", "SinusoidalPositionalEncoding", "Transformer", "TransformerDecoder",
           "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "Upsample", "value_and_grad"]
__all__ += activations.__all__
