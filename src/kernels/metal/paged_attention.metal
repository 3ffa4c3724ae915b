// Attention over caches in blocks. A threadgroup has up to 8 rows of queries that share keys, and
// the 256 positions of a split, one for each thread; a key is unpacked once for all rows. The
// results of splits are merged in the order of positions, whatever else is in the batch.
#include "support/errors.h"
#include "support/kv.h"

constant constexpr uint tile_rows = 8, split_keys = 256, partial_header = 2;

// Neighbouring rows of one sequence. What bad integers say is kept inside of the arrays.
struct Tile {
  uint sequence, tokens, first_token, length, first, rows;
  // One more than the last position that the row sees, and the first one.
  uint end_of(constant Paged& paged, uint row) const {
    const int end = int(length) - int(tokens) + int((first + row) / paged.group) + 1;
    return uint(max(end, 0));
  }
  uint begin_of(constant Paged& paged, uint row) const {
    const uint end = end_of(paged, row);
    return paged.window > 0 && end > paged.window ? end - paged.window : 0;
  }
};
inline uint2 tokens_of(constant Paged& paged, const device int* starts, uint sequence) {
  if (!paged.has_starts)
    return uint2(sequence * paged.tokens_of_each, (sequence + 1) * paged.tokens_of_each);
  const uint first = uint(clamp(starts[sequence], 0, int(paged.tokens)));
  return uint2(first, uint(clamp(starts[sequence + 1], int(first), int(paged.tokens))));
}
inline Tile tile_of(constant Paged& paged, const device int* starts, const device int* lengths,
                    uint sequence, uint first, uint most_rows) {
  const uint2 tokens = tokens_of(paged, starts, sequence);
  const uint count = tokens.y - tokens.x, rows = count * paged.group;
  const uint length =
      uint(clamp(lengths[sequence], 0, int(paged.most_blocks * paged.block_size)));
  return {sequence, count, tokens.x, length, first, first < rows ? min(most_rows, rows - first) : 0};
}

// What reads `checked` is not run where something is wrong.
[[kernel]] void paged_check(const device int* table, const device int* lengths,
                            const device int* starts, device uint* checked, constant Paged& paged,
                            device Errors& errors, uint i [[thread_position_in_grid]]) {
  if (i == 0) checked[0] = 1;
  if (i >= paged.sequences) return;
  if (paged.has_starts) {
    if (starts[0] != 0 || starts[paged.sequences] != int(paged.tokens))
      report(errors, 1, starts[0], starts[paged.sequences]);
    if (starts[i] > starts[i + 1]) report(errors, 2, starts[i], i);
  }
  if (lengths[i] < 0 || lengths[i] > int(paged.most_blocks * paged.block_size))
    report(errors, 3, lengths[i], i);
  const Tile tile = tile_of(paged, starts, lengths, i, 0, 1);
  if (tile.rows == 0) return;
  const uint begin = tile.begin_of(paged, 0);
  for (uint block = begin / paged.block_size; block * paged.block_size < tile.length; ++block) {
    const int entry = table[i * paged.most_blocks + block];
    if (entry < 0 || entry >= int(paged.blocks)) report(errors, 4, entry, i);
  }
}

// Queries as float32, scaled and rotated, those that share keys together.
[[kernel, max_total_threads_per_threadgroup(32)]] void paged_prepare(
    const device uchar* queries, const device float* matrix, device float* prepared,
    constant Paged& paged, constant KvFormat& keys, uint2 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float row[most_row_dims], spare[most_row_dims];
  const uint head = group.x, token = group.y;
  const ulong from = (ulong(token) * paged.heads + head) * keys.dims;
  for (uint j = lane; j < keys.dims; j += 32) row[j] = load_number(queries, paged.query_kind, from + j);
  rotate(row, spare, keys, matrix, false, lane);
  const ulong to = ((ulong(head / paged.group) * paged.tokens + token) * paged.group +
                    head % paged.group) * keys.dims;
  for (uint j = lane; j < keys.dims; j += 32) prepared[to + j] = row[j] * paged.scale;
}

