#include "kernels/cpu/recurrence.h"

#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/plan/layout.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {

void CpuBackend::recurrence(Encoder& encoder, int axis, bool reverse, const array& factors,
                            const array& terms, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array dense_factors = make_dense(encoder, factors);
  array dense_terms = make_dense(encoder, terms);
  Bound left = encoder.input(dense_factors), right = encoder.input(dense_terms),
        target = encoder.output(out);
  const int64_t length = out.shape(axis);
  int64_t inner = 1;
  for (int i = axis + 1; i < static_cast<int>(out.ndim()); ++i) inner *= out.shape(i);
  const int64_t lines = static_cast<int64_t>(out.size()) / length;
  const int64_t grain = std::max<int64_t>(1, 4096 / length);
  const Dtype::Val dtype = out.dtype();
  encoder.native(encoder.op(), divide_up(lines, grain), 8 * static_cast<int64_t>(out.nbytes()),
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   run_recurrence(dtype, context.data(left), context.data(right),
                                  context.data(target), length, inner, reverse, begin * grain,
                                  std::min(lines, end * grain));
                 });
}

}  // namespace holdfast::kernels::cpu
