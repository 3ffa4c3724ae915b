// Attention over caches in blocks, and their rows; compiled once per instruction set.
//
// Keys and values become tiles of numbers, once for all rows of queries that share them. What is
// computed for a row does not depend on the others: each has accumulators of its own, which go
// through features, or positions, in order; a position that a row does not see adds zero.
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/simd/kv_kernels.h"
#include "kernels/cpu/simd/kv_pack.h"
#include "kernels/cpu/simd/kv_unpack.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

constexpr float minus_infinity_score = -__builtin_inff();
constexpr int kv_vectors = 2;  // of a step, so that rows share what is loaded

inline float exponential_of_one(float x) { return exponential(broadcast(x))[0]; }

// scores[r, t] = factors[t] * (query r . key t) for the keys of a tile.
template <int rows>
void score_tile_rows(const float* queries, int64_t dims, const float* tile, const float* factors,
                     float* scores) {
  for (int64_t t = 0; t < kv_tile; t += kv_vectors * kv_lanes) {
    Floats sums[rows][kv_vectors] = {};
    for (int64_t j = 0; j < dims; ++j) {
      const float* keys = tile + j * kv_tile + t;
      const Floats first = load_lanes<float>(keys), second = load_lanes<float>(keys + kv_lanes);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const Floats query = broadcast(queries[r * dims + j]);
        sums[r][0] = multiply_add(query, first, sums[r][0]);
        sums[r][1] = multiply_add(query, second, sums[r][1]);
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < kv_vectors; ++v) {
        const int64_t at = t + v * kv_lanes;
        store_lanes(scores + r * simd::split_positions + at,
                    sums[r][v] * load_lanes<float>(factors + at));
      }
    }
  }
}

