// Matrix products C = A B by tiles, for any strides and batches that broadcast. Sums are of float32
// (or two of them), in an order that follows from the shapes.
#include "support/indexing.h"
#include "support/errors.h"
#include "support/tiles.h"
#include "support/matmul_parameters.h"

// Columns are taken in bands of rows: threadgroups that run at the same time share what they read.
struct TilePosition {
  uint row, column;  // of tiles
  TilePosition(uint number, uint rows, uint columns) {
    constexpr uint band = 8;
    const uint first = number / (band * columns) * band;
    const uint height = min(band, rows - first);
    const uint inside = number - first * columns;
    row = first + inside % height;
    column = inside / height;
  }
};

// Where sums of C go: row after row, as many in C as in each of its parts.
template <typename T>
struct Target {
  device uchar* out;
  ulong first;  // element of the product's first one
  uint columns;
  bool wide;

  template <typename Wide>
  void store(uint row, uint column, Wide value) const {
    const ulong at = first + ulong(row) * columns + column;
    if (wide) {
      reinterpret_cast<device Wide*>(out)[at] = value;
    } else {
      reinterpret_cast<device T*>(out)[at] = T(value);
    }
  }
};
template <typename T>
inline Target<T> target_of(device uchar* out, constant Product& product, uint batch, uint part) {
  const ulong size = ulong(product.rows) * product.columns;
  return {out, (ulong(batch) * product.parts + part) * size, product.columns,
          product.wide || product.parts > 1};
}

// --- 16-bit elements, on matrix units ---