// scores[r] = query r . key, for the key that is a column at `column`, `stride` apart.
template <typename T>
inline void score_numbers(const device T* column, uint stride, const device float* queries,
                          uint dims, const thread uint* rows, thread float* scores) {
  for (uint j = 0; j < dims; ++j) {
    const float key = float(column[ulong(j) * stride]);
    for (uint r = 0; r < tile_rows; ++r) scores[r] = fma(queries[rows[r] + j], key, scores[r]);
  }
}
// Sixteen indices at a time: two words hold them.
template <uint bits>
inline void score_indices(const device uint* column, uint stride, const device float* queries,
                          constant KvFormat& keys, const threadgroup float* codebook,
                          const thread uint* rows, thread float* scores) {
  for (uint base = 0; base < keys.dims; base += 16) {
    const uint word = base * bits / 32;
    ulong packed = column[ulong(word) * stride];
    if (bits > 2) packed |= ulong(column[ulong(word + 1) * stride]) << 32;
    packed >>= base * bits % 32;
#pragma unroll
    for (uint i = 0; i < 16; ++i) {
      const float key = codebook[uint(packed >> (i * bits)) & 15];
      for (uint r = 0; r < tile_rows; ++r)
        scores[r] = fma(queries[rows[r] + base + i], key, scores[r]);
    }
  }
  const float norm = as_type<float>(column[ulong(keys.packed_words) * stride]);
  for (uint r = 0; r < tile_rows; ++r) scores[r] *= norm;
}
inline void score_bytes(const device uint* column, uint stride, const device float* queries,
                        constant KvFormat& keys, const thread uint* rows, thread float* scores) {
  for (uint j = 0; j < keys.dims; ++j) {
    const half2 pair = as_type<half2>(column[ulong(keys.packed_words + j / keys.group) * stride]);
    const uint code = column[ulong(j / 4) * stride] >> 8 * (j % 4) & 255;
    const float key = fma(float(code), float(pair.x), float(pair.y));
    for (uint r = 0; r < tile_rows; ++r) scores[r] = fma(queries[rows[r] + j], key, scores[r]);
  }
}

