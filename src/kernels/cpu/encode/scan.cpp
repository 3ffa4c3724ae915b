#include "kernels/cpu/scan.h"

#include <optional>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {

void CpuBackend::scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out) {
  // Scans run in place: other layouts are made dense first, in the memory of the result.
  const bool is_dense = in.flags().row_contiguous;
  if (is_dense) {
    allocate_or_take(encoder, in, out);
  } else {
    encode_copy(encoder, in, out);
  }
  if (out.size() == 0) return;
  const array& from = is_dense ? in : out;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < kind.axis; ++i) outer *= out.shape(i);
  for (int i = kind.axis + 1; i < static_cast<int>(out.ndim()); ++i) inner *= out.shape(i);
  ScanPlan plan(kind.op, out.dtype(), outer, out.shape(kind.axis), inner, kind.reverse,
                kind.inclusive);
  std::optional<array> scratch;
  if (plan.scratch_bytes() > 0) scratch = make_temporary(encoder, plan.scratch_bytes());
  for (int64_t phase = 0; phase < plan.phases(); ++phase) {
    Bound source = encoder.input(from), target = encoder.output(out), states;
    if (scratch) states = encoder.output(*scratch);
    encoder.native(encoder.op(), plan.tasks(phase), plan.work(phase),
                   [=](const NativeContext& context, int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       plan.run(phase, task, context.data(source), context.data(target),
                                context.data(states));
                     }
                   });
  }
}

}  // namespace holdfast::kernels::cpu
