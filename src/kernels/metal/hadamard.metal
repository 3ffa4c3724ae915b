// Hadamard transforms: sums and differences of elements `stride` apart, pass by pass. A pass does
// up to four of Sylvester's steps at once, or those of a matrix of another size, in registers.
#include "support/indexing.h"
#include "support/hadamard_parameters.h"

// Calls put(i, element i of a matrix times the vector x): of Sylvester's matrix, or of the one
// whose element (i, j) is -1 where bit j of signs[i] is set. V: float or float4.
template <typename V, int count, typename Put>
inline void multiply(thread V (&x)[count], constant uint* signs, Put put) {
  if constexpr ((count & (count - 1)) == 0) {
#pragma unroll
    for (int half = 1; half < count; half *= 2) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if ((i & half) != 0) continue;
        const V a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
    }
#pragma unroll
    for (int i = 0; i < count; ++i) put(i, x[i]);
  } else {
#pragma nounroll
    for (int i = 0; i < count; ++i) {
      const uint word = signs[i];
      V sum = x[0] * ((word & 1) != 0 ? -1.0f : 1.0f);
#pragma unroll
      for (int j = 1; j < count; ++j) sum += x[j] * ((word >> j & 1) != 0 ? -1.0f : 1.0f);
      put(i, sum);
    }
  }
}

// Where element i is in threadgroup memory, so that neighbours and elements 16 apart are in
// different banks.
inline uint cell(uint i) { return i ^ (i >> 5 & 31); }

// A pass over `size` elements: vectors of `count` elements that are `stride` apart.
template <int count>
inline void pass_in_threadgroup(threadgroup float* memory, uint size, uint stride,
                                constant uint* signs, uint t) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint number = t; number < size / count; number += 256) {
    const uint first = number / stride * stride * count + number % stride;
    float x[count];
    for (int i = 0; i < count; ++i) x[i] = memory[cell(first + i * stride)];
    multiply(x, signs, [&](int i, float value) { memory[cell(first + i * stride)] = value; });
  }
}

// Rows of up to 8192 elements, as many as fit, in threadgroup memory.
template <typename In, typename Out>
KERNEL(256)
hadamard_rows(const device In* in, device Out* out, constant Hadamard& hadamard,
              constant uint* signs, constant uint& rows_per_threadgroup, IN_GROUP(uint)) {
  threadgroup float memory[8192];
  const ulong first_row = ulong(group) * rows_per_threadgroup;
  const uint rows = uint(min(ulong(rows_per_threadgroup), hadamard.rows - first_row));
  const uint size = rows * hadamard.length;
  in += first_row * hadamard.length;
  out += first_row * hadamard.length;
  for (uint first = t * Block<In>::size; first < size; first += 256 * Block<In>::size) {
    const bool is_block = hadamard.aligned && first + Block<In>::size <= size;
    Block<In> block;
    if (is_block) block = load_block(in + first);
    for (int i = 0; i < Block<In>::size; ++i) {
      if (!is_block) block.values[i] = in[min(first + i, size - 1)];
      if (first + i < size) memory[cell(first + i)] = float(block.values[i]);
    }
  }
  for (uint stride = 1; stride < hadamard.power;) {
    const uint left = hadamard.power / stride;
    if (left >= 16) {
      pass_in_threadgroup<16>(memory, size, stride, signs, t);
    } else if (left == 8) {
      pass_in_threadgroup<8>(memory, size, stride, signs, t);
    } else if (left == 4) {
      pass_in_threadgroup<4>(memory, size, stride, signs, t);
    } else {
      pass_in_threadgroup<2>(memory, size, stride, signs, t);
    }
    stride *= min(left, 16u);
  }
  if (hadamard.factor == 12) pass_in_threadgroup<12>(memory, size, hadamard.power, signs, t);
  if (hadamard.factor == 20) pass_in_threadgroup<20>(memory, size, hadamard.power, signs, t);
  if (hadamard.factor == 28) pass_in_threadgroup<28>(memory, size, hadamard.power, signs, t);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint first = t * Block<Out>::size; first < size; first += 256 * Block<Out>::size) {
    Block<Out> block;
    for (int i = 0; i < Block<Out>::size; ++i)
      block.values[i] = Out(memory[cell(min(first + i, size - 1))] * hadamard.scale);
    store_block(out, first, size, hadamard.aligned, block);
  }
}

// A pass over long rows, from memory to memory. A thread has four neighbouring vectors of `count`
// elements; `stride` is a multiple of 4.
template <typename T, int count>
KERNEL(256)
hadamard_pass(const device float* in, device T* out, constant ulong& threads,
              constant ulong& stride, constant float& scale, constant uint* signs, IN_GRID) {
  const ulong number = thread_number(position, grid);
  if (number >= threads) return;
  const uint shift = ctz(uint(stride / 4));  // the stride is a power of two
  const ulong first = (number >> shift) * stride * count + (number & (stride / 4 - 1)) * 4;
  float4 x[count];
  for (int i = 0; i < count; ++i)
    x[i] = *reinterpret_cast<const device float4*>(in + first + i * stride);
  multiply(x, signs, [&](int i, float4 value) {
    vec<T, 4> result;
    for (int c = 0; c < 4; ++c) result[c] = T(value[c] * scale);
    *reinterpret_cast<device vec<T, 4>*>(out + first + i * stride) = result;
  });
}

#define PASS(name, T, count) ENTRY("hadamard_pass_" #count "_" #name, hadamard_pass<T, count>)
#define HADAMARD(name, T)                            \
  ENTRY("hadamard_rows_" #name, hadamard_rows<T, T>) \
  PASS(name, T, 2) PASS(name, T, 16) PASS(name, T, 12) PASS(name, T, 20) PASS(name, T, 28)
FOR_FLOATS(HADAMARD)
ENTRY("hadamard_wide_float16", hadamard_rows<half, float>)
ENTRY("hadamard_wide_bfloat16", hadamard_rows<bfloat, float>)
