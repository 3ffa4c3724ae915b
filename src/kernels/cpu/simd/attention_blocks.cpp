// Attention, compiled once per instruction set. No matrix of all scores is ever made.
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/simd/attention_kernels.h"
#include "kernels/cpu/simd/attention_pairs.h"
#include "kernels/cpu/simd/attention_squares.h"
#include "kernels/cpu/simd/matmul_panels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

using simd::AttentionBlock;
using simd::AttentionMask;

constexpr int64_t key_block = 256;  // of `whole`
constexpr int64_t most_rows = simd::attention_rows;

template <typename F>
inline constexpr F lowest_score = is_same<F, float> ? static_cast<F>(-3.4028234663852886e38)
                                                    : static_cast<F>(-1.7976931348623157e308);
template <typename F>
inline constexpr F minus_infinity = static_cast<F>(-__builtin_inf());

template <typename F>
inline F exponential_of(F x) {
  Lanes<F> lanes = x - Lanes<F>{};
  return exponential(lanes)[0];
}

// Scores of keys [first, first + count).
template <typename F>
void apply_mask(MaskKind kind, const AttentionMask& mask, int64_t first, int64_t count, F* scores) {
  if (kind == MaskKind::boolean) {
    const auto* keep = static_cast<const uint8_t*>(mask.data) + first * mask.key_stride;
    for (int64_t j = 0; j < count; ++j) {
      scores[j] = keep[j * mask.key_stride] != 0 ? scores[j] : lowest_score<F>;
    }
  } else if (kind == MaskKind::additive) {
    const auto* add = static_cast<const F*>(mask.data) + first * mask.key_stride;
    for (int64_t j = 0; j < count; ++j) scores[j] += add[j * mask.key_stride];
  }
  for (int64_t j = mask.visible > first ? mask.visible - first : 0; j < count; ++j) {
    scores[j] = lowest_score<F>;
  }
}

template <typename F>
F largest_of(const F* scores, int64_t count) {
  Lanes<F> best = minus_infinity<F> - Lanes<F>{};
  int64_t j = 0;
  for (; j + lane_count<F> <= count; j += lane_count<F>) {
    Lanes<F> value = load_lanes<F>(scores + j);
    best = value > best ? value : best;
  }
  F result = minus_infinity<F>;
  for (int l = 0; l < lane_count<F>; ++l) result = best[l] > result ? best[l] : result;
  for (; j < count; ++j) result = scores[j] > result ? scores[j] : result;
  return result;
}

// scores = exp(scores - shift); gives their sum.
template <typename F>
F exponentiate(F* scores, int64_t count, F shift) {
  Lanes<F> sum{};
  int64_t j = 0;
  for (; j + lane_count<F> <= count; j += lane_count<F>) {
    Lanes<F> value = exponential(load_lanes<F>(scores + j) - shift);
    store_lanes(scores + j, value);
    sum += value;
  }
  if (j < count) {
    Lanes<F> value = exponential(load_some_lanes<F>(scores + j, count - j) - shift);
    store_some_lanes(scores + j, value, count - j);
    F lanes[lane_count<F>];
    store_vector(lanes, value);
    for (int64_t l = count - j; l < lane_count<F>; ++l) lanes[l] = 0;
    sum += load_vector<Lanes<F>>(lanes);
  }
  return add_lanes<F>(sum);
}

// --- few rows ---

// One query against `count` keys.
template <typename T, typename F>
void score_row(const T* query, const T* keys, int64_t key_stride, int64_t count, int64_t features,
               F scale, F* scores) {
  constexpr int width = lane_count<F>;
  for (int64_t j = 0; j < count; ++j) {
    const T* key = keys + j * key_stride;
    Lanes<F> even{}, odd{};
    int64_t d = 0;
    for (; d + 2 * width <= features; d += 2 * width) {
      even = fused_multiply_add(load_lanes<F>(query + d), load_lanes<F>(key + d), even);
      odd =
          fused_multiply_add(load_lanes<F>(query + d + width), load_lanes<F>(key + d + width), odd);
    }
    for (; d < features; d += width) {
      int64_t rest = features - d;
      even = rest >= width
                 ? fused_multiply_add(load_lanes<F>(query + d), load_lanes<F>(key + d), even)
                 : fused_multiply_add(load_some_lanes<F>(query + d, rest),
                                      load_some_lanes<F>(key + d, rest), even);
    }
    scores[j] = add_lanes<F>(even + odd) * scale;
  }
}

