#include "kernels/cpu/fft.h"

#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/plan/layout.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {

void CpuBackend::fft(Encoder& encoder, const FftSettings& settings, const array& in, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array dense = make_dense(encoder, in);
  Bound source = encoder.input(dense), target = encoder.output(out);
  const int64_t in_length = dense.shape(-1);
  const int64_t in_bytes = in_length * static_cast<int64_t>(dense.itemsize());
  const int64_t out_bytes = out.shape(-1) * static_cast<int64_t>(out.itemsize());
  const int64_t rows = static_cast<int64_t>(out.nbytes()) / out_bytes;
  const bool by_halves =
      settings.length % 2 == 0 && (settings.kind == FftKind::from_half ||
                                   (settings.kind == FftKind::to_half && in_length % 2 == 0));
  auto plan = fft_plan(by_halves ? settings.length / 2 : settings.length, by_halves);
  const int64_t together = std::min(rows, plan->rows_at_once());
  encoder.native(
      encoder.op(), divide_up(rows, together), static_cast<int64_t>(out.nbytes()) * 8,
      [=](const NativeContext& context, int64_t begin, int64_t end) {
        const char* from = context.data(source);
        char* to = context.data(target);
        const FftPlan* used = plan.get();
        std::shared_ptr<const FftPlan> other;
        // Real elements go in pairs, if pairs can be read as such.
        if (settings.kind == FftKind::to_half && by_halves &&
            reinterpret_cast<uintptr_t>(from) % (2 * sizeof(float)) != 0) {
          other = fft_plan(settings.length, false);
          used = other.get();
        }
        // A divisor of `together`, or `together` is all rows.
        const int64_t at_once = std::min(together, used->rows_at_once());
        TaskScratch scratch(static_cast<size_t>(at_once * used->row_floats()) * sizeof(float));
        const int64_t last = std::min(rows, end * together);
        for (int64_t row = begin * together; row < last; row += at_once) {
          transform_rows(*used,
                         {settings.kind, settings.inverse, settings.scale, from + row * in_bytes,
                          in_length, to + row * out_bytes, std::min(at_once, last - row), in_bytes},
                         static_cast<float*>(scratch.get()));
        }
      });
}

}  // namespace holdfast::kernels::cpu
