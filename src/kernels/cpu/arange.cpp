#include "kernels/cpu/arange.h"

#include <holdfast/array.h>

namespace holdfast::kernels::cpu {

void arange(Dtype::Val dtype, double start, double step, int64_t begin, int64_t end, void* output) {
  dispatch_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = static_cast<T*>(output);
    for (int64_t i = begin; i < end; ++i) {
      // The first one may not be computed: the step may be infinite.
      double value = start + (i == 0 ? 0.0 : static_cast<double>(i) * step);
      target[i] = convert_element<T>(value);
    }
  });
}

}  // namespace holdfast::kernels::cpu
