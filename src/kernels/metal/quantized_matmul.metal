// Products of x with quantised matrices, for each of a batch, or for pairs of matrices that are
// chosen by index.
#include "support/indexing.h"
#include "support/errors.h"
#include "support/tiles.h"
#include "support/quantized.h"

enum Selection : uint { by_layout, by_index, grouped };

struct QuantizedProduct {
  Format format;
  uint rows, columns, depth;     // of one product
  uint left_count, right_count;  // matrices of x and of w
  uint selection;
  int dimensions;  // of the batch, by layout
  uint parts, part_depth;
  ulong out_rows;  // of all products
  bool transposed;
  bool x_aligned;  // rows of x begin at multiples of 16 bytes
  bool wide;       // sums are stored, of float32, in parts
};

// What chooses matrices. Grouped: `tiles` are (matrix of w, first pair, number of pairs), pairs
// (product, matrix of x), a row each.
struct Choice {
  constant Extent *left_batch, *right_batch;
  const device uint *lefts, *rights;
  const device uint4* tiles;
  const device uint2* pairs;
};

#define CHOICE                                                                             \
  constant QuantizedProduct &p, constant Extent *left_batch, constant Extent *right_batch, \
      const device uint *lefts, const device uint *rights, const device uint4 *tiles,      \
      const device uint2 *pairs, device Errors &errors
#define CHOSEN {left_batch, right_batch, lefts, rights, tiles, pairs}

// Rows of x and of the result that one matrix of w meets.
struct TileRows {
  uint matrix, count;
  ulong left, out;  // the first row of each
  const device uint2* pairs;

  ulong left_row(uint r) const { return pairs != nullptr ? pairs[r].y : left + r; }
  ulong out_row(uint r) const { return pairs != nullptr ? pairs[r].x : out + r; }
};

// An index without a matrix is reported, and counts as 0.
inline uint checked_index(uint index, uint count, uint code, device Errors& errors) {
  if (index < count) return index;
  report(errors, code, index);
  return 0;
}

inline TileRows tile_rows(constant QuantizedProduct& p, Choice choice, uint rows, uint tile,
                          uint batch, device Errors& errors) {
  if (p.selection == grouped) {
    const uint4 found = choice.tiles[tile];
    return {found.x, found.z, 0, 0, choice.pairs + found.y};
  }
  ulong left, matrix;
  if (p.selection == by_index) {
    left = checked_index(choice.lefts[batch], p.left_count, 1, errors);
    matrix = checked_index(choice.rights[batch], p.right_count, 2, errors);
  } else {
    left = offset_of(batch, choice.left_batch, p.dimensions);
    matrix = offset_of(batch, choice.right_batch, p.dimensions);
  }
  const uint first = tile * rows;
  return {uint(matrix), min(rows, p.rows - first), left * p.rows + first,
          ulong(batch) * p.rows + first, nullptr};
}

// --- pairs, grouped by the matrix of w ---

struct Grouping {
  uint pairs, left_count, right_count;  // at most `most_matrices` of w
  uint rows;                            // of a tile
  uint tiles;                           // to be written; those that are not needed have no rows
};
constant constexpr uint most_matrices = 2048;

