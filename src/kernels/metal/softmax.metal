// exp(x - maximum) / sum, over rows. A NaN, an infinite maximum and a row of -infinity give NaN.
#include "support/indexing.h"
#include "support/reduction.h"
#include "support/rows.h"

// Of half types an approximation shows no difference.
template <typename T>
inline float exponential(float x) {
  if constexpr (sizeof(T) == 2)
    return fast::exp(x);
  else
    return exp(x);
}

// Rows of up to 16 elements for each of `threads` threads; several rows in a threadgroup.
template <typename T>
KERNEL(1024)
softmax_rows(const device T* in, device T* out, constant Rows& rows, constant Extent* extents,
             IN_GROUPS, uint3 size [[threads_per_threadgroup]]) {
  threadgroup float scratch[32];
  const ulong number = group_number(group, groups) * (size.x / rows.threads) + t / rows.threads;
  const uint lane = t % rows.threads;
  const bool is_there = number < rows.count;
  Row<T, uint> row(in, out, is_there ? number : 0, rows, extents);
  if (!is_there) row.clear();
  HeldRow<T> held;
  held.load(row, lane, rows.threads, -INFINITY);
  float maximum = -INFINITY;
  for (int b = 0; b < held.size; ++b) {
    for (int i = 0; i < row.per_block; ++i) maximum = max(maximum, held.x[b][i]);
  }
  maximum = reduce_row<MaximumOp>(maximum, rows.threads, t, scratch);
  float sum = 0;
  for (int b = 0; b < held.size; ++b) {
    for (int i = 0; i < row.per_block; ++i) {
      // What is missing: exp(-inf) is 0, but not where the maximum is -inf as well.
      held.x[b][i] = exponential<T>(held.x[b][i] - maximum);
      sum += held.x[b][i];
    }
  }
  sum = reduce_row<SumOp>(sum, rows.threads, t, scratch);
  const float factor = 1 / sum;
  for (int b = 0; b < held.size; ++b) {
    const uint block = lane + b * rows.threads;
    for (int i = 0; i < row.per_block; ++i) held.x[b][i] *= factor;
    if (block < row.blocks()) row.store(held.x[b], block);
  }
}

// Of a chunk: its maximum, and the sum relative to it.
struct MaximumAndSum {
  static float2 combine(float2 a, float2 b) {
    const float maximum = max(a.x, b.x);
    // Without elements the maximum is -infinity, and there is no sum to be scaled.
    const float of_a = a.x == maximum ? a.y : a.y * exp(a.x - maximum);
    const float of_b = b.x == maximum ? b.y : b.y * exp(b.x - maximum);
    return float2(maximum, of_a + of_b);
  }
};

// Long rows, first: the states of their chunks.
template <typename T>
KERNEL(256)
softmax_states(const device T* in, device float2* states, constant Rows& rows,
               constant Extent* extents, IN_GROUPS) {
  threadgroup float2 scratch[8];
  const ulong number = group_number(group, groups);
  if (number >= rows.count * rows.chunks) return;  // the whole threadgroup
  const Row<T, ulong> row(in, nullptr, number / rows.chunks, rows, extents);
  const ulong begin = number % rows.chunks * rows.chunk;
  const ulong end = min(begin + rows.chunk, row.blocks());
  float2 state = float2(-INFINITY, 0);
  for (ulong block = begin + t; block < end; block += 256) {
    float x[row.per_block];
    row.load(x, block, -INFINITY);
    float maximum = state.x;
    for (int i = 0; i < row.per_block; ++i) maximum = max(maximum, x[i]);
    float sum = 0;
    for (int i = 0; i < row.per_block; ++i) {
      // Equal ones at once: the maximum may be infinite.
      if (row.has(block, i)) sum += x[i] == maximum ? 1.0f : exp(x[i] - maximum);
    }
    state = MaximumAndSum::combine(state, float2(maximum, sum));
  }
  state = reduce_row<MaximumAndSum>(state, 256, t, scratch);
  if (t == 0) states[number] = state;
}

// And then: the states of a row combined, and a chunk written.
template <typename T>
KERNEL(256)
softmax_write(const device T* in, device T* out, const device float2* states, constant Rows& rows,
              constant Extent* extents, IN_GROUPS) {
  threadgroup float2 scratch[8];
  const ulong number = group_number(group, groups);
  if (number >= rows.count * rows.chunks) return;  // the whole threadgroup
  const ulong row_number = number / rows.chunks;
  const Row<T, ulong> row(in, out, row_number, rows, extents);
  float2 state = float2(-INFINITY, 0);
  for (ulong i = t; i < rows.chunks; i += 256)
    state = MaximumAndSum::combine(state, states[row_number * rows.chunks + i]);
  state = reduce_row<MaximumAndSum>(state, 256, t, scratch);
  const float factor = isinf(state.x) ? NAN : 1 / state.y;
  const ulong begin = number % rows.chunks * rows.chunk;
  const ulong end = min(begin + rows.chunk, row.blocks());
  for (ulong block = begin + t; block < end; block += 256) {
    float x[row.per_block];
    row.load(x, block, -INFINITY);
    for (int i = 0; i < row.per_block; ++i) x[i] = exponential<T>(x[i] - state.x) * factor;
    row.store(x, block);
  }
}

#define SOFTMAX(name, T)                            \
  ENTRY("softmax_rows_" #name, softmax_rows<T>)     \
  ENTRY("softmax_states_" #name, softmax_states<T>) \
  ENTRY("softmax_write_" #name, softmax_write<T>)
FOR_FLOATS(SOFTMAX)
