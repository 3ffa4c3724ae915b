#include "kernels/cpu/norm.h"

#include <optional>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

void CpuBackend::norm(Encoder& encoder, NormKind kind, float epsilon, const array& in,
                      const array* weight, const array* bias, array& out) {
  if (out.size() == 0) return encoder.allocate(out);
  array x = make_rows_dense(encoder, in);
  std::optional<array> weight_row, bias_row;
  if (weight) weight_row = make_dense(encoder, *weight);
  if (bias) bias_row = make_dense(encoder, *bias);
  // A temporary copy is not donatable either: its memory is reused by later ops of the queue.
  if (in.flags().row_contiguous) {
    allocate_or_take(encoder, in, out);
  } else {
    encoder.allocate(out);
  }
  NormPlan plan(kind, x.dtype(), span_of(x.shape()), span_of(x.strides()),
                static_cast<double>(epsilon));
  Bound source = encoder.input(x), weights, biases;
  if (weight_row) weights = encoder.input(*weight_row);
  if (bias_row) biases = encoder.input(*bias_row);
  Bound target = encoder.output(out);
  const int64_t tasks = plan.tasks();
  encoder.native(
      encoder.op(), tasks, 3 * static_cast<int64_t>(out.nbytes()),
      [=, plan = std::move(plan)](const NativeContext& context, int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          plan.run(task, context.data(source), context.data(weights), context.data(biases),
                   context.data(target));
        }
      });
}

}  // namespace holdfast::kernels::cpu
