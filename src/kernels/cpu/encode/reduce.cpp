#include "kernels/cpu/reduce.h"

#include <optional>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/softmax.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {
namespace {

// No lambda: the plan is made in it, not moved into it.
struct SoftmaxBody {
  SoftmaxPlan plan;
  Bound source, target;
  void operator()(const NativeContext& context, int64_t begin, int64_t end) const {
    for (int64_t task = begin; task < end; ++task)
      plan.run(task, context.data(source), context.data(target));
  }
};

}  // namespace

void CpuBackend::reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes,
                        const array& in, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  ReducePlan plan(op, in.dtype(), out.dtype(), span_of(in.shape()), span_of(in.strides()), axes);
  const int stages = plan.stages();
  std::optional<array> scratch;
  if (stages > 1) scratch = make_temporary(encoder, plan.scratch_bytes());
  for (int stage = 0; stage < stages; ++stage) {
    const bool is_first = stage == 0, is_last = stage == stages - 1;
    Bound source, target, work;
    if (is_first) source = encoder.input(in);
    if (scratch) work = is_first ? encoder.output(*scratch) : encoder.input(*scratch);
    if (is_last) target = encoder.output(out);
    const size_t bytes = is_first ? in.nbytes() : plan.scratch_bytes();
    const int64_t tasks = plan.tasks(stage);
    encoder.native(encoder.op(), tasks, static_cast<int64_t>(bytes),
                   [=, plan = is_last ? std::move(plan) : plan](const NativeContext& context,
                                                                int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       plan.run(stage, task, context.data(source), context.data(target),
                                context.data(work));
                     }
                   });
  }
}

void CpuBackend::softmax(Encoder& encoder, const std::vector<int>& axes, const array& in,
                         array& out) {
  allocate_or_take(encoder, in, out);
  if (out.size() == 0) return;
  Bound source = encoder.input(in), target = encoder.output(out);
  SoftmaxBody body{{in.dtype(), span_of(in.shape()), span_of(in.strides()), axes}, source, target};
  const int64_t tasks = body.plan.tasks();
  encoder.native(encoder.op(), tasks, 4 * static_cast<int64_t>(out.nbytes()), std::move(body));
}

}  // namespace holdfast::kernels::cpu
