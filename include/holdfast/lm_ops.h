// Ops of language models that serve many sequences at once: caches of keys and values in blocks,
// attention over them, and the recurrences of linear attention. Included by fast.h.
//
// A batch is a list of sequences. Its tokens are either (sequences, tokens, ...), as many of each,
// or ragged: (all tokens, ...) with `starts`, where sequence i has tokens starts[i] up to, not
// including, starts[i + 1].
//
// What a sequence gets does not depend, by a bit, on the other sequences of the batch, on how its
// tokens are distributed over calls, nor on the number of threads. Half types are computed in
// float32 and rounded once. Nothing here has a derivative.
//
// Integers (slots, tables, lengths, starts) are int32 or uint32 arrays: values are known only when
// the op runs, which fails with an ExecutionError for one that names nothing. What an op writes in
// place is lost then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <holdfast/array.h>
#include <holdfast/dtype.h>
#include <holdfast/stream.h>
#include <holdfast/utils.h>

namespace holdfast::fast {

// --- caches of keys and values ---

// How a cache stores a row: the key or the value of one head and token, `dims` numbers (a multiple
// of 16, at most 1024).
//   bits 0        the numbers themselves: float16, bfloat16 or float32
//   bits 8        affine: bytes, and for each group of 64 (32, 16: the largest that divides dims)
//                 a scale and a bias, two float16 in a word; numbers beyond 65504 are clamped
//   bits 2, 3, 4  TurboQuant: the norm, and for each number of the rotated row the index of the
//                 nearest value of a codebook. The rotation follows from `seed`: a signed
//                 Walsh-Hadamard transform for powers of two, else a random orthogonal matrix.
// Rows of words (uint32) hold the packed numbers, from the lowest bit on, then the norm (float32)
// or the scales and biases.
struct KvFormat {
  int dims = 0;
  int bits = 0;
  uint64_t seed = 42;

  // Elements of a stored row: numbers, or words.
  int width() const;
  friend bool operator==(const KvFormat&, const KvFormat&) = default;
};

struct KvScheme {
  KvFormat keys, values;

  // "dense", "affine8", "turbo4", "turbo3", "turbo2" (keys and values alike), "turbo<K>v<V>" with K
  // of 0, 8, 2, 3, 4 and V of 2, 3, 4: "turbo4v2". Keys are rotated by `seed`, values by the next.
  static KvScheme named(const std::string& name, int dims, uint64_t seed = 42);
  friend bool operator==(const KvScheme&, const KvScheme&) = default;
};

// The memory of a cache: blocks of `block_size` tokens (a power of two, 16 to 256), zeros. Keys are
// (blocks, heads, width, block_size), so that neighbours in memory are the same feature of
// neighbouring tokens; values are (blocks, heads, block_size, width). `dtype` is that of formats
// with 0 bits, others are uint32.
std::pair<array, array> kv_pools(const KvScheme& scheme, int blocks, int heads, int block_size,
                                 Dtype dtype = bfloat16, StreamOrDevice s = {});

// The pools with rows written into them: row i of `keys` and `values` (tokens, heads, dims), any
// floating-point type, into slot slots[i] = block * block_size + position in the block. Rows with a
// negative slot are not written; the others differ. In place when nothing else holds the pools:
// give them away (std::move, or assign the result to them) before the result is evaluated.
std::pair<array, array> kv_write(array key_pool, array value_pool, const array& keys,
                                 const array& values, const array& slots, const KvScheme& scheme,
                                 StreamOrDevice s = {});

// Rows (..., dims) to words (..., width), for formats with bits, and back.
array kv_encode(const array& x, const KvFormat& format, StreamOrDevice s = {});
array kv_decode(const array& rows, const KvFormat& format, Dtype dtype = float32,
                StreamOrDevice s = {});

// Causal attention of the last tokens of each sequence to all that are in the cache, themselves
// included:
//   queries      (sequences, heads, dims), (sequences, tokens, heads, dims), or ragged
//   block_table  (sequences, most blocks): the blocks of each, in order; what is beyond its length
//                is not read
//   lengths      (sequences): tokens in the cache
//   window       the most keys that a query sees, itself included; 0: all
//   sinks        (heads): one more score for each head, which takes weight but has no value
// Query i of n sees the keys before position lengths - n + i + 1; one that sees none gives zeros.
// The number of key heads divides `heads`: neighbours share. The result is in the shape and dtype
// of the queries, with the features of the values.
array paged_attention(const array& queries, const array& key_pool, const array& value_pool,
                      const array& block_table, const array& lengths, float scale,
                      const KvScheme& scheme, const std::optional<array>& starts = {},
                      int window = 0, const std::optional<array>& sinks = {},
                      StreamOrDevice s = {});

// --- recurrences ---

// Which states and tokens belong together; every part may be left out.
struct Sequences {
  std::optional<array> starts;  // (sequences + 1): tokens are ragged
  std::optional<array> slots;   // (sequences): rows of the states, distinct; else row i; a sequence
                                // with a negative one gives zeros
  std::optional<array> fresh;   // (sequences), bool: begins with zeros, whatever its state holds
  std::optional<array> mask;  // (sequences, tokens) or (all tokens), bool: where false, the result
                              // is 0 and the state stays
};

// The gated delta rule, token by token, for each value head with state S (value dims, key dims):
//   S *= decay;  S += beta (v - S k) k^T;  y = S q
// queries, keys (sequences, tokens, key heads, key dims); values (sequences, tokens, value heads,
// value dims), value heads a multiple of the key heads; decay (sequences, tokens, value heads), or
// with one more axis of key dims; beta (sequences, tokens, value heads); states (states, value
// heads, value dims, key dims) of float32. Gives {y, states}: y in the shape of the values and the
// dtype that queries, keys and values promote to. The states are updated in place when nothing else
// holds them.
std::pair<array, array> gated_delta(const array& queries, const array& keys, const array& values,
                                    const array& decay, const array& beta, array states,
                                    const Sequences& sequences = {}, StreamOrDevice s = {});

// A causal convolution of each channel by itself, with a memory of the last width - 1 inputs:
//   y[t] = bias + sum over i of weight[:, i] x[t - (width - 1) + i]
// x (sequences, tokens, channels), weight (channels, width), width from 2 to 16, states (states,
// width - 1, channels), the oldest first, of float32 or x's dtype; bias (channels). Gives {y,
// states}, as gated_delta does.
std::pair<array, array> causal_conv(const array& x, const array& weight, array states,
                                    const std::optional<array>& bias = {},
                                    const Sequences& sequences = {}, StreamOrDevice s = {});

}  // namespace holdfast::fast
