// Ops of neural networks that are one kernel each.
#pragma once

#include <optional>
#include <string>

#include <holdfast/array.h>
#include <holdfast/utils.h>

namespace holdfast::fast {

// All of them compute half types in float32 and round once.

// x / sqrt(mean(x^2) + eps) * weight, along the last axis.
array rms_norm(const array& x, const std::optional<array>& weight, float eps,
               StreamOrDevice s = {});

// (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, along the last axis.
array layer_norm(const array& x, const std::optional<array>& weight,
                 const std::optional<array>& bias, float eps, StreamOrDevice s = {});

// Rotary position embedding of x (batch, ..., positions, features): of the first `dims` features,
// pair i at position p turns by (offset + p) * scale * base^(-2 i / dims), or by
// (offset + p) * scale / freqs[i]. Exactly one of `base` and `freqs` is given. A pair is (i, i +
// dims / 2), or (2 i, 2 i + 1) when `traditional`. `offset` as an array: one for all, or one for
// each batch. Angles are computed in double.
array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
           int offset, const std::optional<array>& freqs = std::nullopt, StreamOrDevice s = {});
array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
           const array& offset, const std::optional<array>& freqs = std::nullopt,
           StreamOrDevice s = {});

// softmax(scale * queries keys^T + mask) values. Queries are (batch, heads, positions, features);
// keys and values may have fewer heads, each of which serves heads / key heads neighbouring query
// heads. `mask_mode`: "" for none, "causal" (the last query sees all keys, each one before it one
// less), or "array" (may be left out when `mask_arr` is given): bool, or added to the scores;
// broadcast to (batch, heads, queries, keys). `sinks`: one more score for each head, which takes
// weight but has no value. The matrix of scores is never made, so `force_fused` changes nothing.
array scaled_dot_product_attention(const array& queries, const array& keys, const array& values,
                                   float scale, const std::string& mask_mode = "",
                                   const std::optional<array>& mask_arr = {},
                                   const std::optional<array>& sinks = {}, bool force_fused = false,
                                   StreamOrDevice s = {});

}  // namespace holdfast::fast
