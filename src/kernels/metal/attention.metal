// Attention of half types on matrix units, for heads of up to 256 features.
//
// A simdgroup has 16 rows (support/attention.h) and takes keys in steps. A lane, with g = lane / 4
// and c = lane % 4, has rows g and g + 8. All operands are read as blocks of 8 features: a product
// does not care in which order its features, or its keys, are counted, if both sides count alike.
//   scores = queries keys^T: block c of 32 features of queries g and g + 8, and of key g.
//   results = weights values: keys 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 of 16, as the scores lie;
//   block g of 64 features of each. Words of two keys are made of words of two features.
#include <holdfast/tile.h>
#include "support/indexing.h"
#include "support/attention.h"

// Operands as blocks of 8 neighbours in the depth: with g = lane / 4 and c = lane % 4, mma_m16n8k16
// takes pairs of neighbours 2 c and 2 c + 8 of row g. A product does not care in which order its
// depth is counted, if both sides count alike: so a lane takes block c of 32, of rows g and g + 8
// of the left side and of column g of the right, and two products use them up.
//
// sums + left right, over a depth of 32. `left` has the lane's block of row g, `low` of row g + 8.
template <typename T>
inline float4 multiply_blocks(uint4 left, uint4 low, uint4 right, float4 sums) {
  sums =
      holdfast::mma_m16n8k16<T>(uint4(left.x, low.x, left.y, low.y), uint2(right.x, right.y), sums);
  return holdfast::mma_m16n8k16<T>(uint4(left.z, low.z, left.w, low.w), uint2(right.z, right.w),
                                   sums);
}

constant constexpr float log2_e = 1.4426950408889634f;

// Features [first, first + 8) of a row; those beyond `end` are 0.
template <typename T>
inline uint4 load_features(const device T* row, uint first, uint end, bool aligned) {
  if (aligned) {
    if (first >= end) return uint4(0);
    return *reinterpret_cast<const device uint4*>(row + first);
  }
  Block<T> block;
  for (int i = 0; i < 8; ++i) block.values[i] = first + i < end ? row[first + i] : T(0);
  return words_of(block);
}

template <typename T>
inline uint packed(float first, float second) {
  if constexpr (is_same_v<T, half>) {
    return holdfast::pack_half(first, second);
  } else {
    return holdfast::pack_bfloat(first, second);
  }
}

// The running softmax of 16 rows and the values that it weighs. Of features 64 j + 8 b + i, the
// lane has those of blocks b = 2 c (x: row g, z: row g + 8) and 2 c + 1 (y and w).
template <typename T, int width>
struct Weighted {
  float maxima[2];
  float sums[2];  // of the scores that the lane has
  float4 values[width / 64][8];

  void clear() {
    for (int r = 0; r < 2; ++r) {
      maxima[r] = -INFINITY;
      sums[r] = 0;
    }
    for (int j = 0; j < width / 64; ++j) {
      for (int i = 0; i < 8; ++i) values[j][i] = float4(0);
    }
  }

  // Makes weights of scores with 8 * blocks more keys.
  template <int blocks>
  void weigh(thread float4 (&scores)[blocks]) {
    float largest[2] = {maxima[0], maxima[1]}, factors[2], shifts[2];
    for (int b = 0; b < blocks; ++b) {
      largest[0] = fmax(largest[0], fmax(scores[b].x, scores[b].y));
      largest[1] = fmax(largest[1], fmax(scores[b].z, scores[b].w));
    }
    for (int r = 0; r < 2; ++r) {
      for (ushort distance = 1; distance < 4; distance *= 2)
        largest[r] = fmax(largest[r], simd_shuffle_xor(largest[r], distance));
      factors[r] = maxima[r] == -INFINITY ? 0.0f : fast::exp2((maxima[r] - largest[r]) * log2_e);
      maxima[r] = largest[r];
      shifts[r] = largest[r] == -INFINITY ? 0.0f : largest[r];
      sums[r] *= factors[r];
    }
    for (int b = 0; b < blocks; ++b) {
      scores[b].x = fast::exp2((scores[b].x - shifts[0]) * log2_e);
      scores[b].y = fast::exp2((scores[b].y - shifts[0]) * log2_e);
      scores[b].z = fast::exp2((scores[b].z - shifts[1]) * log2_e);
      scores[b].w = fast::exp2((scores[b].w - shifts[1]) * log2_e);
      sums[0] += scores[b].x + scores[b].y;
      sums[1] += scores[b].z + scores[b].w;
    }
    if (simd_any(factors[0] != 1.0f || factors[1] != 1.0f)) {
      const float4 factor = float4(factors[0], factors[0], factors[1], factors[1]);
      for (int j = 0; j < width / 64; ++j) {
        for (int i = 0; i < 8; ++i) values[j][i] *= factor;
      }
    }
  }

