// Numbers at equal distances.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu {

// Elements [begin, end) of start + i * step, each computed in double and converted, at their places
// in `output`.
void arange(Dtype::Val dtype, double start, double step, int64_t begin, int64_t end, void* output);

}  // namespace holdfast::kernels::cpu