[[kernel, max_total_threads_per_threadgroup(256)]] void paged_splits(
    const device float* prepared, const device uchar* key_pool, const device uchar* value_pool,
    const device int* table, const device int* lengths, const device int* starts,
    device float* partial, constant Paged& paged, constant KvFormat& keys, constant KvFormat& values,
    uint2 position [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float weights[tile_rows][split_keys], sums[split_keys];
  threadgroup float largest[tile_rows][8], totals[tile_rows][8];
  threadgroup float codebooks[2][16];
  const uint key_head = position.x % paged.key_heads, begin = position.y * split_keys;
  uint number = position.x / paged.key_heads;
  uint sequence = 0;
  for (; sequence < paged.sequences; ++sequence) {
    const uint2 tokens = tokens_of(paged, starts, sequence);
    const uint tiles = ((tokens.y - tokens.x) * paged.group + tile_rows - 1) / tile_rows;
    if (number < tiles) break;
    number -= tiles;
  }
  if (sequence == paged.sequences) return;
  const Tile tile = tile_of(paged, starts, lengths, sequence, number * tile_rows, tile_rows);
  const uint first = max(begin, tile.begin_of(paged, 0));
  const uint last = min(begin + split_keys, tile.end_of(paged, tile.rows - 1));
  if (first >= last) return;
  if (t < 32) codebooks[t / 16][t % 16] = t < 16 ? keys.codebook[t] : values.codebook[t - 16];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // A block of this head, of the sequence's block that holds a position.
  auto block_of = [&](uint at) {
    const int entry = table[sequence * paged.most_blocks + at / paged.block_size];
    return ulong(clamp(entry, 0, int(paged.blocks) - 1)) * paged.key_heads + key_head;
  };
  const ulong first_row = (ulong(key_head) * paged.tokens + tile.first_token) * paged.group + tile.first;

  float scores[tile_rows];
  for (uint r = 0; r < tile_rows; ++r) scores[r] = 0;
  if (begin + t >= first && begin + t < last) {
    uint rows[tile_rows];
    for (uint r = 0; r < tile_rows; ++r) rows[r] = min(r, tile.rows - 1) * keys.dims;
    const device float* queries = prepared + first_row * keys.dims;
    const ulong column = block_of(begin + t) * keys.width * paged.block_size +
                         (begin + t) % paged.block_size;
    const uint stride = paged.block_size;
    const device uint* words = reinterpret_cast<const device uint*>(key_pool) + column;
    if (keys.bits == 8) {
      score_bytes(words, stride, queries, keys, rows, scores);
    } else if (keys.bits == 4) {
      score_indices<4>(words, stride, queries, keys, codebooks[0], rows, scores);
    } else if (keys.bits == 3) {
      score_indices<3>(words, stride, queries, keys, codebooks[0], rows, scores);
    } else if (keys.bits == 2) {
      score_indices<2>(words, stride, queries, keys, codebooks[0], rows, scores);
    } else if (keys.kind == 0) {
      score_numbers(reinterpret_cast<const device float*>(key_pool) + column, stride, queries, keys.dims, rows, scores);
    } else if (keys.kind == 1) {
      score_numbers(reinterpret_cast<const device half*>(key_pool) + column, stride, queries, keys.dims, rows, scores);
    } else {
      score_numbers(reinterpret_cast<const device bfloat*>(key_pool) + column, stride, queries, keys.dims, rows, scores);
    }
  }
  for (uint r = 0; r < tile_rows; ++r) {
    const uint row = min(r, tile.rows - 1);
    const bool seen = begin + t >= tile.begin_of(paged, row) && begin + t < tile.end_of(paged, row);
    if (!seen) scores[r] = -INFINITY;
    const float best = simd_max(scores[r]);
    if (t % 32 == 0) largest[r][t / 32] = best;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint r = 0; r < tile_rows; ++r) {
    float best = largest[r][0];
    for (uint i = 1; i < 8; ++i) best = max(best, largest[r][i]);
    const float weight = scores[r] == -INFINITY ? 0.0f : exp(scores[r] - best);
    weights[r][t] = weight;
    const float total = simd_sum(weight);
    if (t % 32 == 0) totals[r][t / 32] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  const uint row_floats = partial_header + values.dims;
  device float* out = partial + (first_row * paged.splits + position.y) * row_floats;
  const ulong apart = ulong(paged.splits) * row_floats;
  if (t < tile.rows) {
    float best = largest[t][0], total = totals[t][0];
    for (uint i = 1; i < 8; ++i) {
      best = max(best, largest[t][i]);
      total += totals[t][i];
    }
    out[t * apart] = best;
    out[t * apart + 1] = total;
  }
  // Threads have features; where there are few, several have one, each of some positions.
  const uint across = values.dims <= 64 ? 64 : values.dims <= 128 ? 128 : 256;
  const uint parts = 256 / across, part = t / across;
  for (uint feature = t % across; feature < (values.dims + across - 1) / across * across;
       feature += across) {
    float results[tile_rows];
    for (uint r = 0; r < tile_rows; ++r) results[r] = 0;
    for (uint at = first + part; feature < values.dims && at < last; at += parts) {
      const ulong row =
          (block_of(at) * paged.block_size + at % paged.block_size) * values.width;
      const device uint* words = reinterpret_cast<const device uint*>(value_pool) + row;
      const float value =
          values.bits > 0 ? unpack_number(values, codebooks[1], feature, [&](uint i) { return words[i]; })
                          : load_number(value_pool, values.kind, row + feature);
      for (uint r = 0; r < tile_rows; ++r)
        results[r] = fma(weights[r][at - begin], value, results[r]);
    }
    for (uint r = 0; r < tile.rows; ++r) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      sums[t] = results[r];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (part != 0 || feature >= values.dims) continue;
      float total = sums[t];
      for (uint p = 1; p < parts; ++p) total += sums[p * across + t];
      out[r * apart + partial_header + feature] = total;
    }
  }
}

// A threadgroup merges the splits of a head of a token.
[[kernel, max_total_threads_per_threadgroup(32)]] void paged_combine(
    const device float* partial, const device int* lengths, const device int* starts,
    const device float* sinks, const device float* matrix, const device uint* checked, device uchar* out, constant Paged& paged, constant KvFormat& values,
    uint2 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float row[most_row_dims], spare[most_row_dims];
  const uint head = group.x, token = group.y;
  for (uint j = lane; j < values.dims; j += 32) row[j] = 0;
  uint sequence = 0;
  while (sequence + 1 < paged.sequences && tokens_of(paged, starts, sequence).y <= token) ++sequence;
  const uint2 tokens = tokens_of(paged, starts, sequence);
  const uint first = token >= tokens.x ? (token - tokens.x) * paged.group : 0;
  const Tile tile = tile_of(paged, starts, lengths, sequence, first, 1);
  const ulong number =
      (ulong(head / paged.group) * paged.tokens + token) * paged.group + head % paged.group;
  const uint row_floats = partial_header + values.dims;
  float largest = -INFINITY, sum = 0;
  const uint end = tile.rows > 0 ? tile.end_of(paged, 0) : 0;
  for (uint split = tile.begin_of(paged, 0) / split_keys; split * split_keys < end; ++split) {
    const device float* from = partial + (number * paged.splits + split) * row_floats;
    if (from[1] == 0) continue;
    const float best = max(largest, from[0]);
    const float a = sum == 0 ? 0.0f : exp(largest - best), b = exp(from[0] - best);
    largest = best;
    sum = sum * a + from[1] * b;
    for (uint j = lane; j < values.dims; j += 32)
      row[j] = fma(from[partial_header + j], b, row[j] * a);
  }
  float factor = 1;
  if (paged.has_sinks && sum != 0) {
    const float best = max(largest, sinks[head]);
    factor = exp(largest - best);
    sum = sum * factor + exp(sinks[head] - best);
  }
  for (uint j = lane; j < values.dims; j += 32) row[j] *= sum == 0 ? 0.0f : factor / sum;
  rotate(row, spare, values, matrix, true, lane);
  const ulong to = (ulong(token) * paged.heads + head) * values.dims;
  for (uint j = lane; j < values.dims; j += 32) store_number(out, paged.query_kind, to + j, row[j]);
}
