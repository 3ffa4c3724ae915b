// Caches of keys and values: rows of numbers into slots, and to words and back.
#include "support/errors.h"
#include "support/kv.h"

// The row in threadgroup memory as words: numbers of a turbo format rotated, with their norm.
inline void encode_row(threadgroup float* row, threadgroup float* spare, threadgroup uchar* indices,
                       threadgroup uint* words, constant KvFormat& rows, const device float* matrix,
                       uint lane) {
  if (rows.bits == 8) {
    for (uint g = lane; g < rows.dims / rows.group; g += 32) {
      float low = row[g * rows.group], high = low;
      for (uint j = g * rows.group; j < (g + 1) * rows.group; ++j) {
        low = row[j] < low ? row[j] : low;
        high = row[j] > high ? row[j] : high;
      }
      const half bias = half(clamp(low, -65504.0f, 65504.0f));
      const half scale = half(clamp(high / 255 - low / 255, -65504.0f, 65504.0f));
      const float inverse = float(scale) > 0 ? 1 / float(scale) : 0;
      for (uint j = g * rows.group; j < (g + 1) * rows.group; ++j) {
        const float code = (row[j] - float(bias)) * inverse + 0.5f;
        indices[j] = uchar(code > 0 ? (code < 255 ? code : 255.0f) : 0.0f);
      }
      words[rows.packed_words + g] = uint(as_type<ushort>(bias)) << 16 | as_type<ushort>(scale);
    }
  } else {
    // Sums in the order of the host's kernel: the same bits.
    float squares = 0;
    for (uint j = lane; j < rows.dims; j += 32) squares = fma(row[j], row[j], squares);
    spare[lane] = squares;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float norm = 0;
    for (uint i = 0; i < 32; ++i) norm += spare[i];
    norm = sqrt(norm);
    const float factor = 1 / max(norm, 1e-8f);
    for (uint j = lane; j < rows.dims; j += 32) row[j] *= factor;
    rotate(row, spare, rows, matrix, false, lane);
    for (uint j = lane; j < rows.dims; j += 32) {
      uint index = 0;
      for (uint b = 0; b + 1 < 1u << rows.bits; ++b) index += row[j] > rows.boundaries[b] ? 1 : 0;
      indices[j] = uchar(index);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) {
      // What a matrix rotates gets its length back.
      squares = 0;
      for (uint j = 0; j < rows.dims && rows.rotation == 2; ++j)
        squares += rows.codebook[indices[j]] * rows.codebook[indices[j]];
      words[rows.packed_words] = as_type<uint>(rows.rotation == 2 ? norm / sqrt(squares) : norm);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint w = lane; w < rows.packed_words; w += 32) {
    uint word = 0;
    for (uint j = w * 32 / rows.bits; j < rows.dims && j * rows.bits < (w + 1) * 32; ++j) {
      const uint at = j * rows.bits, value = indices[j];
      word |= at >= w * 32 ? value << (at - w * 32) : value >> (w * 32 - at);
    }
    words[w] = word;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// A threadgroup has a row: of a head of a token.
[[kernel, max_total_threads_per_threadgroup(32)]] void kv_write(
    const device uchar* from, const device int* slots, const device float* matrix,
    device uchar* pool, constant KvFormat& rows, constant KvSlots& write, device Errors& errors, uint2 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float row[most_row_dims], spare[most_row_dims];
  threadgroup uchar indices[most_row_dims];
  threadgroup uint words[most_row_words];
  const uint token = group.y, head = group.x;
  const int slot = slots[token];
  if (slot < 0) return;
  if (uint(slot) >= write.rooms) {
    if (lane == 0) report(errors, 1, slot, token);
    return;
  }
  const ulong first = (ulong(token) * write.heads + head) * rows.dims;
  for (uint j = lane; j < rows.dims; j += 32) row[j] = load_number(from, write.kind, first + j);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (rows.bits > 0) encode_row(row, spare, indices, words, rows, matrix, lane);
  const uint place = uint(slot) % write.block_size;
  const ulong block = ulong(uint(slot) / write.block_size) * write.heads + head;
  const ulong begin = block * rows.width * write.block_size +
                      (write.is_columns ? place : ulong(place) * rows.width);
  for (uint j = lane; j < rows.width; j += 32) {
    const ulong to = begin + ulong(j) * (write.is_columns ? write.block_size : 1);
    if (rows.bits > 0) {
      reinterpret_cast<device uint*>(pool)[to] = words[j];
    } else {
      store_number(pool, rows.kind, to, row[j]);
    }
  }
}

[[kernel, max_total_threads_per_threadgroup(32)]] void kv_encode(
    const device uchar* from, const device float* matrix, device uint* to, constant KvFormat& rows, constant uint& kind,
    constant ulong& count, uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]], uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float row[most_row_dims], spare[most_row_dims];
  threadgroup uchar indices[most_row_dims];
  threadgroup uint words[most_row_words];
  const ulong number = ulong(group.y) * groups.x + group.x;
  if (number >= count) return;
  for (uint j = lane; j < rows.dims; j += 32) row[j] = load_number(from, kind, number * rows.dims + j);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  encode_row(row, spare, indices, words, rows, matrix, lane);
  for (uint j = lane; j < rows.width; j += 32) to[number * rows.width + j] = words[j];
}

[[kernel, max_total_threads_per_threadgroup(32)]] void kv_decode(
    const device uint* from, const device float* matrix, device uchar* to, constant KvFormat& rows, constant uint& kind,
    constant ulong& count, uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]], uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float row[most_row_dims], spare[most_row_dims];
  threadgroup float codebook[16];
  const ulong number = ulong(group.y) * groups.x + group.x;
  if (number >= count) return;
  if (lane < 16) codebook[lane] = rows.codebook[lane];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const device uint* words = from + number * rows.width;
  for (uint j = lane; j < rows.dims; j += 32)
    row[j] = unpack_number(rows, codebook, j, [&](uint i) { return words[i]; });
  rotate(row, spare, rows, matrix, true, lane);
  for (uint j = lane; j < rows.dims; j += 32) store_number(to, kind, number * rows.dims + j, row[j]);
}