// output += the values weighted with `weights`, for up to 4 rows at once.
template <typename T, typename F, int rows>
void weigh_values(const F* weights, int64_t weight_stride, const T* values, int64_t value_stride,
                  int64_t count, int64_t features, F* output) {
  constexpr int width = lane_count<F>;
  constexpr int vectors = 4;
  int64_t d = 0;
  for (; d + vectors * width <= features; d += vectors * width) {
    Lanes<F> sum[rows][vectors];
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) sum[r][v] = Lanes<F>{};
    }
    for (int64_t j = 0; j < count; ++j) {
      const T* value = values + j * value_stride + d;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        Lanes<F> lanes = load_lanes<F>(value + v * width);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          Lanes<F> weight = weights[r * weight_stride + j] - Lanes<F>{};
          sum[r][v] = fused_multiply_add(weight, lanes, sum[r][v]);
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) {
        store_lanes(output + r * features + d + v * width, sum[r][v]);
      }
    }
  }
  for (; d < features; d += width) {
    int64_t rest = smaller_of(width, features - d);
    for (int r = 0; r < rows; ++r) {
      Lanes<F> sum{};
      for (int64_t j = 0; j < count; ++j) {
        Lanes<F> weight = weights[r * weight_stride + j] - Lanes<F>{};
        sum = fused_multiply_add(weight, load_some_lanes<F>(values + j * value_stride + d, rest),
                                 sum);
      }
      store_some_lanes(output + r * features + d, sum, rest);
    }
  }
}

template <typename T, typename F>
void weigh_rows(int64_t rows, const F* weights, int64_t weight_stride, const AttentionBlock& block,
                F* outputs) {
  const T* values = static_cast<const T*>(block.values);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    weigh_values<T, F, 4>(weights + r * weight_stride, weight_stride, values, block.value_stride,
                          block.key_count, block.value_features,
                          outputs + r * block.value_features);
  }
  for (; r < rows; ++r) {
    weigh_values<T, F, 1>(weights + r * weight_stride, weight_stride, values, block.value_stride,
                          block.key_count, block.value_features,
                          outputs + r * block.value_features);
  }
}

#if defined(__AVX512F__)
// The same for the keys from the `count`th on.
AttentionBlock without_keys(AttentionBlock block, int64_t count) {
  block.keys = static_cast<const BFloat16*>(block.keys) + count * block.key_stride;
  block.values = static_cast<const BFloat16*>(block.values) + count * block.value_stride;
  block.key_count -= count;
  return block;
}
#endif

template <typename T, typename F>
void partial_rows(const AttentionBlock& block, F* maxima, F* sums, F* outputs) {
  F* scores = static_cast<F*>(block.scratch);
  int64_t stride = round_up(block.key_count, 16);
  F scale = static_cast<F>(block.scale);
  [[maybe_unused]] bool pairs = false, squares = false;
#if defined(__AVX512F__)
  if constexpr (is_same<T, BFloat16>) {
    pairs = has_bfloat16_dot() && block.features % 32 == 0 && block.value_features % 64 == 0;
    squares = pairs && has_bfloat16_tiles() && block.features <= most_square_features;
    int64_t scored = squares ? score_squares(block, scale, stride, scores) : 0;
    if (pairs) score_pair_rows(without_keys(block, scored), scale, stride, scores + scored);
  }
#endif
  for (int64_t r = 0; r < block.rows; ++r) {
    F* row = scores + r * stride;
    if (!pairs) {
      score_row(static_cast<const T*>(block.queries[r]), static_cast<const T*>(block.keys),
                block.key_stride, block.key_count, block.features, scale, row);
    }
    apply_mask(block.mask_kind, block.masks[r], 0, block.key_count, row);
    maxima[r] = largest_of(row, block.key_count);
    F shift = maxima[r] == minus_infinity<F> ? F{0} : maxima[r];
#if defined(__AVX512F__)
    if constexpr (is_same<T, BFloat16>) {
      if (pairs) {
        sums[r] = exponentiate_pairs(row, block.key_count, shift);
        continue;
      }
    }
#endif
    sums[r] = exponentiate(row, block.key_count, shift);
  }
#if defined(__AVX512F__)
  if constexpr (is_same<T, BFloat16>) {
    if (pairs) {
      const auto* weights = reinterpret_cast<const uint32_t*>(scores);
      return squares ? weigh_squares(block, stride, weights, outputs)
                     : weigh_pair_rows(block, stride, weights, outputs);
    }
  }
#endif
  weigh_rows<T, F>(block.rows, scores, stride, block, outputs);
}

