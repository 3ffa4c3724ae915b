// Copies of any view into dense memory. Elements are units of 1 to 16 bytes: the host joins as many
// as it can.
#include "support/indexing.h"

// Dense to dense; a thread copies 16 bytes. Both addresses are multiples of the unit.
template <typename Unit>
[[kernel]] void copy_linear(const device uchar* in, device uchar* out, constant ulong& bytes,
                            uint2 position [[thread_position_in_grid]],
                            uint2 grid [[threads_per_grid]]) {
  const ulong first = thread_number(position, grid) * 16;
  if (first + 16 <= bytes) {
    auto* from = reinterpret_cast<const device Unit*>(in + first);
    auto* to = reinterpret_cast<device Unit*>(out + first);
    Block<Unit> block;
    for (int i = 0; i < Block<Unit>::size; ++i) block.values[i] = from[i];
    for (int i = 0; i < Block<Unit>::size; ++i) to[i] = block.values[i];
  } else {
    for (ulong i = first; i < bytes; ++i) out[i] = in[i];
  }
}

struct StridedCopy {
  ulong size;
  int dimensions;
  bool aligned;  // the output's address is a multiple of 16
  bool inside;   // no block of the output reaches over the end of a row
};

// From a view of at least one dimension; a thread writes 16 bytes.
template <typename Unit, typename Index>
[[kernel]] void copy_strided(const device Unit* in, device Unit* out, constant StridedCopy& copy,
                             constant Extent* extents, uint2 position [[thread_position_in_grid]],
                             uint2 grid [[threads_per_grid]]) {
  constexpr int per_thread = Block<Unit>::size;
  const ulong first = thread_number(position, grid) * per_thread;
  if (first >= copy.size) return;
  Block<Unit> block;
  if (copy.inside) {
    const long offset = offset_of(Index(first), extents, copy.dimensions);
    const long stride = extents[copy.dimensions - 1].stride;
    for (int i = 0; i < per_thread; ++i) block.values[i] = in[offset + i * stride];
  } else {
    for (int i = 0; i < per_thread; ++i) {
      const ulong index = min(first + i, copy.size - 1);
      block.values[i] = in[offset_of(Index(index), extents, copy.dimensions)];
    }
  }
  store_block(out, first, copy.size, copy.aligned, block);
}

struct TransposedCopy {
  uint rows, columns;  // of the output
  long row_stride;     // of the output; columns are neighbours there, rows in the input
  long column_stride;  // of the input
  int dimensions;      // of the batch
};

// Matrices whose neighbours in the output are far from each other in the input, and the other way
// round. A threadgroup turns a tile of them in threadgroup memory. `in_batch` and `out_batch` say
// where matrix z is.
template <typename Unit, int side>
[[kernel, max_total_threads_per_threadgroup(256)]] void copy_transposed(
    const device Unit* in, device Unit* out, constant TransposedCopy& copy,
    constant Extent* in_batch, constant Extent* out_batch,
    uint3 group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  constexpr int padding = sizeof(Unit) < 4 ? 4 / sizeof(Unit) : 1;
  constexpr int per_thread = side * side / 256;
  threadgroup Unit tile[side][side + padding];
  in += offset_of(group.z, in_batch, copy.dimensions);
  out += offset_of(group.z, out_batch, copy.dimensions);
  const uint first_column = group.x * side, first_row = group.y * side;
  const uint near = t % side, far = t / side;
  for (int i = 0; i < per_thread; ++i) {
    const uint row = first_row + near, column = first_column + far + i * (256 / side);
    if (row < copy.rows && column < copy.columns)
      tile[far + i * (256 / side)][near] = in[row + column * copy.column_stride];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = 0; i < per_thread; ++i) {
    const uint row = first_row + far + i * (256 / side), column = first_column + near;
    if (row < copy.rows && column < copy.columns)
      out[row * copy.row_stride + column] = tile[near][far + i * (256 / side)];
  }
}

#define COPIES(bytes, Unit, side)                                                              \
  template [[host_name("copy_linear_" #bytes)]] [[kernel]] decltype(copy_linear<Unit>)         \
      copy_linear<Unit>;                                                                       \
  template [[host_name("copy_strided_" #bytes)]] [[kernel]] decltype(copy_strided<Unit, uint>) \
      copy_strided<Unit, uint>;                                                                \
  template [[host_name("copy_strided_large_" #bytes)]] [[kernel]] decltype(                    \
      copy_strided<Unit, ulong>) copy_strided<Unit, ulong>;                                    \
  template [[host_name("copy_transposed_" #bytes)]] [[kernel]] decltype(                       \
      copy_transposed<Unit, side>) copy_transposed<Unit, side>;
COPIES(1, uchar, 128)
COPIES(2, ushort, 64)
COPIES(4, uint, 32)
COPIES(8, ulong, 32)
COPIES(16, uint4, 16)