  // Adds the values of 16 keys, of which `rows` has the lane's block of 64 features j.
  void add(float4 low, float4 high, int j, const thread uint4 (&rows)[4]) {
    const uint4 weights = uint4(packed<T>(low.x, low.y), packed<T>(low.z, low.w),
                                packed<T>(high.x, high.y), packed<T>(high.z, high.w));
    for (int i = 0; i < 8; ++i) {
      const uint halves = i % 2 == 0 ? 0x5410 : 0x7632;
      const uint2 pairs = uint2(holdfast::byte_permute(rows[0][i / 2], rows[1][i / 2], halves),
                                holdfast::byte_permute(rows[2][i / 2], rows[3][i / 2], halves));
      values[j][i] = holdfast::mma_m16n8k16<T>(weights, pairs, values[j][i]);
    }
  }

  // Writes rows that exist: the output if there is one split, else partial results.
  void store(constant Attention& attention, uint group, uint split, uint first_row, uint lane,
             const device float* sinks, device T* out, device float* partial) {
    const uint c = lane % 4, size = attention.value_features;
    for (int r = 0; r < 2; ++r) {
      const uint row = first_row + lane / 4 + 8 * r;
      float sum = sums[r];
      for (ushort distance = 1; distance < 4; distance *= 2) sum += simd_shuffle_xor(sum, distance);
      if (row >= attention.rows) continue;
      if (attention.splits > 1) {
        device float* to = partial_row(attention, group, split, row, partial);
        if (c == 0) store_sums(attention, to, maxima[r], sum);
        for (int j = 0; j < width / 64; ++j) {
          for (int q = 0; q < 4; ++q) {
            const uint first = 64 * j + 16 * c + 4 * q, i = q % 2 * 4, at = 2 * r + q / 2;
            if (first < size)
              *reinterpret_cast<device float4*>(to + first) =
                  float4(values[j][i][at], values[j][i + 1][at], values[j][i + 2][at],
                         values[j][i + 3][at]);
          }
        }
        continue;
      }
      const AttentionRow place = attention_row(attention, group, row);
      float factor = 1;
      if (attention.has_sinks) {
        const float sink = sinks[place.head], largest = fmax(sink, maxima[r]);
        factor = fast::exp2((maxima[r] - largest) * log2_e);
        sum = sum * factor + fast::exp2((sink - largest) * log2_e);
      }
      for (int j = 0; j < width / 64; ++j) {
        for (int b = 0; b < 2; ++b) {
          Block<T> block;
          for (int i = 0; i < 8; ++i) block.values[i] = T(values[j][i][2 * r + b] * factor / sum);
          store_block(out + place.out * size, 64 * j + 16 * c + 8 * b, size, size % 8 == 0, block);
        }
      }
    }
  }
};

