// The loops over index arrays that exist once per instruction set.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu {

// An axis that an index array points into.
struct IndexedAxis {
  int64_t size;    // negative indices count from here
  int64_t room;    // the largest index that may be followed
  int64_t stride;  // what the index is multiplied with
};

namespace simd {

struct IndexKernels {
  // offsets[i] = first + i * slope + axis.stride * values[i * step], for i < count. `type` is any
  // integer type or bool. Returns the first i whose value may not be followed (offsets from there
  // on mean nothing), or count.
  int64_t (*offsets)(Dtype::Val type, const void* values, int64_t step, int64_t count,
                     const IndexedAxis& axis, int64_t first, int64_t slope, int64_t* offsets);
};

// Of the instruction set in use.
const IndexKernels& index_kernels();

}  // namespace simd
}  // namespace holdfast::kernels::cpu