// out[r, d] += sum over `count` positions of weights[r, t] * values[t, d].
template <int rows, int vectors>
void weigh_tile_columns(const float* weights, const float* values, int64_t dims, int64_t count,
                        float* out, int64_t out_stride) {
  Floats sums[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      sums[r][v] = load_lanes<float>(out + r * out_stride + v * kv_lanes);
    }
  }
  for (int64_t t = 0; t < count; ++t) {
    Floats value[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      value[v] = load_lanes<float>(values + t * dims + v * kv_lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Floats weight = broadcast(weights[r * simd::split_positions + t]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sums[r][v] = multiply_add(weight, value[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      store_lanes(out + r * out_stride + v * kv_lanes, sums[r][v]);
    }
  }
}

template <int rows>
void weigh_tile_rows(const float* weights, const float* values, int64_t dims, int64_t count,
                     float* out, int64_t out_stride) {
  int64_t d = 0;
  for (; d + kv_vectors * kv_lanes <= dims; d += kv_vectors * kv_lanes) {
    weigh_tile_columns<rows, kv_vectors>(weights, values + d, dims, count, out + d, out_stride);
  }
  for (; d < dims; d += kv_lanes) {
    weigh_tile_columns<rows, 1>(weights, values + d, dims, count, out + d, out_stride);
  }
}

// Calls function<rows>(first row) for as many rows at a time as registers hold.
template <typename Function>
void in_row_groups(int64_t count, Function&& function) {
#if defined(__AVX512F__)
  constexpr int most = 8;
#else
  constexpr int most = 4;
#endif
  int64_t r = 0;
  for (; r + most <= count; r += most) function(std::integral_constant<int, most>{}, r);
  if (most > 4 && r + 4 <= count) {
    function(std::integral_constant<int, 4>{}, r);
    r += 4;
  }
  switch (count - r) {
    case 3:
      return function(std::integral_constant<int, 3>{}, r);
    case 2:
      return function(std::integral_constant<int, 2>{}, r);
    case 1:
      return function(std::integral_constant<int, 1>{}, r);
    default:
      return;
  }
}

// Scores become weights, exp(score - largest), zero where the row does not see the position; both
// ends of `visible` count from the split's first position.
void weights_of_row(float* scores, int64_t count, int64_t from, int64_t to, float* header) {
  for (int64_t t = 0; t < from; ++t) scores[t] = minus_infinity_score;
  for (int64_t t = to; t < count; ++t) scores[t] = minus_infinity_score;
  Floats best = broadcast(minus_infinity_score);
  for (int64_t t = 0; t < count; t += kv_lanes) {
    const Floats value = load_lanes<float>(scores + t);
    best = value > best ? value : best;
  }
  float largest = best[0];
  for (int l = 1; l < kv_lanes; ++l) largest = best[l] > largest ? best[l] : largest;
  // All visible scores are minus infinity, or none of them is a number.
  if (!(largest > minus_infinity_score)) largest = 0;
  Floats sum{};
  for (int64_t t = 0; t < count; t += kv_lanes) {
    const Floats weight = exponential(load_lanes<float>(scores + t) - largest);
    store_lanes(scores + t, weight);
    sum += weight;
  }
  header[0] = largest;
  header[1] = add_lanes<float>(sum);
}

// Where the tile from `position` on meets [first, last): calls function(place in the tile, block,
// place in the block, count) for each block, which may be entered in part.
template <typename Function>
void for_blocks(const simd::KvSplit& split, const simd::KvSide& side, int64_t position,
                int64_t step, Function&& function) {
  const int64_t end = position + kv_tile;
  const int64_t part = split.block_size < step ? split.block_size : step;
  for (int64_t at = position; at < end; at += part) {
    if (at >= split.last || at + part <= split.first) continue;
    const char* block = side.base + split.blocks[at / split.block_size] * side.block_bytes;
    function(at - position, block, at % split.block_size, part);
  }
}

void attend_split(const simd::KvSplit& split) {
  auto* key_tile = static_cast<float*>(split.scratch);
  float* value_tile = key_tile + split.keys.dims * kv_tile;
  float* scores = value_tile + split.values.dims * kv_tile;
  float factors[kv_tile];
  const int64_t begin = split.first / kv_tile * kv_tile;
  const int64_t origin = begin - split.split_first;
  const int64_t count = (split.last - begin + kv_tile - 1) / kv_tile * kv_tile;
  for (int64_t tile = 0; tile < count; tile += kv_tile) {
    for (int64_t t = 0; t < kv_tile; ++t) factors[t] = 0;
    for_blocks(split, split.keys, begin + tile, kv_unit,
               [&](int64_t at, const char* block, int64_t place, int64_t) {
                 unpack_keys(split.keys, block, place, split.block_size, key_tile + at,
                             factors + at);
               });
    in_row_groups(split.rows, [&](auto rows, int64_t r) {
      score_tile_rows<rows>(split.queries + r * split.keys.dims, split.keys.dims, key_tile, factors,
                            scores + r * simd::split_positions + origin + tile);
    });
  }
  const int64_t whole = origin + count;
  for (int64_t r = 0; r < split.rows; ++r) {
    auto within = [&](int64_t position) {
      const int64_t at = position - split.split_first;
      return at < 0 ? int64_t{0} : at > whole ? whole : at;
    };
    const int64_t from = within(split.visible[2 * r]), to = within(split.visible[2 * r + 1]);
    float* row = scores + r * simd::split_positions;
    float* out = split.out + r * split.out_stride;
    for (int64_t d = 0; d < simd::partial_header + split.values.dims; ++d) out[d] = 0;
    if (from >= to) {
      for (int64_t t = 0; t < whole; ++t) row[t] = 0;
    } else {
      weights_of_row(row, whole, from, to, out);
    }
  }
  for (int64_t tile = 0; tile < count; tile += kv_tile) {
    const int64_t position = begin + tile;
    const int64_t first = split.first > position ? split.first - position : 0;
    const int64_t last = split.last - position < kv_tile ? split.last - position : kv_tile;
    for_blocks(split, split.values, position, kv_tile,
               [&](int64_t at, const char* block, int64_t place, int64_t some) {
                 const int64_t row_bytes = split.values.row_bytes;
                 for (int64_t t = at < first ? first : at; t < at + some && t < last; ++t) {
                   unpack_row(split.values, block + (place + t - at) * row_bytes,
                              value_tile + t * split.values.dims);
                 }
               });
    in_row_groups(split.rows, [&](auto rows, int64_t r) {
      weigh_tile_rows<rows>(scores + r * simd::split_positions + origin + tile + first,
                            value_tile + first * split.values.dims, split.values.dims, last - first,
                            split.out + r * split.out_stride + simd::partial_header,
                            split.out_stride);
    });
  }
}

size_t split_scratch(int64_t key_dims, int64_t value_dims) {
  return static_cast<size_t>((key_dims + value_dims) * kv_tile +
                             simd::most_split_rows * simd::split_positions) *
         sizeof(float);
}

// state = state * a + partial * b, with the factors that make both relative to the larger score.
void merge_partial(float* state, const float* partial, int64_t dims) {
  if (partial[1] == 0) return;
  const bool is_first = state[1] == 0;
  const float largest = is_first || partial[0] > state[0] ? partial[0] : state[0];
  const float a = is_first ? 0 : exponential_of_one(state[0] - largest);
  const float b = exponential_of_one(partial[0] - largest);
  state[0] = largest;
  state[1] = state[1] * a + partial[1] * b;
  state += simd::partial_header;
  partial += simd::partial_header;
  for (int64_t d = 0; d < dims; d += kv_lanes) {
    const Floats kept = load_lanes<float>(state + d) * a;
    store_lanes(state + d, multiply_add(load_lanes<float>(partial + d), broadcast(b), kept));
  }
}

void finish_row(const float* state, int64_t dims, const float* sink, float* out) {
  float sum = state[1], factor = 1;
  if (sink != nullptr && sum != 0) {
    const float largest = *sink > state[0] ? *sink : state[0];
    factor = exponential_of_one(state[0] - largest);
    sum = sum * factor + exponential_of_one(*sink - largest);
  }
  const float by = sum == 0 ? 0 : factor / sum;
  for (int64_t d = 0; d < dims; d += kv_lanes) {
    store_lanes(out + d, load_lanes<float>(state + simd::partial_header + d) * by);
  }
}

}  // namespace

extern const simd::KvKernels kv_kernels;
const simd::KvKernels kv_kernels{attend_split, split_scratch,  merge_partial, finish_row,
                                 unpack_row,   sum_of_squares, pack_turbo,    pack_affine};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