// One threadgroup of 1024 threads.
[[kernel, max_total_threads_per_threadgroup(1024), host_name("group_pairs")]] void group_pairs(
    const device uint* lefts, const device uint* rights, device uint4* tiles, device uint2* pairs,
    constant Grouping& p, device Errors& errors, uint t [[thread_index_in_threadgroup]],
    IN_SIMDGROUP) {
  constexpr uint threads = 1024, each = most_matrices / threads;
  threadgroup atomic_uint counts[most_matrices];  // then: where the next pair goes
  threadgroup uint2 sums[32];
  for (uint i = t; i < most_matrices; i += threads)
    atomic_store_explicit(&counts[i], 0u, memory_order_relaxed);
  for (uint i = t; i < p.tiles; i += threads) tiles[i] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  for (uint i = t; i < p.pairs; i += threads) {
    const uint matrix = checked_index(rights[i], p.right_count, 2, errors);
    atomic_fetch_add_explicit(&counts[matrix], 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Pairs and tiles before those of the thread's matrices.
  uint own[each];
  uint2 total = 0;
  for (uint i = 0; i < each; ++i) {
    own[i] = atomic_load_explicit(&counts[t * each + i], memory_order_relaxed);
    total += uint2(own[i], (own[i] + p.rows - 1) / p.rows);
  }
  uint2 before = uint2(simd_prefix_exclusive_sum(total.x), simd_prefix_exclusive_sum(total.y));
  if (lane == 31) sums[simdgroup] = before + total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < simdgroup; ++i) before += sums[i];
  for (uint i = 0; i < each; ++i) {
    atomic_store_explicit(&counts[t * each + i], before.x, memory_order_relaxed);
    for (uint first = 0; first < own[i]; first += p.rows)
      tiles[before.y++] = uint4(t * each + i, before.x + first, min(p.rows, own[i] - first), 0);
    before.x += own[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // In any order: no sum depends on it.
  for (uint i = t; i < p.pairs; i += threads) {
    const uint matrix = rights[i] < p.right_count ? rights[i] : 0;
    const uint at = atomic_fetch_add_explicit(&counts[matrix], 1u, memory_order_relaxed);
    pairs[at] = uint2(i, checked_index(lefts[i], p.left_count, 1, errors));
  }
}

// --- tiles: weights become elements of 16 bits in threadgroup memory ---

inline uint packed(half, float first, float second) { return holdfast::pack_half(first, second); }
inline uint packed(bfloat, float first, float second) {
  return holdfast::pack_bfloat(first, second);
}

// Sixteen neighbouring weights of a group.
struct Weights {
  ulong words[2];
  float scale, bias;
};
struct WeightSource {
  const device uchar *codes, *scales, *biases;
  Format format;

  Weights load(ulong element, bool exists) const {
    Weights w = {{0, 0}, 0, 0};
    if (!exists) return w;
    const ulong group = element >> format.group_shift;
    w.words[0] = eight_codes(codes, format.bits, element / 8);
    w.words[1] = eight_codes(codes, format.bits, element / 8 + 1);
    w.scale = scale_at(scales, format.scale_type, group);
    if (format.mode == affine) w.bias = scale_at(biases, format.scale_type, group);
    return w;
  }
};

template <typename T, uint tile, bool transposed>
KERNEL(256)
quantized_tiles(const device ushort* x, const device uchar* codes, const device uchar* scales,
                const device uchar* biases, device uchar* out, CHOICE, IN_GROUP(uint3),
                IN_SIMDGROUP) {
  constexpr uint side = 128, depth = 32, threads = 256;
  using TileA = Tile<tile, depth>;
  using TileB = conditional_t<transposed, Tile<side, depth>, Tile<depth, side>>;
  constexpr uint buffer = TileA::bytes + TileB::bytes;
  threadgroup uint4 memory[2 * buffer / 16];
  threadgroup uchar* buffers = reinterpret_cast<threadgroup uchar*>(memory);

  const TileRows rows = tile_rows(p, CHOSEN, tile, group.y, group.z, errors);
  if (rows.count == 0) return;
  const uint column_tiles = (p.columns + side - 1) / side, part = group.x / column_tiles;
  const uint first_column = group.x % column_tiles * side;
  const uint first_depth = part * p.part_depth, end = min(p.depth, first_depth + p.part_depth);
  const WeightSource weights{codes, scales, biases, p.format};
  const ulong first_weight = ulong(rows.matrix) * p.columns * p.depth;

  // What the thread loads of each tile.
  constexpr uint chunks = TileA::chunks * tile, each = (chunks + threads - 1) / threads;
  const device ushort* from[each];
  bool exists[each];
#pragma unroll
  for (uint i = 0; i < each; ++i) {
    const uint row = (i * threads + t) / TileA::chunks;
    exists[i] = row < rows.count;
    from[i] = x + rows.left_row(exists[i] ? row : 0) * p.depth;
  }
  const uint line = transposed ? t / 2 : t / 8, place = (transposed ? t % 2 : t % 8) * 16;
  auto load_left_tile = [&](uint at, threadgroup uchar* to) {
#pragma unroll
    for (uint i = 0; i < each; ++i) {
      const uint number = i * threads + t, chunk = number % TileA::chunks;
      if (number >= chunks) continue;
      const uint k = at + chunk * chunk_size;
      threadgroup uchar* place = to + TileA::offset(number / TileA::chunks, chunk);
      const bool inside = exists[i] && k < end;
      if (p.x_aligned) {
        holdfast::async_copy<16>(place, from[i] + (inside ? k : 0), inside);
      } else {
        *reinterpret_cast<threadgroup uint4*>(place) =
            load_part(from[i] + k, 1, inside ? end - k : 0);
      }
    }
  };
  auto load_weights = [&](uint at) {
    const uint column = first_column + (transposed ? line : place);
    const uint k = at + (transposed ? place : line);
    const ulong element =
        first_weight + (transposed ? ulong(column) * p.depth + k : ulong(k) * p.columns + column);
    return weights.load(element, column < p.columns && k < end);
  };
  auto put_weights = [&](Weights w, threadgroup uchar* to) {
#pragma nounroll
    for (uint part = 0; part < 2; ++part) {
      const ulong eight = part == 0 ? w.words[0] : w.words[1];
      uint4 words;
#pragma unroll
      for (uint i = 0; i < 4; ++i)
        words[i] = packed(T(0), weight_of(eight, 2 * i, p.format, w.scale, w.bias),
                          weight_of(eight, 2 * i + 1, p.format, w.scale, w.bias));
      *reinterpret_cast<threadgroup uint4*>(to + TileB::offset(line, place / chunk_size + part)) =
          words;
    }
  };

  constexpr uint down = tile / 64 > 0 ? tile / 64 : 1, across = 8 / down;  // simdgroups
  const uint row = simdgroup % down * (tile / down), column = simdgroup / down * (side / across);
  TileSums<T, tile / down, side / across> sums;
  const uint steps = (end - first_depth + depth - 1) / depth;
  for (uint step = 0; step <= steps; ++step) {
    holdfast::async_copy_wait();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup uchar* next = buffers + step % 2 * buffer;
    Weights w;
    if (step < steps) {
      load_left_tile(first_depth + step * depth, next);
      w = load_weights(first_depth + step * depth);
    }
    holdfast::async_copy_commit();
    if (step > 0) {
      const threadgroup uchar* now = buffers + (step + 1) % 2 * buffer;
#pragma nounroll
      for (uint k = 0; k < depth; k += 16) {
        sums.template add<TileA, false, TileB, !transposed>(now, now + TileA::bytes, row, column, k,
                                                            lane);
      }
    }
    if (step < steps) put_weights(w, next + TileA::bytes);
  }

  threadgroup_barrier(mem_flags::mem_threadgroup);
  sums.store(reinterpret_cast<threadgroup float*>(memory) + simdgroup * sums.staged, lane,
             [&](uint r, uint c, float sum) {
               r += row;
               c += first_column + column;
               if (r >= rows.count || c >= p.columns) return;
               const ulong at = (part * p.out_rows + rows.out_row(r)) * p.columns + c;
               if (p.wide) {
                 reinterpret_cast<device float*>(out)[at] = sum;
               } else {
                 reinterpret_cast<device T*>(out)[at] = T(sum);
               }
             });
}

#define QUANTIZED_TILES(name, T, tile)                                        \
  ENTRY("quantized_tiles_" #tile "_t_" #name, quantized_tiles<T, tile, true>) \
  ENTRY("quantized_tiles_" #tile "_n_" #name, quantized_tiles<T, tile, false>)
QUANTIZED_TILES(float16, half, 128)
QUANTIZED_TILES(float16, half, 32)
QUANTIZED_TILES(bfloat16, bfloat, 128)
QUANTIZED_TILES(bfloat16, bfloat, 32)

// --- float32, by multiplications and additions ---

[[kernel, max_total_threads_per_threadgroup(256), host_name("quantized_any_float32")]] void
quantized_any(const device float* x, const device uchar* codes, const device uchar* scales,
              const device uchar* biases, device float* out, CHOICE, IN_GROUP(uint3)) {
  constexpr uint side = 64, depth = 16, per_thread = 4;
  threadgroup float a_tile[depth][side + 4], b_tile[depth][side + 4];
  const TileRows rows = tile_rows(p, CHOSEN, side, group.y, group.z, errors);
  if (rows.count == 0) return;
  const uint column_tiles = (p.columns + side - 1) / side, part = group.x / column_tiles;
  const uint first_column = group.x % column_tiles * side;
  const uint first_depth = part * p.part_depth, end = min(p.depth, first_depth + p.part_depth);
  const WeightSource weights{codes, scales, biases, p.format};
  const ulong first_weight = ulong(rows.matrix) * p.columns * p.depth;
  // 64 threads load 16 neighbouring weights each; all load 4 neighbours of x.
  const uint line = p.transposed ? t : t / 4, place = p.transposed ? 0 : t % 4 * 16;
  const uint x_row = t / 4, x_place = t % 4 * 4;
  const device float* from = x + rows.left_row(min(x_row, rows.count - 1)) * p.depth;

  const uint c = t % 16 * per_thread, r = t / 16 * per_thread;  // in the tile
  float sums[per_thread][per_thread] = {};
  for (uint at = first_depth; at < end; at += depth) {
#pragma unroll
    for (uint i = 0; i < 4; ++i) {
      const uint k = at + x_place + i;
      a_tile[x_place + i][x_row] = x_row < rows.count && k < end ? from[k] : 0;
    }
    if (t < 64) {
      const uint column = first_column + (p.transposed ? line : place);
      const uint k = at + (p.transposed ? place : line);
      const ulong element = first_weight + (p.transposed ? ulong(column) * p.depth + k
                                                         : ulong(k) * p.columns + column);
      const Weights w = weights.load(element, column < p.columns && k < end);
#pragma nounroll
      for (uint i = 0; i < 16; ++i) {
        const float weight =
            weight_of(i < 8 ? w.words[0] : w.words[1], i % 8, p.format, w.scale, w.bias);
        b_tile[p.transposed ? i : line][p.transposed ? line : place + i] = weight;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll 2
    for (uint k = 0; k < depth; ++k) {
#pragma unroll
      for (uint i = 0; i < per_thread; ++i) {
#pragma unroll
        for (uint j = 0; j < per_thread; ++j)
          sums[i][j] = fma(a_tile[k][r + i], b_tile[k][c + j], sums[i][j]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
#pragma unroll
  for (uint i = 0; i < per_thread; ++i) {
#pragma unroll
    for (uint j = 0; j < per_thread; ++j) {
      if (r + i < rows.count && first_column + c + j < p.columns)
        out[(part * p.out_rows + rows.out_row(r + i)) * p.columns + first_column + c + j] =
            sums[i][j];
    }
  }
}

// --- few rows of x: weights stay codes, and are read once ---

constant constexpr uint span = 32, chunk = 128;  // codes of a lane; of four lanes

template <uint bits>
struct Codes {
  uint words[bits];

  void load(const device uint* from) {
    if constexpr (bits % 4 == 0) {
#pragma unroll
      for (uint i = 0; i < bits / 4; ++i) {
        const uint4 some =
            holdfast::load_streaming(reinterpret_cast<const device uint4*>(from) + i);
        for (uint j = 0; j < 4; ++j) words[4 * i + j] = some[j];
      }
    } else if constexpr (bits % 2 == 0) {
#pragma unroll
      for (uint i = 0; i < bits / 2; ++i) {
        const uint2 some =
            holdfast::load_streaming(reinterpret_cast<const device uint2*>(from) + i);
        for (uint j = 0; j < 2; ++j) words[2 * i + j] = some[j];
      }
    } else {
#pragma unroll
      for (uint i = 0; i < bits; ++i) words[i] = holdfast::load_streaming(from + i);
    }
  }
  uint code(uint i) const {
    const uint bit = i * bits, word = bit / 32, shift = bit % 32;
    uint value = words[word] >> shift;
    if (shift + bits > 32) value |= words[word + 1] << (32 - shift);
    return value & ((1u << bits) - 1);
  }
};

// Numbers `first` and `first` + 4 of the codes, plus `offset`, as a word of T.
template <typename T, uint bits, uint mode>
struct Unpacked {
  static constant constexpr bool by_words = bits == 4 && mode == affine;
  static constant constexpr float offset = by_words ? 16 : 0;

  static uint pair(thread const Codes<bits>& codes, uint first) {
    if constexpr (by_words) {
      // Four bits at the top of the fraction of 16 make 16 + code, in both halves of a word.
      constexpr bool is_half = is_same_v<T, half>;
      constexpr int top = is_half ? 6 : 3;
      constexpr uint mask = 0x000f000f << top, sixteen = is_half ? 0x4c004c00 : 0x41804180;
      const uint word = codes.words[first / 8];
      const int up = top - int(first % 8 * 4);
      return ((up >= 0 ? word << up : word >> -up) & mask) | sixteen;
    } else {
      return packed(T(0), number(codes.code(first)), number(codes.code(first + 4)));
    }
  }
  static float number(uint code) {
    // Exact, and cheaper than a conversion.
    if constexpr (mode == affine) return as_type<float>(0x4b000000 | code) - 8388608.0f;
    return number_of(code, mode);
  }
};

// A threadgroup computes 32 columns of the result for up to 8 / parts rows; its simdgroups take
// chunks of the depth in turn. Columns of the weights are rows of A. A chunk of 128 has `parts`
// groups at a time: column c of B is row c / parts of x where lanes have the codes of part
// c % parts, and zero elsewhere, so that each sum belongs to one group. Its scale comes afterwards,
// and what depends on the sum of x: the bias, and the offset of codes.
template <typename T, uint bits, uint mode>
KERNEL(512)
quantized_few(const device ushort* x, const device uchar* codes, const device uchar* scales,
              const device uchar* biases, device T* out, CHOICE, IN_GROUP(uint3), IN_SIMDGROUP) {
  using Unpack = Unpacked<T, bits, mode>;
  constexpr uint row_tiles = 2, side = 16 * row_tiles, most_simdgroups = 16;
  constexpr uint phases = mode == nvfp4 ? 2 : 1, steps = 8 / phases;
  threadgroup float staged[most_simdgroups][side][8];

  const uint shift = p.format.group_shift;
  const uint parts = shift >= 7 ? 1 : shift == 6 ? 2 : 4, simdgroups = p.parts;
  const TileRows rows = tile_rows(p, CHOSEN, 8 / parts, group.y, group.z, errors);
  if (rows.count == 0) return;
  const uint first_column = group.x * side;
  const uint line = lane / 4, place = lane % 4;
  const ulong first_weight = ulong(rows.matrix) * p.columns * p.depth;
  ulong weights[2 * row_tiles];  // where the lane's rows of A begin
#pragma unroll
  for (uint i = 0; i < 2 * row_tiles; ++i) {
    const uint column = min(first_column + line + 8 * i, p.columns - 1);
    weights[i] = first_weight + ulong(column) * p.depth;
  }
  const bool has_x = line / parts < rows.count && line % parts == place * parts / 4;
  const device ushort* from = x + rows.left_row(has_x ? line / parts : 0) * p.depth;
  // The parts of the columns of the lane's sums.
  const uint part_codes = chunk / parts, first_part = 2 * place % parts * part_codes;
  const uint second_part = (2 * place + 1) % parts * part_codes;

  float4 totals[row_tiles] = {};
  for (uint at = simdgroup * chunk; at < p.depth; at += simdgroups * chunk) {
    const uint own = at + place * span;
    const bool exists = own < p.depth;
    Codes<bits> words[2 * row_tiles];
#pragma unroll
    for (uint i = 0; i < 2 * row_tiles; ++i)
      words[i].load(reinterpret_cast<const device uint*>(codes) +
                    (weights[i] + (exists ? own : 0)) / 32 * bits);
    uint4 elements[4] = {0, 0, 0, 0};
    if (has_x && exists) {
#pragma unroll
      for (uint i = 0; i < 4; ++i)
        elements[i] = reinterpret_cast<const device uint4*>(from + own)[i];
    }
#pragma unroll
    for (uint phase = 0; phase < phases; ++phase) {
      float4 sums[row_tiles] = {}, x_sums = 0;
#pragma unroll
      for (uint step = phase * steps; step < (phase + 1) * steps; ++step) {
        // Elements (i, i + 4) and (i + 1, i + 5) of eight, for i = 0 or 2.
        const uint low = elements[step / 2][step % 2], high = elements[step / 2][2 + step % 2];
        const uint2 right = uint2(holdfast::byte_permute(low, high, 0x5410),
                                  holdfast::byte_permute(low, high, 0x7632));
        const uint first = step / 2 * 8 + step % 2 * 2;
#pragma unroll
        for (uint i = 0; i < row_tiles; ++i) {
          const uint4 left = uint4(
              Unpack::pair(words[2 * i], first), Unpack::pair(words[2 * i + 1], first),
              Unpack::pair(words[2 * i], first + 1), Unpack::pair(words[2 * i + 1], first + 1));
          sums[i] = holdfast::mma_m16n8k16<T>(left, right, sums[i]);
        }
        if constexpr (mode == affine) {
          constexpr uint one = is_same_v<T, half> ? 0x3c003c00 : 0x3f803f80;
          x_sums = holdfast::mma_m16n8k16<T>(uint4(one), right, x_sums);
        }
      }
#pragma unroll
      for (uint i = 0; i < 2 * row_tiles; ++i) {
#pragma unroll
        for (uint c = 0; c < 2; ++c) {
          const uint k = at + (c == 0 ? first_part : second_part) + phase * (span / phases);
          if (k >= p.depth) continue;
          const ulong scale_of = (weights[i] + k) >> shift;
          const uint e = i % 2 * 2 + c;
          if constexpr (mode == affine) {
            const float scale = reinterpret_cast<const device T*>(scales)[scale_of];
            const float bias = reinterpret_cast<const device T*>(biases)[scale_of];
            totals[i / 2][e] +=
                fma(scale, sums[i / 2][e], (bias - Unpack::offset * scale) * x_sums[c]);
          } else {
            const uint byte = scales[scale_of];
            const float scale = mode == nvfp4 ? from_e4m3(byte) : from_e8m0(byte);
            totals[i / 2][e] = fma(scale, sums[i / 2][e], totals[i / 2][e]);
          }
        }
      }
    }
  }

#pragma unroll
  for (uint i = 0; i < 2 * row_tiles; ++i) {
#pragma unroll
    for (uint c = 0; c < 2; ++c)
      staged[simdgroup][line + 8 * i][2 * place + c] = totals[i / 2][i % 2 * 2 + c];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint at = t; at < side * rows.count; at += simdgroups * 32) {
    const uint column = at % side, row = at / side;
    if (first_column + column >= p.columns) continue;
    float sum = 0;
    for (uint s = 0; s < simdgroups; ++s) {
      for (uint c = 0; c < parts; ++c) sum += staged[s][column][row * parts + c];
    }
    out[rows.out_row(row) * p.columns + first_column + column] = T(sum);
  }
}

#define QUANTIZED_FEW(format, bits, mode)                                    \
  ENTRY("quantized_few_" format "_float16", quantized_few<half, bits, mode>) \
  ENTRY("quantized_few_" format "_bfloat16", quantized_few<bfloat, bits, mode>)
QUANTIZED_FEW("affine1", 1, affine)
QUANTIZED_FEW("affine2", 2, affine)
QUANTIZED_FEW("affine3", 3, affine)
QUANTIZED_FEW("affine4", 4, affine)
QUANTIZED_FEW("affine5", 5, affine)
QUANTIZED_FEW("affine6", 6, affine)
QUANTIZED_FEW("affine8", 8, affine)
QUANTIZED_FEW("mxfp4", 4, mxfp4)
QUANTIZED_FEW("mxfp8", 8, mxfp8)
QUANTIZED_FEW("nvfp4", 4, nvfp4)