// A threadgroup computes side × side of C, each of its 8 simdgroups side / 2 × side / 4. `turned`:
// neighbours in memory are neighbours across the depth, else along it.
template <typename T, uint side, bool a_turned, bool b_turned>
KERNEL(256)
matmul_tiles(const device ushort* a, const device ushort* b, device uchar* out,
             constant Product& product, constant Extent* a_batch, constant Extent* b_batch,
             IN_GROUP(uint3), IN_SIMDGROUP) {
  constexpr uint depth = 32, threads = 256;
  using TileA = conditional_t<a_turned, Tile<depth, side>, Tile<side, depth>>;
  using TileB = conditional_t<b_turned, Tile<depth, side>, Tile<side, depth>>;
  threadgroup uint4 memory[2 * (TileA::bytes + TileB::bytes) / 16];
  threadgroup uchar* tiles = reinterpret_cast<threadgroup uchar*>(memory);

  const uint rows = (product.rows + side - 1) / side;
  const TilePosition position(group.x, rows, (product.columns + side - 1) / side);
  const uint first_row = position.row * side, first_column = position.column * side;
  const uint first_depth = group.y * product.part_depth;
  const uint end_depth = min(product.depth, first_depth + product.part_depth);
  a += offset_of(group.z, a_batch, product.dimensions) + first_row * product.a_row;
  b += offset_of(group.z, b_batch, product.dimensions) + first_column * product.b_column;
  const uint rows_left = product.rows - first_row, columns_left = product.columns - first_column;

  auto load = [&](uint from, uint buffer) {
    threadgroup uchar* to = tiles + buffer * (TileA::bytes + TileB::bytes);
    const uint left = end_depth - from;
    const device ushort* start = a + from * product.a_depth;
    if constexpr (a_turned) {
      load_tile<TileA, threads>(
          to, TileSource{start, product.a_depth, left, rows_left, product.a_aligned}, t);
    } else {
      load_tile<TileA, threads>(
          to, TileSource{start, product.a_row, rows_left, left, product.a_aligned}, t);
    }
    to += TileA::bytes;
    start = b + from * product.b_depth;
    if constexpr (b_turned) {
      load_tile<TileB, threads>(
          to, TileSource{start, product.b_depth, left, columns_left, product.b_aligned}, t);
    } else {
      load_tile<TileB, threads>(
          to, TileSource{start, product.b_column, columns_left, left, product.b_aligned}, t);
    }
  };

  const uint row = simdgroup % 2 * (side / 2), column = simdgroup / 2 * (side / 4);
  TileSums<T, side / 2, side / 4> sums;
  const uint steps = (end_depth - first_depth + depth - 1) / depth;
  for (uint step = 0; step <= steps; ++step) {
    if (step < steps) load(first_depth + step * depth, step % 2);
    holdfast::async_copy_commit();
    if (step == 0) continue;
    holdfast::async_copy_wait<1>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const threadgroup uchar* tile = tiles + (step + 1) % 2 * (TileA::bytes + TileB::bytes);
#pragma nounroll
    for (uint k = 0; k < depth; k += 16) {
      sums.template add<TileA, a_turned, TileB, b_turned>(tile, tile + TileA::bytes, row, column, k,
                                                          lane);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  const Target<T> target = target_of<T>(out, product, group.z, group.y);
  sums.store(reinterpret_cast<threadgroup float*>(memory) + simdgroup * sums.staged, lane,
             [&](uint r, uint c, float sum) {
               r += first_row + row;
               c += first_column + column;
               if (r < product.rows && c < product.columns) target.store(r, c, sum);
             });
}

#define TILES_OF(name, T, side, a, a_turned, b, b_turned) \
  ENTRY("matmul_" #side "_" #a #b "_" #name, matmul_tiles<T, side, a_turned, b_turned>)
#define TILES(name, T, side)                  \
  TILES_OF(name, T, side, n, false, n, true)  \
  TILES_OF(name, T, side, n, false, t, false) \
  TILES_OF(name, T, side, t, true, n, true)
TILES(float16, half, 128)
TILES(bfloat16, bfloat, 128)
TILES(float16, half, 64)
TILES(bfloat16, bfloat, 64)
TILES_OF(float16, half, 64, t, true, t, false)
TILES_OF(bfloat16, bfloat, 64, t, true, t, false)

// --- any elements, by multiplications and additions ---

template <typename T>
struct wide_of {
  using type = float;
};
template <>
struct wide_of<float2> {
  using type = float2;
};
inline float times_plus(float a, float b, float sum) { return fma(a, b, sum); }
inline float2 times_plus(float2 a, float2 b, float2 sum) {
  return float2(fma(a.x, b.x, fma(-a.y, b.y, sum.x)), fma(a.x, b.y, fma(a.y, b.x, sum.y)));
}

constant constexpr uint any_side = 64, any_depth = 16;
template <typename T>
struct AnyTiles {
  typename wide_of<T>::type a[any_depth][any_side + 4], b[any_depth][any_side + 4];
};

// A threadgroup of 256 threads computes 64 × 64 of C, the sums over [first_depth, end_depth).
// Operands may have any strides.
template <typename T>
inline void multiply_any(const device T* a, const device T* b, Target<T> target,
                         constant Product& product, uint first_depth, uint end_depth, uint tile,
                         threadgroup AnyTiles<T>& tiles, uint t) {
  using Wide = typename wide_of<T>::type;
  constexpr uint side = any_side, depth = any_depth, per_thread = 4;
  const uint rows = (product.rows + side - 1) / side;
  const TilePosition position(tile, rows, (product.columns + side - 1) / side);
  const uint first_row = position.row * side, first_column = position.column * side;

  // Threads that are neighbours load what lies together: along the depth, or across it.
  auto load = [&](const device T* from, uint first, uint end, long stride, long depth_stride,
                  uint at, thread Wide* values) {
    const bool along = abs(depth_stride) < abs(stride);
#pragma unroll
    for (uint i = 0; i < per_thread; ++i) {
      const uint number = i * 256 + t;
      const uint line = first + (along ? number / depth : number % side);
      const uint k = at + (along ? number % depth : number / side);
      values[i] = 0;
      if (line < end && k < end_depth) values[i] = Wide(from[line * stride + k * depth_stride]);
    }
  };
  auto put = [&](threadgroup Wide(*tile)[side + 4], long stride, long depth_stride,
                 thread const Wide* values) {
    const bool along = abs(depth_stride) < abs(stride);
#pragma unroll
    for (uint i = 0; i < per_thread; ++i) {
      const uint number = i * 256 + t;
      tile[along ? number % depth : number / side][along ? number / depth : number % side] =
          values[i];
    }
  };
  Wide a_next[per_thread], b_next[per_thread];
  auto load_both = [&](uint at) {
    load(a, first_row, product.rows, product.a_row, product.a_depth, at, a_next);
    load(b, first_column, product.columns, product.b_column, product.b_depth, at, b_next);
  };

  const uint x = t % 16 * per_thread, y = t / 16 * per_thread;  // in the tile
  Wide sums[per_thread][per_thread] = {};
  if (first_depth < end_depth) load_both(first_depth);
  for (uint at = first_depth; at < end_depth; at += depth) {
    put(tiles.a, product.a_row, product.a_depth, a_next);
    put(tiles.b, product.b_column, product.b_depth, b_next);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (end_depth - at > depth) load_both(at + depth);
#pragma unroll 2
    for (uint k = 0; k < depth; ++k) {
      Wide left[per_thread], right[per_thread];
#pragma unroll
      for (uint i = 0; i < per_thread; ++i) {
        left[i] = tiles.a[k][y + i];
        right[i] = tiles.b[k][x + i];
      }
#pragma unroll
      for (uint i = 0; i < per_thread; ++i) {
#pragma unroll
        for (uint j = 0; j < per_thread; ++j)
          sums[i][j] = times_plus(left[i], right[j], sums[i][j]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }

#pragma unroll
  for (uint i = 0; i < per_thread; ++i) {
#pragma unroll
    for (uint j = 0; j < per_thread; ++j) {
      const uint r = first_row + y + i, c = first_column + x + j;
      if (r < product.rows && c < product.columns) target.store(r, c, sums[i][j]);
    }
  }
}

template <typename T>
KERNEL(256)
matmul_any(const device T* a, const device T* b, device uchar* out, constant Product& product,
           constant Extent* a_batch, constant Extent* b_batch, IN_GROUP(uint3)) {
  threadgroup AnyTiles<T> tiles;
  const uint first = group.y * product.part_depth;
  multiply_any(a + offset_of(group.z, a_batch, product.dimensions),
               b + offset_of(group.z, b_batch, product.dimensions),
               target_of<T>(out, product, group.z, group.y), product, first,
               min(product.depth, first + product.part_depth), group.x, tiles, t);
}

// Product z has the depth [segments[2 z], segments[2 z + 1]) to itself.
template <typename T>
KERNEL(256)
segmented_matmul(const device T* a, const device T* b, const device uint* segments,
                 device uchar* out, constant Product& product, device Errors& errors,
                 IN_GROUP(uint3)) {
  threadgroup AnyTiles<T> tiles;
  uint first = segments[2 * ulong(group.z)], end = segments[2 * ulong(group.z) + 1];
  if (first > end || end > product.depth) {
    report(errors, 1, first, end);
    first = end = 0;
  }
  multiply_any(a, b, target_of<T>(out, product, group.z, 0), product, first, end, group.x, tiles,
               t);
}

#define MATMUL_ANY(name, T)                 \
  ENTRY("matmul_any_" #name, matmul_any<T>) \
  ENTRY("segmented_matmul_" #name, segmented_matmul<T>)
FOR_FLOATS(MATMUL_ANY)
MATMUL_ANY(complex64, float2)

// --- few vectors ---

template <typename T>
inline device uchar* sums_of(device uchar* out, constant MatrixVectors& p, uint batch, uint part) {
  using Wide = typename wide_of<T>::type;
  const ulong first = (ulong(batch) * p.parts + part) * p.rows * p.vectors;
  return out + first * (p.wide ? sizeof(Wide) : sizeof(T));
}
template <typename T, typename Wide>
inline void store_sum(device uchar* out, constant MatrixVectors& p, uint row, uint vector,
                      Wide sum) {
  Target<T>{out, row * p.out_row + vector * p.out_vector, 0, p.wide}.store(0, 0, sum);
}

// Elements of a row are neighbours, and of a vector. A row has `width` lanes of a simdgroup, which
// takes four rows at a time.
template <typename T, uint count>
KERNEL(256)
matvec_rows(const device T* matrix, const device T* x, device uchar* out, constant MatrixVectors& p,
            constant Extent* matrix_batch, constant Extent* x_batch, IN_GROUP(uint3)) {
  using Wide = typename wide_of<T>::type;
  constexpr uint together = 4, block = Block<T>::size;
  matrix += offset_of(group.z, matrix_batch, p.dimensions);
  x += offset_of(group.z, x_batch, p.dimensions);
  const uint lane = t % p.width, first_row = (group.x * (256 / p.width) + t / p.width) * together;
  const uint first = group.y * p.part_depth, end = min(p.depth, first + p.part_depth);
  const device T* rows[together];
#pragma unroll
  for (uint r = 0; r < together; ++r) rows[r] = matrix + min(first_row + r, p.rows - 1) * p.stride;
  Wide sums[together][count] = {};
  for (uint k = first + lane * block; k < end; k += p.width * block) {
    Block<T> values[together];
#pragma unroll
    for (uint r = 0; r < together; ++r) values[r] = load_block(rows[r] + k);
#pragma unroll
    for (uint v = 0; v < count; ++v) {
      if (v >= p.vectors) break;
      const Block<T> factors = load_block(x + v * p.vector + k);
#pragma unroll
      for (uint r = 0; r < together; ++r) {
#pragma unroll
        for (uint i = 0; i < block; ++i)
          sums[r][v] = times_plus(Wide(values[r].values[i]), Wide(factors.values[i]), sums[r][v]);
      }
    }
  }
  out = sums_of<T>(out, p, group.z, group.y);
#pragma unroll
  for (uint r = 0; r < together; ++r) {
#pragma unroll
    for (uint v = 0; v < count; ++v) {
      for (ushort distance = p.width / 2; distance > 0; distance /= 2)
        sums[r][v] += simd_shuffle_xor(sums[r][v], distance);
      if (lane == 0 && first_row + r < p.rows && v < p.vectors)
        store_sum<T>(out, p, first_row + r, v, sums[r][v]);
    }
  }
}

// Elements of a column are neighbours: outputs are. `width` threads read 16 bytes each of a line;
// the others of a threadgroup take other lines.
template <typename T, uint count>
KERNEL(256)
matvec_columns(const device T* matrix, const device T* x, device uchar* out,
               constant MatrixVectors& p, constant Extent* matrix_batch, constant Extent* x_batch,
               IN_GROUP(uint3)) {
  using Wide = typename wide_of<T>::type;
  constexpr uint together = 4, block = Block<T>::size;
  threadgroup Wide memory[256 * block];
  matrix += offset_of(group.z, matrix_batch, p.dimensions);
  x += offset_of(group.z, x_batch, p.dimensions);
  const uint lines = 256 / p.width;
  const uint first_row = group.x * p.width * block, row = first_row + t % p.width * block;
  const uint first = group.y * p.part_depth, end = min(p.depth, first + p.part_depth);
  Wide sums[count][block] = {};
  const uint start = min(row, p.rows - block);  // what is outside is computed for nothing
  for (uint k = first + t / p.width; k < end; k += together * lines) {
    Block<T> values[together];
#pragma unroll
    for (uint u = 0; u < together; ++u) {
      values[u] = load_block(matrix + min(k + u * lines, end - 1) * p.stride + start);
    }
#pragma unroll
    for (uint u = 0; u < together; ++u) {
      const uint line = k + u * lines;
      if (line >= end) break;
#pragma unroll
      for (uint v = 0; v < count; ++v) {
        if (v >= p.vectors) break;
        const Wide factor = Wide(x[v * p.vector + line * p.vector_depth]);
#pragma unroll
        for (uint i = 0; i < block; ++i)
          sums[v][i] = times_plus(Wide(values[u].values[i]), factor, sums[v][i]);
      }
    }
  }
  out = sums_of<T>(out, p, group.z, group.y);
#pragma unroll
  for (uint v = 0; v < count; ++v) {
#pragma unroll
    for (uint i = 0; i < block; ++i) memory[t * block + i] = sums[v][i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < p.width * block && first_row + t < p.rows && v < p.vectors) {
      Wide sum = memory[t];
      for (uint line = 1; line < lines; ++line) sum += memory[line * p.width * block + t];
      store_sum<T>(out, p, first_row + t, v, sum);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

#define MATVEC(name, T, count)                                  \
  ENTRY("matvec_rows_" #count "_" #name, matvec_rows<T, count>) \
  ENTRY("matvec_columns_" #count "_" #name, matvec_columns<T, count>)
#define MATVECS(name, T) MATVEC(name, T, 1) MATVEC(name, T, 4)
FOR_FLOATS(MATVECS)
MATVEC(complex64, float2, 4)

// --- sums of parts ---

// Products follow each other in `sums`, each with its parts one after the other.
template <typename T>
[[kernel]] void add_parts(const device float* sums, device T* out, constant SumParts& p, IN_GRID) {
  const ulong index = thread_number(position, grid);
  if (index >= p.total) return;
  const ulong product = index / p.size;
  const device float* from = sums + product * p.size * p.parts + (index - product * p.size);
  float sum = 0;
  for (uint i = 0; i < p.parts; ++i) sum += from[i * p.size];
  out[index] = T(sum);
}
#define ADD_PARTS(name, T) ENTRY("add_parts_" #name, add_parts<T>)
FOR_FLOATS(ADD_PARTS)
