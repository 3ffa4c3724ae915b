#include "kernels/cpu/matmul.h"

#include <optional>
#include <stdexcept>

#include "base/text.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

void CpuBackend::matmul(Encoder& encoder, const array& a, const array& b, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const int64_t m = a.shape(-2), k = a.shape(-1), n = b.shape(-1);
  Shape batch(out.shape().begin(), out.shape().end() - 2);
  auto batch_strides = [&](const array& x) {
    return broadcast_strides(Shape(x.shape().begin(), x.shape().end() - 2),
                             Strides(x.strides().begin(), x.strides().end() - 2), batch);
  };
  Strides batch_a = batch_strides(a), batch_b = batch_strides(b);
  MatmulPlan plan(a.dtype(), span_of(batch), m, n, k,
                  {span_of(batch_a), a.strides(-2), a.strides(-1)},
                  {span_of(batch_b), b.strides(-2), b.strides(-1)}, true, out.dtype() != a.dtype());
  std::optional<array> parts;
  if (size_t bytes = plan.part_bytes()) parts = make_temporary(encoder, bytes);
  Bound left = encoder.input(a), right = encoder.input(b);
  Bound target = encoder.output(parts ? *parts : out);
  // A multiplication weighs about as much as an eighth of a byte moved.
  int64_t work = static_cast<int64_t>(out.size()) * k / 8 + static_cast<int64_t>(out.nbytes());
  encoder.native(encoder.op(), plan.tasks(), work,
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   TaskScratch scratch(plan.task_scratch_bytes());
                   for (int64_t task = begin; task < end; ++task) {
                     plan.run(task, context.data(left), context.data(right), context.data(target),
                              scratch.get());
                   }
                 });
  if (!parts) return;
  Bound from = encoder.input(*parts), to = encoder.output(out);
  encoder.native(encoder.op(), plan.products(), static_cast<int64_t>(plan.part_bytes()) / 4,
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   plan.add_parts(begin, end, context.data(from), context.data(to));
                 });
}

void CpuBackend::segmented_matmul(Encoder& encoder, const array& a, const array& b,
                                  const array& segments, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array pairs = make_dense(encoder, segments);
  Bound left = encoder.input(a), right = encoder.input(b), limits = encoder.input(pairs);
  Bound target = encoder.output(out);
  const int64_t m = a.shape(0), n = b.shape(1), k = a.shape(1);
  MatrixStack from{{}, a.strides(0), a.strides(1)}, with{{}, b.strides(0), b.strides(1)};
  const auto item = static_cast<int64_t>(out.itemsize());
  const Dtype::Val dtype = out.dtype();
  encoder.native(encoder.op(), static_cast<int64_t>(pairs.size()) / 2, m * n * k / 4 + m * n * item,
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const auto* pair = context.data<const uint32_t>(limits) + 2 * i;
                     const int64_t start = pair[0], stop = pair[1];
                     if (start > stop || stop > k) {
                       throw std::out_of_range(text("[segmented_mm] expected segments inside 0 to ",
                                                    k, ", got ", start, " to ", stop));
                     }
                     MatmulPlan plan(dtype, {}, m, n, stop - start, from, with);
                     TaskScratch scratch(plan.task_scratch_bytes());
                     for (int64_t task = 0; task < plan.tasks(); ++task) {
                       plan.run(task, context.data(left) + start * from.column_stride * item,
                                context.data(right) + start * with.row_stride * item,
                                context.data(target) + i * m * n * item, scratch.get());
                     }
                   }
                 });
}

}  // namespace holdfast::kernels::cpu
