// Attention in float32: of float32, and of half types with more than 256 features.
//
// A threadgroup has 16 * per_thread rows (support/attention.h), of which a thread has `per_thread`
// neighbours, and takes keys 32 at a time. Results have 8192 / rows features; where there are more,
// other threadgroups have them, and compute the scores again.
#include "support/indexing.h"
#include "support/attention.h"

// Features [first, first + 4) of a row; those beyond `end` are 0.
template <typename T>
inline float4 load_features(const device T* row, uint first, uint end, bool aligned) {
  if (aligned && first < end)
    return float4(*reinterpret_cast<const device vec<T, 4>*>(row + first));
  float4 result = 0;
  for (int i = 0; i < 4; ++i) {
    if (first + i < end) result[i] = float(row[first + i]);
  }
  return result;
}

template <typename T, int per_thread>
KERNEL(256)
attention_general(const device T* queries, const device T* keys, const device T* values,
                  const device uchar* mask, const device float* sinks, device T* out,
                  device float* partial, constant Attention& attention,
                  uint3 position [[threadgroup_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]]) {
  constexpr uint rows = 16 * per_thread, step = 32, chunk = 32, stride = chunk / 4 + 1;
  constexpr uint width = 8192 / rows, piece = 128;  // pieces of values are in threadgroup memory
  threadgroup float4 memory[step * piece / 4];      // queries and keys; then values
  threadgroup float weights[rows][step + 1];
  threadgroup float4* query_tile = memory;
  threadgroup float4* key_tile = memory + rows * stride;
  const uint column = t % 16, group = position.z;
  const uint split = position.y % attention.splits,
             first_feature = position.y / attention.splits * width;
  const uint last_feature = min(attention.value_features, first_feature + width);
  const uint batch = group / attention.key_heads, key_head = group % attention.key_heads;
  keys += long(batch) * attention.keys.batch + long(key_head) * attention.keys.head;
  values += long(batch) * attention.values.batch + long(key_head) * attention.values.head;
  const uint tiles = (attention.rows + rows - 1) / rows;
  const uint tile_row = (tiles - 1 - position.x) * rows, first_row = tile_row + t / 16 * per_thread;

  long mask_rows[per_thread];
  uint visible[per_thread];
  float maxima[per_thread], sums[per_thread];
  float4 results[per_thread][width / 64];
  for (int r = 0; r < per_thread; ++r) {
    const AttentionRow row =
        attention_row(attention, group, min(first_row + r, attention.rows - 1));
    mask_rows[r] = row.mask;
    visible[r] = row.visible;
    maxima[r] = -INFINITY;
    sums[r] = 0;
    for (uint i = 0; i < width / 64; ++i) results[r][i] = float4(0);
  }
  // The queries that the thread copies.
  constexpr uint copies = rows * chunk / 4 / 256 > 0 ? rows * chunk / 4 / 256 : 1;
  const device T* copied[copies];
  for (uint i = 0; i < copies; ++i) {
    const uint row = min(tile_row + (t + 256 * i) / 8 % rows, attention.rows - 1);
    copied[i] = queries + attention_row(attention, group, row).query;
  }
  const KeyRange range =
      keys_of_split(attention, split, tile_row, min(tile_row + rows, attention.rows));
  for (uint key = range.first; key < range.last; key += step) {
    float scores[per_thread][2] = {};
    const device T* copied_key =
        keys + long(min(key + t / 8, attention.key_count - 1)) * attention.keys.position;
    for (uint first = 0; first < attention.features; first += chunk) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const uint at = first + t % 8 * 4;
      for (uint i = 0; i < copies; ++i) {
        const uint row = (t + 256 * i) / 8;
        if (row < rows)
          query_tile[row * stride + t % 8] =
              load_features(copied[i], at, attention.features, attention.queries.aligned);
      }
      key_tile[t / 8 * stride + t % 8] =
          load_features(copied_key, at, attention.features, attention.keys.aligned);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float parts[per_thread][2] = {};  // sums of few products lose less than one of all
      for (uint d = 0; d < chunk / 4; ++d) {
        const float4 near = key_tile[column * stride + d];
        const float4 far = key_tile[(column + 16) * stride + d];
        for (int r = 0; r < per_thread; ++r) {
          const float4 query = query_tile[(t / 16 * per_thread + r) * stride + d];
          for (int i = 0; i < 4; ++i) {
            parts[r][0] = fma(query[i], near[i], parts[r][0]);
            parts[r][1] = fma(query[i], far[i], parts[r][1]);
          }
        }
      }
      for (int r = 0; r < per_thread; ++r) {
        scores[r][0] += parts[r][0];
        scores[r][1] += parts[r][1];
      }
    }
    for (int r = 0; r < per_thread; ++r) {
      float largest = maxima[r];
      for (int i = 0; i < 2; ++i) {
        scores[r][i] = masked_score(attention, mask, mask_rows[r], visible[r],
                                    key + column + 16 * i, scores[r][i] * attention.scale);
        largest = fmax(largest, scores[r][i]);
      }
      for (ushort distance = 1; distance < 16; distance *= 2)
        largest = fmax(largest, simd_shuffle_xor(largest, distance));
      const float factor = maxima[r] == -INFINITY ? 0.0f : exp(maxima[r] - largest);
      const float shift = largest == -INFINITY ? 0.0f : largest;
      maxima[r] = largest;
      sums[r] *= factor;
      for (uint i = 0; i < width / 64; ++i) results[r][i] *= factor;
      for (int i = 0; i < 2; ++i) {
        const float weight = exp(scores[r][i] - shift);
        sums[r] += weight;
        weights[t / 16 * per_thread + r][column + 16 * i] = weight;
      }
    }
#pragma unroll
    for (uint p = 0; p < width / piece; ++p) {
      const uint start = first_feature + p * piece;
      if (start >= last_feature) continue;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint i = t; i < step * piece / 4; i += 256) {
        const uint at = key + i / (piece / 4);
        memory[i] = load_features(
            values + long(min(at, attention.key_count - 1)) * attention.values.position,
            start + i % (piece / 4) * 4, at < attention.key_count ? last_feature : 0,
            attention.values.aligned && at < attention.key_count);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint k = 0; k < step; ++k) {
        const float4 near = memory[k * (piece / 4) + column];
        const float4 far = memory[k * (piece / 4) + column + 16];
        for (int r = 0; r < per_thread; ++r) {
          const float weight = weights[t / 16 * per_thread + r][k];
          results[r][2 * p] = fma(float4(weight), near, results[r][2 * p]);
          results[r][2 * p + 1] = fma(float4(weight), far, results[r][2 * p + 1]);
        }
      }
    }
  }

  for (int r = 0; r < per_thread; ++r) {
    float sum = sums[r];
    for (ushort distance = 1; distance < 16; distance *= 2) sum += simd_shuffle_xor(sum, distance);
    const uint row = first_row + r;
    if (row >= attention.rows) continue;
    if (attention.splits > 1) {
      device float* to = partial_row(attention, group, split, row, partial);
      if (column == 0 && first_feature == 0) store_sums(attention, to, maxima[r], sum);
      for (uint i = 0; i < width / 64; ++i) {
        const uint at = first_feature + 64 * i + 4 * column;
        if (at < last_feature) *reinterpret_cast<device float4*>(to + at) = results[r][i];
      }
      continue;
    }
    const AttentionRow place = attention_row(attention, group, row);
    float factor = 1;
    if (attention.has_sinks) {
      const float sink = sinks[place.head], largest = fmax(sink, maxima[r]);
      factor = exp(maxima[r] - largest);
      sum = sum * factor + exp(sink - largest);
    }
    for (uint i = 0; i < width / 64; ++i) {
      for (uint j = 0; j < 4; ++j) {
        const uint at = first_feature + 64 * i + 4 * column + j;
        if (at < last_feature)
          out[place.out * attention.value_features + at] = T(results[r][i][j] * factor / sum);
      }
    }
  }
}

#define GENERAL(name, T)                                        \
  ENTRY("attention_general_16_" #name, attention_general<T, 1>) \
  ENTRY("attention_general_64_" #name, attention_general<T, 4>)
FOR_FLOATS(GENERAL)
