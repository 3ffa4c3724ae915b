// Rows of caches of keys and values, as kernels/plan/kv_cache.h describes them. A simdgroup has a
// row in threadgroup memory, and is its threadgroup.
#include <metal_stdlib>
using namespace metal;
#include "support/kv_parameters.h"

constant constexpr uint most_row_dims = 1024, most_row_words = 320;

inline float load_number(const device uchar* from, uint kind, ulong i) {
  if (kind == 0) return reinterpret_cast<const device float*>(from)[i];
  if (kind == 1) return float(reinterpret_cast<const device half*>(from)[i]);
  return float(reinterpret_cast<const device bfloat*>(from)[i]);
}
inline void store_number(device uchar* to, uint kind, ulong i, float value) {
  if (kind == 0) {
    reinterpret_cast<device float*>(to)[i] = value;
  } else if (kind == 1) {
    reinterpret_cast<device half*>(to)[i] = half(value);
  } else {
    reinterpret_cast<device bfloat*>(to)[i] = bfloat(value);
  }
}

// H (signs * row) * factor, or with `back` signs * (H row) * factor; or the matrix times the row,
// or transposed. `spare`: as much memory again.
inline void rotate(threadgroup float* row, threadgroup float* spare, constant KvFormat& rows,
                   const device float* matrix, bool back, uint lane) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (rows.rotation == 2) {
    for (uint j = lane; j < rows.dims; j += 32) {
      float sum = 0;
      for (uint i = 0; i < rows.dims; ++i)
        sum = fma(back ? matrix[i * rows.dims + j] : matrix[j * rows.dims + i], row[i], sum);
      spare[j] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = lane; j < rows.dims; j += 32) row[j] = spare[j];
  }
  if (rows.rotation == 1) {
    auto sign = [&](uint j) { return (rows.signs[j / 32] >> j % 32 & 1) != 0 ? -1.0f : 1.0f; };
    if (!back) {
      for (uint j = lane; j < rows.dims; j += 32) row[j] *= sign(j);
    }
    for (uint half_size = 1; half_size < rows.dims; half_size *= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint i = lane; i < rows.dims / 2; i += 32) {
        const uint first = (i & ~(half_size - 1)) * 2 + (i & (half_size - 1));
        const float a = row[first], b = row[first + half_size];
        row[first] = a + b;
        row[first + half_size] = a - b;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = lane; j < rows.dims; j += 32)
      row[j] = row[j] * rows.factor * (back ? sign(j) : 1.0f);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// A number of a row of words. `word(i)` is its word i.
template <typename Word>
inline float unpack_number(constant KvFormat& rows, const threadgroup float* codebook, uint j,
                           Word word) {
  if (rows.bits == 8) {
    const half2 pair = as_type<half2>(word(rows.packed_words + j / rows.group));
    return fma(float(word(j / 4) >> 8 * (j % 4) & 255), float(pair.x), float(pair.y));
  }
  const uint at = j * rows.bits, shift = at % 32;
  uint index = word(at / 32) >> shift;
  if (shift + rows.bits > 32) index |= word(at / 32 + 1) << (32 - shift);
  return codebook[index & 15] * as_type<float>(word(rows.packed_words));
}
