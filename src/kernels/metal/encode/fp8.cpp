#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {

void MetalBackend::convert_fp8(Encoder& encoder, const array& in, array& out) {
  constexpr int64_t per_thread = 16;
  encoder.allocate(out);
  if (out.size() == 0) return;
  const array dense = make_dense(encoder, in);
  Launch(encoder, "fp8", out.dtype() == uint8 ? "to_fp8" : "from_fp8")
      .input(dense)
      .output(out)
      .value(uint64_t{out.size()})
      .value(is_aligned(dense, 16))
      .over(divide_up(static_cast<int64_t>(out.size()), per_thread));
}

}  // namespace holdfast::kernels::metal
