#include "kernels/cpu/attention.h"

#include <optional>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {

void CpuBackend::attention(Encoder& encoder, float scale, bool causal,
                           const AttentionInputs& inputs, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array queries = make_rows_dense(encoder, inputs.queries);
  array keys = make_rows_dense(encoder, inputs.keys);
  array values = make_rows_dense(encoder, inputs.values);
  AttentionShape shape =
      attention_shape({queries, keys, values, inputs.mask, nullptr}, scale, causal);
  std::optional<array> sinks;
  if (inputs.sinks) sinks = make_dense(encoder, *inputs.sinks);
  AttentionPlan plan(out.dtype(), shape);
  std::optional<array> partial;
  if (plan.partial_bytes() > 0) partial = make_temporary(encoder, plan.partial_bytes());
  const int64_t work = static_cast<int64_t>(queries.size()) * shape.keys / 4 +
                       static_cast<int64_t>(keys.nbytes() + values.nbytes());
  const int stages = plan.stages();
  for (int stage = 0; stage < stages; ++stage) {
    const bool is_last = stage == stages - 1;
    Bound query, key, value, mask, sink, target, work_space;
    if (stage == 0) {
      query = encoder.input(queries);
      key = encoder.input(keys);
      value = encoder.input(values);
      if (inputs.mask) mask = encoder.input(*inputs.mask);
    } else if (partial) {
      work_space = encoder.input(*partial);
    }
    if (is_last) {
      if (sinks) sink = encoder.input(*sinks);
      target = encoder.output(out);
    } else if (partial) {
      work_space = encoder.output(*partial);
    }
    const int64_t tasks = plan.tasks(stage);
    if (tasks == 0) continue;
    // What is combined has just been written: no memory to wait for.
    const int64_t amount = stage == 0 ? work : static_cast<int64_t>(plan.partial_bytes()) / 4;
    encoder.native(
        encoder.op(), tasks, amount, [=](const NativeContext& context, int64_t begin, int64_t end) {
          TaskScratch scratch(stage == 0 ? plan.task_scratch_bytes() : 0);
          plan.run(stage, begin, end,
                   {context.data(query), context.data(key), context.data(value), context.data(mask),
                    context.data(sink), context.data(target), context.data(work_space)},
                   scratch.get());
        });
  }
}

}  // namespace holdfast::kernels::cpu
