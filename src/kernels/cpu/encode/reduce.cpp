#include "kernels/cpu/reduce.h"

#include <optional>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/softmax.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {
namespace {

// No lambdas: plans are made in them, not moved into them.
struct ReduceBody {
  ReducePlan plan;
  int stage = 0;
  Bound source = {}, target = {}, scratch = {};
  void operator()(const NativeContext& context, int64_t begin, int64_t end) const {
    for (int64_t task = begin; task < end; ++task) {
      plan.run(stage, task, context.data(source), context.data(target), context.data(scratch));
    }
  }
};
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
  ReduceBody body{{op, in.dtype(), out.dtype(), span_of(in.shape()), span_of(in.strides()), axes}};
  const ReducePlan& plan = body.plan;
  const int stages = plan.stages();
  std::optional<array> scratch;
  if (stages > 1) scratch = make_temporary(encoder, plan.scratch_bytes());
  for (int stage = 0; stage < stages; ++stage) {
    const bool is_first = stage == 0, is_last = stage == stages - 1;
    body.stage = stage;
    body.source = is_first ? encoder.input(in) : Bound{};
    if (scratch) body.scratch = is_first ? encoder.output(*scratch) : encoder.input(*scratch);
    if (is_last) body.target = encoder.output(out);
    const size_t bytes = is_first ? in.nbytes() : plan.scratch_bytes();
    const int64_t tasks = plan.tasks(stage);
    if (is_last)
      encoder.native(encoder.op(), tasks, static_cast<int64_t>(bytes), std::move(body));
    else
      encoder.native(encoder.op(), tasks, static_cast<int64_t>(bytes), body);
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