// --- many rows ---

template <typename F>
struct WholeScratch {
  F *queries, *keys, *values, *scores, *weights, *sums, *staged;
  size_t bytes;
  WholeScratch(void* memory, int64_t features, int64_t value_features) {
    int64_t used = 0;
    // Without memory only the size is asked for.
    auto take = [&](int64_t count) {
      F* result = memory ? static_cast<F*>(memory) + used : nullptr;
      used += round_up(count, 16);
      return result;
    };
    constexpr int64_t panels = (most_rows + kernel_rows - 1) / kernel_rows;
    constexpr int64_t width = kernel_columns<F>;
    queries = take(panels * kernel_rows * features + 16);
    keys = take(round_up(key_block, width) * features + 16);
    values = take(key_block * round_up(value_features, width) + 16);
    scores = take(most_rows * key_block);
    weights = take(panels * kernel_rows * key_block + 16);
    sums = take(most_rows * value_features);
    staged = take(most_rows * features);
    bytes = static_cast<size_t>(used) * sizeof(F);
  }
};

template <typename T, typename F>
void whole_rows(const AttentionBlock& block, const F* sinks, void* const* outputs) {
  WholeScratch<F> scratch(block.scratch, block.features, block.value_features);
  int64_t rows = block.rows, height = panel_height(rows);
  F maxima[most_rows], totals[most_rows];
  int64_t keys_seen = 0;
  bool all_see = true;
  for (int64_t r = 0; r < rows; ++r) {
    F* to = scratch.staged + r * block.features;
    const T* query = static_cast<const T*>(block.queries[r]);
    for (int64_t d = 0; d < block.features; ++d) {
      to[d] = widen_one<T, F>(query[d]) * static_cast<F>(block.scale);
    }
    maxima[r] = sinks != nullptr ? sinks[r] : minus_infinity<F>;
    totals[r] = sinks != nullptr ? F{1} : F{0};
    int64_t visible = block.masks[r].visible;
    keys_seen = visible > keys_seen ? visible : keys_seen;
    all_see = all_see && visible > 0;
  }
  // A query that sees nothing takes all keys alike.
  if (!all_see || keys_seen > block.key_count) keys_seen = block.key_count;
  pack_panels<F, kernel_rows>(scratch.staged, block.features, 1, rows, block.features, height,
                              scratch.queries);
  for (int64_t i = 0; i < rows * block.value_features; ++i) scratch.sums[i] = 0;
  for (int64_t k = 0; k < keys_seen; k += key_block) {
    int64_t count = smaller_of(key_block, keys_seen - k);
    constexpr int width = kernel_columns<F>;
    pack_panels<F, width>(static_cast<const T*>(block.keys) + k * block.key_stride,
                          block.key_stride, 1, count, block.features, width, scratch.keys);
    multiply_block<F>(rows, height, count, block.features, scratch.queries, scratch.keys,
                      scratch.scores, key_block, false);
    for (int64_t r = 0; r < rows; ++r) {
      F* row = scratch.scores + r * key_block;
      apply_mask(block.mask_kind, block.masks[r], k, count, row);
      F largest = largest_of(row, count);
      if (largest > maxima[r]) {
        // What was summed up so far refers to the old maximum.
        F factor = maxima[r] == minus_infinity<F> ? F{0} : exponential_of(maxima[r] - largest);
        maxima[r] = largest;
        totals[r] *= factor;
        F* sum = scratch.sums + r * block.value_features;
        for (int64_t d = 0; d < block.value_features; ++d) sum[d] *= factor;
      }
      F shift = maxima[r] == minus_infinity<F> ? F{0} : maxima[r];
      totals[r] += exponentiate(row, count, shift);
    }
    pack_panels<F, kernel_rows>(scratch.scores, key_block, 1, rows, count, height, scratch.weights);
    pack_panels<F, width>(static_cast<const T*>(block.values) + k * block.value_stride, 1,
                          block.value_stride, block.value_features, count, width, scratch.values);
    multiply_block<F>(rows, height, block.value_features, count, scratch.weights, scratch.values,
                      scratch.sums, block.value_features, true);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const F* sum = scratch.sums + r * block.value_features;
    T* to = static_cast<T*>(outputs[r]);
    for (int64_t d = 0; d < block.value_features; ++d) store_one(sum[d] / totals[r], to[d]);
  }
}

