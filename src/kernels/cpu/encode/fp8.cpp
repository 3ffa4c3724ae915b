#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/quantization.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {

void CpuBackend::convert_fp8(Encoder& encoder, const array& in, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  constexpr int64_t block = 4096;
  const array dense = make_dense(encoder, in);
  const Bound source = encoder.input(dense), target = encoder.output(out);
  const auto size = static_cast<int64_t>(out.size());
  encoder.native(encoder.op(), divide_up(size, block), size * 8,
                 [=, encodes = out.dtype() == uint8](const NativeContext& context, int64_t begin,
                                                     int64_t end) {
                   const int64_t first = begin * block, last = std::min(size, end * block);
                   if (encodes) {
                     const auto* from = context.data<const float>(source);
                     auto* to = context.data<uint8_t>(target);
                     for (int64_t i = first; i < last; ++i) to[i] = to_e4m3(from[i]);
                   } else {
                     const auto* from = context.data<const uint8_t>(source);
                     auto* to = context.data<float>(target);
                     for (int64_t i = first; i < last; ++i) to[i] = from_e4m3(from[i]);
                   }
                 });
}

}  // namespace holdfast::kernels::cpu
