// Copies of any view into dense memory. Elements are units of 1 to 16 bytes: the host joins as many
// as it can.
#include "support/indexing.h"
#include "support/copy_parameters.h"

// Dense to dense; a thread copies 16 bytes. Both addresses are multiples of the unit.
template <typename Unit>
[[kernel]] void copy_linear(const device uchar* in, device uchar* out, constant ulong& bytes,
                            IN_GRID) {
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

// From a view of at least one dimension; a thread writes 16 bytes.
template <typename Unit, typename Index>
[[kernel]] void copy_strided(const device Unit* in, device Unit* out, constant StridedCopy& copy,
                             constant Extent* extents, IN_GRID) {
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

// Matrices whose neighbours in the output are far from each other in the input, and the other way
// round. A threadgroup turns a tile of them in threadgroup memory. `in_batch` and `out_batch` say
// where matrix z is.
template <typename Unit, int side>
KERNEL(256)
copy_transposed(const device Unit* in, device Unit* out, constant TransposedCopy& copy,
                constant Extent* in_batch, constant Extent* out_batch, IN_GROUP(uint3)) {
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

#define COPIES(bytes, Unit, side)                                \
  ENTRY("copy_linear_" #bytes, copy_linear<Unit>)                \
  ENTRY("copy_strided_" #bytes, copy_strided<Unit, uint>)        \
  ENTRY("copy_strided_large_" #bytes, copy_strided<Unit, ulong>) \
  ENTRY("copy_transposed_" #bytes, copy_transposed<Unit, side>)
COPIES(1, uchar, 128)
COPIES(2, ushort, 64)
COPIES(4, uint, 32)
COPIES(8, ulong, 32)
COPIES(16, uint4, 16)
