// Rows divided by their root mean square, or brought to mean 0 and variance 1; times a weight, plus
// a bias.
#include "support/indexing.h"
#include "support/reduction.h"
#include "support/rows.h"
// Sums of long rows are in double precision.
#undef double

struct Norm {
  float epsilon;
  bool is_centred, has_weight, has_bias;
  bool aligned;  // weight and bias begin at multiples of 16 bytes
};

// A block of weights or biases.
template <typename T, typename Index>
inline void load_parameters(thread float* x, const device T* parameters, Row<T, Index> row,
                            Index block, bool aligned) {
  if (aligned && row.is_whole(block)) {
    const Block<T> values = load_block(parameters + row.position(block, 0));
    for (int i = 0; i < row.per_block; ++i) x[i] = float(values.values[i]);
  } else {
    for (int i = 0; i < row.per_block; ++i) {
      const Index position = row.position(block, i);
      x[i] = float(parameters[position < row.length ? position : 0]);
    }
  }
}

template <typename T, typename Index>
inline void write_normal(thread float* x, Index block, float mean, float factor, Row<T, Index> row,
                         const device T* weight, const device T* bias, constant Norm& norm) {
  for (int i = 0; i < row.per_block; ++i) x[i] = (x[i] - mean) * factor;
  float parameters[row.per_block];
  if (norm.has_weight) {
    load_parameters(parameters, weight, row, block, norm.aligned);
    for (int i = 0; i < row.per_block; ++i) x[i] *= parameters[i];
  }
  if (norm.has_bias) {
    load_parameters(parameters, bias, row, block, norm.aligned);
    for (int i = 0; i < row.per_block; ++i) x[i] += parameters[i];
  }
  row.store(x, block);
}

template <typename T>
KERNEL(1024)
norm_rows(const device T* in, device T* out, const device T* weight, const device T* bias,
          constant Norm& norm, constant Rows& rows, constant Extent* extents, IN_GROUPS,
          uint3 size [[threads_per_threadgroup]]) {
  threadgroup float scratch[32];
  threadgroup float2 pairs[32];
  const ulong number = group_number(group, groups) * (size.x / rows.threads) + t / rows.threads;
  const uint lane = t % rows.threads;
  const bool is_there = number < rows.count;
  Row<T, uint> row(in, out, is_there ? number : 0, rows, extents);
  if (!is_there) row.clear();
  HeldRow<T> held;
  held.load(row, lane, rows.threads, 0);
  float mean = 0;
  if (norm.is_centred) {
    for (int b = 0; b < held.size; ++b) {
      for (int i = 0; i < row.per_block; ++i) mean += held.x[b][i];
    }
    mean = reduce_row<SumOp>(mean, rows.threads, t, scratch) / float(rows.length);
  }
  // Distances from the mean, which is rounded: what their own mean is tells by how much.
  float2 sums = 0;
  for (int b = 0; b < held.size; ++b) {
    const uint block = lane + b * rows.threads;
    for (int i = 0; i < row.per_block; ++i) {
      held.x[b][i] = row.has(block, i) ? held.x[b][i] - mean : 0.0f;
      sums += float2(held.x[b][i], held.x[b][i] * held.x[b][i]);
    }
  }
  sums = reduce_row<SumPairOp>(sums, rows.threads, t, pairs) / float(rows.length);
  const float rest = norm.is_centred ? sums.x : 0.0f;
  const float factor = 1 / sqrt(max(sums.y - rest * rest, 0.0f) + norm.epsilon);
  for (int b = 0; b < held.size; ++b) {
    const uint block = lane + b * rows.threads;
    if (block < row.blocks()) write_normal(held.x[b], block, rest, factor, row, weight, bias, norm);
  }
}

// The sum, and the sum of squares.
struct Moments {
  double sum, squares;
  Moments from_lane(uint lane) const {
    return {::from_lane(sum, lane), ::from_lane(squares, lane)};
  }
  static Moments combine(Moments a, Moments b) { return {a.sum + b.sum, a.squares + b.squares}; }
};

// Long rows, first: the states of their chunks.
template <typename T>
KERNEL(256)
norm_states(const device T* in, device Moments* states, constant Rows& rows,
            constant Extent* extents, IN_GROUPS) {
  threadgroup Moments scratch[8];
  const ulong number = group_number(group, groups);
  if (number >= rows.count * rows.chunks) return;  // the whole threadgroup
  const Row<T, ulong> row(in, nullptr, number / rows.chunks, rows, extents);
  const ulong begin = number % rows.chunks * rows.chunk;
  const ulong end = min(begin + rows.chunk, row.blocks());
  Moments state = {0, 0};
  for (ulong block = begin + t; block < end; block += 256) {
    float x[row.per_block];
    row.load(x, block, 0);
    for (int i = 0; i < row.per_block; ++i) {
      state.sum += double(x[i]);
      state.squares += double(x[i]) * double(x[i]);
    }
  }
  state = reduce_row<Moments>(state, 256, t, scratch);
  if (t == 0) states[number] = state;
}

// And then: the states of a row combined, and a chunk written.
template <typename T>
KERNEL(256)
norm_write(const device T* in, device T* out, const device T* weight, const device T* bias,
           const device Moments* states, constant Norm& norm, constant Rows& rows,
           constant Extent* extents, IN_GROUPS) {
  threadgroup Moments scratch[8];
  const ulong number = group_number(group, groups);
  if (number >= rows.count * rows.chunks) return;  // the whole threadgroup
  const ulong row_number = number / rows.chunks;
  const Row<T, ulong> row(in, out, row_number, rows, extents);
  Moments state = {0, 0};
  for (ulong i = t; i < rows.chunks; i += 256)
    state = Moments::combine(state, states[row_number * rows.chunks + i]);
  state = reduce_row<Moments>(state, 256, t, scratch);
  const double mean = norm.is_centred ? state.sum / double(rows.length) : 0.0;
  const double variance = state.squares / double(rows.length) - mean * mean;
  const float factor = 1 / sqrt(max(float(variance), 0.0f) + norm.epsilon);
  const ulong begin = number % rows.chunks * rows.chunk;
  const ulong end = min(begin + rows.chunk, row.blocks());
  for (ulong block = begin + t; block < end; block += 256) {
    float x[row.per_block];
    row.load(x, block, 0);
    write_normal(x, block, float(mean), factor, row, weight, bias, norm);
  }
}

#define NORM(name, T)                         \
  ENTRY("norm_rows_" #name, norm_rows<T>)     \
  ENTRY("norm_states_" #name, norm_states<T>) \
  ENTRY("norm_write_" #name, norm_write<T>)
FOR_FLOATS(NORM)
