#include "kernels/cpu/convolution.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {

void CpuBackend::convolution(Encoder& encoder, const ConvolutionShape& shape, const array& in,
                             const array& weights, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array input = make_dense(encoder, in);
  array dense_weights = make_dense(encoder, weights);
  ConvolutionPlan plan(out.dtype(), shape);
  Bound from = encoder.input(input), with = encoder.input(dense_weights), to = encoder.output(out);
  const int64_t depth = static_cast<int64_t>(weights.size()) / shape.outputs;
  const int64_t work =
      static_cast<int64_t>(out.size()) * depth / 8 + static_cast<int64_t>(out.nbytes());
  const int64_t tasks = plan.tasks();
  encoder.native(
      encoder.op(), tasks, work,
      [=, plan = std::move(plan)](const NativeContext& context, int64_t begin, int64_t end) {
        TaskScratch scratch(plan.task_scratch_bytes());
        for (int64_t task = begin; task < end; ++task) {
          plan.run(task, context.data(from), context.data(with), context.data(to), scratch.get());
        }
      });
}

}  // namespace holdfast::kernels::cpu