template <typename T, typename F>
void combine_row(int64_t splits, int64_t stride, const F* maxima, const F* sums, const F* outputs,
                 int64_t features, const F* sink, T* to) {
  F largest = sink != nullptr ? *sink : minus_infinity<F>;
  for (int64_t i = 0; i < splits; ++i) {
    F value = maxima[i * stride];
    largest = value > largest ? value : largest;
  }
  F shift = largest == minus_infinity<F> ? F{0} : largest;
  F total = sink != nullptr ? exponential_of(*sink - shift) : F{0};
  // The weights of some splits at a time: exp(maximum - shift).
  constexpr int64_t block = 64;
  F weights[block];
  int64_t first_weight = -1;
  auto weigh_from = [&](int64_t first) {
    int64_t count = smaller_of(block, splits - first);
    if (first_weight == first) return count;
    first_weight = first;
    for (int64_t i = 0; i < count; ++i) weights[i] = maxima[(first + i) * stride];
    exponentiate(weights, count, shift);
    return count;
  };
  for (int64_t first = 0; first < splits; first += block) {
    int64_t count = weigh_from(first);
    for (int64_t i = 0; i < count; ++i) total += sums[(first + i) * stride] * weights[i];
  }
  constexpr int64_t piece = 256;
  F sum[piece];
  for (int64_t d = 0; d < features; d += piece) {
    int64_t some = smaller_of(piece, features - d);
    for (int64_t j = 0; j < some; ++j) sum[j] = 0;
    for (int64_t first = 0; first < splits; first += block) {
      int64_t count = weigh_from(first);
      for (int64_t i = 0; i < count; ++i) {
        F factor = weights[i] / total;
        const F* part = outputs + (first + i) * stride * features + d;
        HOLDFAST_VECTORISE
        for (int64_t j = 0; j < some; ++j) sum[j] += part[j] * factor;
      }
    }
    if constexpr (is_same<T, F>) {
      std::memcpy(to + d, sum, static_cast<size_t>(some) * sizeof(F));
    } else {
      narrow(sum, some, to + d);
    }
  }
}

// Calls f with the element and compute types of a dtype.
template <typename Function>
auto with_types(Dtype::Val dtype, const Function& f) {
  switch (dtype) {
    case Dtype::Val::float16:
      return f(Float16{}, float{});
    case Dtype::Val::bfloat16:
      return f(BFloat16{}, float{});
    case Dtype::Val::float64:
      return f(double{}, double{});
    default:
      return f(float{}, float{});
  }
}

void partial(Dtype::Val dtype, const AttentionBlock& block, void* maxima, void* sums,
             void* outputs) {
  with_types(dtype, [&](auto element, auto compute) {
    using F = decltype(compute);
    partial_rows<decltype(element), F>(block, static_cast<F*>(maxima), static_cast<F*>(sums),
                                       static_cast<F*>(outputs));
  });
}

size_t partial_scratch(Dtype::Val dtype, int64_t key_count, int64_t) {
  auto scores = static_cast<size_t>(simd::attention_partial_rows * round_up(key_count, 16));
  return scores * (dtype == Dtype::Val::float64 ? 8 : 4);
}

void whole(Dtype::Val dtype, const AttentionBlock& block, const void* sinks, void* const* outputs) {
  with_types(dtype, [&](auto element, auto compute) {
    using F = decltype(compute);
    whole_rows<decltype(element), F>(block, static_cast<const F*>(sinks), outputs);
  });
}

size_t whole_scratch(Dtype::Val dtype, int64_t features, int64_t value_features) {
  return with_types(dtype, [&](auto, auto compute) {
    return WholeScratch<decltype(compute)>(nullptr, features, value_features).bytes;
  });
}

void combine(Dtype::Val dtype, int64_t splits, int64_t stride, const void* maxima, const void* sums,
             const void* outputs, int64_t value_features, const void* sink, void* output) {
  with_types(dtype, [&](auto element, auto compute) {
    using T = decltype(element);
    using F = decltype(compute);
    combine_row<T, F>(splits, stride, static_cast<const F*>(maxima), static_cast<const F*>(sums),
                      static_cast<const F*>(outputs), value_features, static_cast<const F*>(sink),
                      static_cast<T*>(output));
  });
}

}  // namespace

extern const simd::AttentionKernels attention_kernels;
const simd::AttentionKernels attention_kernels{partial, partial_scratch, whole, whole_scratch,
                                               combine};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