// Scales scores of keys [key, key + 8 * blocks), and applies the mask where it matters.
template <int blocks>
inline void mask_scores(constant Attention& attention, const device uchar* mask,
                        const thread AttentionRow* rows, uint key, uint c,
                        thread float4 (&scores)[blocks]) {
  const uint end = key + 8 * blocks;
  const bool is_plain = attention.mask_kind == 0 && end <= attention.key_count &&
                        simd_all(end <= min(rows[0].visible, rows[1].visible));
  for (int b = 0; b < blocks; ++b) {
    scores[b] *= attention.scale;
    if (is_plain) continue;
    for (int i = 0; i < 4; ++i) {
      const thread AttentionRow& row = rows[i / 2];
      scores[b][i] = masked_score(attention, mask, row.mask, row.visible,
                                  key + 8 * b + 2 * c + i % 2, scores[b][i]);
    }
  }
}

inline void find_rows(constant Attention& attention, uint group, uint first_row, uint lane,
                      thread AttentionRow* rows) {
  for (int r = 0; r < 2; ++r) {
    rows[r] =
        attention_row(attention, group, min(first_row + lane / 4 + 8 * r, attention.rows - 1));
  }
}

// Up to 16 rows, each simdgroup with a split of the keys of its own, which it reads from memory
// once.
template <typename T, int width>
KERNEL(128)
attention_splits(const device T* queries, const device T* keys, const device T* values,
                 const device uchar* mask, const device float* sinks, device T* out,
                 device float* partial, constant Attention& attention,
                 uint3 position [[threadgroup_position_in_grid]], IN_SIMDGROUP) {
  const uint g = lane / 4, c = lane % 4, group = position.z;
  const uint split = position.x * 4 + simdgroup;
  const uint batch = group / attention.key_heads, key_head = group % attention.key_heads;
  keys += long(batch) * attention.keys.batch + long(key_head) * attention.keys.head;
  values += long(batch) * attention.values.batch + long(key_head) * attention.values.head;
  AttentionRow rows[2];
  find_rows(attention, group, 0, lane, rows);
  threadgroup uint4 query_words[width / 32][2][32];
  for (uint j = simdgroup; j < width / 32; j += 4) {
    for (int r = 0; r < 2; ++r) {
      query_words[j][r][lane] = load_features(queries + rows[r].query, 32 * j + 8 * c,
                                              attention.features, attention.queries.aligned);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (split >= attention.splits) return;
  Weighted<T, width> weighted;
  weighted.clear();
  const KeyRange range = keys_of_split(attention, split, 0, attention.rows);
  for (uint key = range.first; key < range.last; key += 16) {
    uint4 key_words[width / 32][2], value_words[width / 64][4];
    for (int b = 0; b < 2; ++b) {
      const uint at = min(key + 8 * b + g, attention.key_count - 1);
      for (int j = 0; j < width / 32; ++j) {
        key_words[j][b] = load_features(keys + long(at) * attention.keys.position, 32 * j + 8 * c,
                                        attention.features, attention.keys.aligned);
      }
    }
    auto load_values = [&](int j) {
      for (int k = 0; k < 4; ++k) {
        const uint at = key + 8 * (k / 2) + 2 * c + k % 2;
        value_words[j][k] = load_features(
            values + long(at) * attention.values.position, 64 * j + 8 * g,
            at < attention.key_count ? attention.value_features : 0, attention.values.aligned);
      }
    };
    // There are registers for values on their way, but not for 256 features of them.
    constexpr bool is_early = width <= 128;
    for (int j = 0; j < width / 64 && is_early; ++j) load_values(j);
    // Queries are not to be kept in registers: keys and values on their way need these.
    simdgroup_barrier(mem_flags::mem_threadgroup);
    float4 scores[2] = {float4(0), float4(0)};
    for (int j = 0; j < width / 32; ++j) {
      for (int b = 0; b < 2; ++b)
        scores[b] = multiply_blocks<T>(query_words[j][0][lane], query_words[j][1][lane],
                                       key_words[j][b], scores[b]);
    }
    mask_scores(attention, mask, rows, key, c, scores);
    weighted.weigh(scores);
    for (int j = 0; j < width / 64; ++j) {
      if (!is_early) load_values(j);
      weighted.add(scores[0], scores[1], j, value_words[j]);
    }
  }
  weighted.store(attention, group, split, 0, lane, sinks, out, partial);
}

// Copies rows of keys or values to a tile whose rows are `stride` blocks apart; rows from `end` on
// are zeros.
template <typename T, int width, int tile_keys, int stride>
inline void fetch_tile(threadgroup uint4* tile, const device T* from, long step, uint key, uint end,
                       uint features, bool aligned, uint t) {
  constexpr int blocks = width / 8;
  for (int i = 0; i < blocks * tile_keys / 256; ++i) {
    const uint number = t + 256 * i, row = number / blocks, block = number % blocks;
    const uint at = key + row;
    const device T* source = from + long(at < end ? at : key) * step;
    threadgroup uint4* to = tile + row * stride + block;
    const uint limit = at < end ? features : 0;
    if (aligned) {
      holdfast::async_copy<16>(to, source + 8 * block, 8 * block < limit);
    } else {
      *to = load_features(source, 8 * block, limit, false);
    }
  }
  holdfast::async_copy_commit();
}

// 128 rows, 16 for each simdgroup. Tiles of keys and of values are in threadgroup memory: while one
// is used, the other is fetched. Rows of tiles are as far apart as lets lanes that read together
// use different banks.
template <typename T, int width>
KERNEL(256)
attention_tiles(const device T* queries, const device T* keys, const device T* values,
                const device uchar* mask, const device float* sinks, device T* out,
                device float* partial, constant Attention& attention,
                uint3 position [[threadgroup_position_in_grid]],
                uint t [[thread_index_in_threadgroup]], IN_SIMDGROUP) {
  constexpr int tile_keys = 4096 / width;
  constexpr int key_stride = width / 8 + 4, value_stride = width / 8 + 1;
  threadgroup uint4 key_tile[tile_keys * key_stride], value_tile[tile_keys * value_stride];
  const uint g = lane / 4, c = lane % 4, group = position.z, split = position.y;
  const uint batch = group / attention.key_heads, key_head = group % attention.key_heads;
  keys += long(batch) * attention.keys.batch + long(key_head) * attention.keys.head;
  values += long(batch) * attention.values.batch + long(key_head) * attention.values.head;
  // Of causal attention the last rows are the most work.
  const uint tiles = (attention.rows + 127) / 128;
  const uint tile_row = (tiles - 1 - position.x) * 128, first_row = tile_row + 16 * simdgroup;
  AttentionRow rows[2];
  find_rows(attention, group, first_row, lane, rows);
  uint4 query_words[width / 32][2];
  for (int j = 0; j < width / 32; ++j) {
    for (int r = 0; r < 2; ++r) {
      query_words[j][r] = load_features(queries + rows[r].query, 32 * j + 8 * c, attention.features,
                                        attention.queries.aligned);
    }
  }
  Weighted<T, width> weighted;
  weighted.clear();
  const KeyRange range =
      keys_of_split(attention, split, tile_row, min(tile_row + 128, attention.rows));
  const uint end = attention.key_count;
  auto fetch_keys = [&](uint key) {
    fetch_tile<T, width, tile_keys, key_stride>(key_tile, keys, attention.keys.position, key, end,
                                                attention.features, attention.keys.aligned, t);
  };
  auto fetch_values = [&](uint key) {
    fetch_tile<T, width, tile_keys, value_stride>(value_tile, values, attention.values.position,
                                                  key, end, attention.value_features,
                                                  attention.values.aligned, t);
  };
  if (range.first < range.last) fetch_keys(range.first);
  for (uint key = range.first; key < range.last; key += tile_keys) {
    fetch_values(key);
    holdfast::async_copy_wait<1>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float4 scores[tile_keys / 8];
    for (int b = 0; b < tile_keys / 8; ++b) {
      scores[b] = float4(0);
      for (int j = 0; j < width / 32; ++j) {
        scores[b] = multiply_blocks<T>(query_words[j][0], query_words[j][1],
                                       key_tile[(8 * b + g) * key_stride + 4 * j + c], scores[b]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (key + tile_keys < range.last) {
      fetch_keys(key + tile_keys);
    } else {
      holdfast::async_copy_commit();
    }
    mask_scores(attention, mask, rows, key, c, scores);
    weighted.weigh(scores);
    holdfast::async_copy_wait<1>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int b = 0; b < tile_keys / 8; b += 2) {
      for (int j = 0; j < width / 64; ++j) {
        uint4 value_words[4];
        for (int k = 0; k < 4; ++k)
          value_words[k] = value_tile[(8 * (b + k / 2) + 2 * c + k % 2) * value_stride + 8 * j + g];
        weighted.add(scores[b], scores[b + 1], j, value_words);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  weighted.store(attention, group, split, first_row, lane, sinks, out, partial);
}

// The splits of a row, in order: weights of their maxima, then a sum in each of 8 simdgroups, and
// the sum of these.
template <typename T>
KERNEL(256)
attention_combine(const device float* partial, const device float* sinks, device T* out,
                  constant Attention& attention, uint2 position [[threadgroup_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]], IN_SIMDGROUP) {
  constexpr uint most_splits = 256;
  threadgroup float weights[most_splits], shared[16];
  threadgroup float4 parts[8][32];
  const uint group = position.y, size = attention.value_features;
  const uint row = position.x;
  const AttentionRow place = attention_row(attention, group, row);
  const ulong step = ulong(attention.rows) * attention.partial_stride;
  const device float* first =
      partial + (ulong(group) * attention.splits * attention.rows + row) * attention.partial_stride;
  const bool exists = t < attention.splits;
  const device float* own = first + t * step + attention.partial_stride - 4;
  const float maximum = exists ? own[0] : -INFINITY;
  const float sink = attention.has_sinks ? sinks[place.head] : -INFINITY;
  const float largest_of_simdgroup = simd_max(maximum);
  if (lane == 0) shared[simdgroup] = largest_of_simdgroup;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float largest = sink;
  for (int i = 0; i < 8; ++i) largest = fmax(largest, shared[i]);
  const float shift = largest == -INFINITY ? 0.0f : largest;
  const float weight = exists ? exp(maximum - shift) : 0.0f;
  const float sum_of_simdgroup = simd_sum(exists ? own[1] * weight : 0.0f);
  weights[t] = weight;
  if (lane == 0) shared[8 + simdgroup] = sum_of_simdgroup;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float total = attention.has_sinks ? exp(sink - shift) : 0.0f;
  for (int i = 0; i < 8; ++i) total += shared[8 + i];
  for (uint start = 0; start < size; start += 128) {
    const uint at = start + 4 * lane;
    float4 sum = 0;
    if (at < size) {
      for (uint split = simdgroup; split < attention.splits; split += 8) {
        sum += weights[split] * *reinterpret_cast<const device float4*>(first + split * step + at);
      }
    }
    parts[simdgroup][lane] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup == 0) {
      for (int i = 1; i < 8; ++i) sum += parts[i][lane];
      for (int i = 0; i < 4; ++i) {
        if (at + i < size) out[place.out * size + at + i] = T(sum[i] / total);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

#define SPLITS(name, T, width) \
  ENTRY("attention_splits_" #width "_" #name, attention_splits<T, width>)
#define TILES(name, T, width) ENTRY("attention_tiles_" #width "_" #name, attention_tiles<T, width>)
#define WIDTHS(name, T) \
  SPLITS(name, T, 128)  \
  SPLITS(name, T, 256) TILES(name, T, 64) TILES(name, T, 128) TILES(name, T, 256)
WIDTHS(float16, half)
WIDTHS(bfloat16, bfloat)
#define COMBINE(name, T) ENTRY("attention_combine_" #name, attention_combine<T>)
FOR_FLOATS(COMBINE)
