// Tiles of 16-bit elements in threadgroup memory, and their fragments for mma_m16n8k16.
//
// A tile is stored in rows of chunks: 8 elements, 16 bytes. Chunks are permuted inside lines of 128
// bytes so that eight neighbouring rows of a chunk, which load_matrices reads at once, and the
// chunks of a row, which a load from device memory writes, lie in different banks.
#include <holdfast/tile.h>

constant constexpr uint chunk_size = 8;

// `columns` is a power of two, at least 8. A tile begins at a multiple of 128 bytes.
template <uint rows_, uint columns_>
struct Tile {
  static constant constexpr uint rows = rows_, columns = columns_, chunks = columns / chunk_size;
  static constant constexpr uint bytes = rows * columns * 2;
  // In bytes.
  static uint offset(uint row, uint chunk) {
    constexpr uint rows_of_line = chunks < 8 ? 8 / chunks : 1;
    constexpr uint mask = chunks < 8 ? chunks - 1 : 7;
    return (row * chunks + (chunk ^ (row / rows_of_line & mask))) * 16;
  }
};

// A matrix of 16-bit elements in device memory, as far as a tile of it exists: what is outside
// counts as zero.
struct TileSource {
  const device ushort* from;  // the tile's first element
  long stride;                // between rows; elements of a row are neighbours
  uint rows, columns;         // that exist, from the first element on
  bool aligned;               // each row begins at a multiple of 16 bytes
};

// 16 bytes of elements, of which the first `count` exist; the rest is zero. Rarely run, so kept
// small.
template <typename T>
inline uint4 load_part(const device T* from, long stride, uint count) {
  ulong low = 0, high = 0;
#pragma nounroll
  for (uint i = 0; i < min(count, uint(16 / sizeof(T))); ++i) {
    const uint bit = i * sizeof(T) * 8;
    const ulong bits = ulong(as_type<bits_of<T>>(from[i * stride])) << bit % 64;
    low |= bit < 64 ? bits : 0;
    high |= bit < 64 ? 0 : bits;
  }
  return uint4(as_type<uint2>(low), as_type<uint2>(high));
}

// Loads a tile with `threads` threads, in part as a group of asynchronous copies, which the caller
// commits and waits for.
template <typename Tile, uint threads>
inline void load_tile(threadgroup uchar* tile, TileSource source, uint t) {
  constexpr uint all = Tile::rows * Tile::chunks;
  static_assert(all % threads == 0, "each thread loads as many chunks");
#pragma unroll
  for (uint i = 0; i < all / threads; ++i) {
    const uint number = i * threads + t;
    const uint row = number / Tile::chunks, chunk = number % Tile::chunks;
    threadgroup uchar* to = tile + Tile::offset(row, chunk);
    const uint first = chunk * chunk_size;
    const bool exists = row < source.rows && first < source.columns;
    if (source.aligned && (!exists || first + chunk_size <= source.columns)) {
      holdfast::async_copy<16>(to, source.from + (exists ? row * source.stride + first : 0),
                               exists);
    } else {
      *reinterpret_cast<threadgroup uint4*>(to) = load_part(
          source.from + row * source.stride + first, 1, exists ? source.columns - first : 0);
    }
  }
}

// The four 8×8 matrices of the 16×16 elements from (row, column) on, `row` and `column` being
// multiples of 8. `down` is the order top left, bottom left, top right, bottom right; else top
// left, top right, bottom left, bottom right.
template <typename Tile, bool down, bool transposed>
inline uint4 load_fragment(const threadgroup uchar* tile, uint row, uint column, uint lane) {
  const uint near = lane % 8, first = lane / 8 % 2, second = lane / 16;
  const uint r = row + near + 8 * (down ? first : second);
  const uint chunk = column / chunk_size + (down ? second : first);
  return holdfast::load_matrices<transposed>(tile, Tile::offset(r, chunk));
}

// Operand A: 16 rows and 16 of the depth. `turned`: the tile's rows are the depth.
template <typename Tile, bool turned>
inline uint4 load_left(const threadgroup uchar* tile, uint row, uint depth, uint lane) {
  if constexpr (turned) return load_fragment<Tile, false, true>(tile, depth, row, lane);
  return load_fragment<Tile, true, false>(tile, row, depth, lane);
}
// Operand B of two products: 16 of the depth, 8 columns (xy) and the next 8 (zw). The tile's rows
// are columns of B, or `turned`: the depth.
template <typename Tile, bool turned>
inline uint4 load_right(const threadgroup uchar* tile, uint column, uint depth, uint lane) {
  if constexpr (turned) return load_fragment<Tile, true, true>(tile, depth, column, lane);
  return load_fragment<Tile, false, false>(tile, column, depth, lane);
}

// Sums of a simdgroup: `rows_` × `columns_` of C, multiples of 16.
template <typename T, uint rows_, uint columns_>
struct TileSums {
  static constant constexpr uint row_tiles = rows_ / 16, column_tiles = columns_ / 16;
  static constant constexpr uint stride = columns_ + 4;
  // Of threadgroup memory that `store` uses.
  static constant constexpr uint staged = 16 * stride;
  float4 values[row_tiles][2 * column_tiles] = {};

  // Adds the product of the rows of A from `row` on and the columns of B from `column` on, 16 of
  // the depth from `depth` on.
  template <typename TileA, bool a_turned, typename TileB, bool b_turned>
  void add(const threadgroup uchar* a, const threadgroup uchar* b, uint row, uint column,
           uint depth, uint lane) {
    uint4 left[row_tiles], right[column_tiles];
#pragma unroll
    for (uint i = 0; i < row_tiles; ++i)
      left[i] = load_left<TileA, a_turned>(a, row + 16 * i, depth, lane);
#pragma unroll
    for (uint j = 0; j < column_tiles; ++j)
      right[j] = load_right<TileB, b_turned>(b, column + 16 * j, depth, lane);
#pragma unroll
    for (uint i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (uint j = 0; j < column_tiles; ++j) {
        values[i][2 * j] = holdfast::mma_m16n8k16<T>(left[i], right[j].xy, values[i][2 * j]);
        values[i][2 * j + 1] =
            holdfast::mma_m16n8k16<T>(left[i], right[j].zw, values[i][2 * j + 1]);
      }
    }
  }

  // Calls put(row, column, sum) for each: lanes that are neighbours take neighbours of a row, by
  // way of `memory`, which is the simdgroup's own.
  template <typename Put>
  void store(threadgroup float* memory, uint lane, Put put) {
#pragma unroll
    for (uint i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (uint j = 0; j < 2 * column_tiles; ++j) {
#pragma unroll
        for (uint e = 0; e < 4; ++e)
          memory[(lane / 4 + e / 2 * 8) * stride + 8 * j + lane % 4 * 2 + e % 2] = values[i][j][e];
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma nounroll
      for (uint at = lane; at < 16 * columns_; at += 32)
        put(16 * i + at / columns_, at % columns_, memory[at / columns_ * stride + at % columns_]);
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
};
