#include "kernels/cpu/rope.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {
namespace {

// The heads: all dimensions between the first and the last two.
CollapsedLayout heads_of(const array& x) {
  size_t count = x.ndim() - 3;
  return collapse(span_of(x.shape()).subspan(1, count), span_of(x.strides()).subspan(1, count));
}

}  // namespace

void CpuBackend::rope(Encoder& encoder, const RopeSettings& settings, const array& in,
                      const array* offsets, const array* frequencies, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array x = make_rows_dense(encoder, in);
  if (heads_of(x).dimensions() > 1) x = make_dense(encoder, x);
  std::optional<array> offset_row, frequency_row;
  if (offsets) offset_row = make_dense(encoder, *offsets);
  if (frequencies) frequency_row = make_dense(encoder, *frequencies);
  CollapsedLayout heads = heads_of(x);
  RopeShape shape{x.shape(0),   heads.size,   x.shape(-2),
                  x.shape(-1),  x.strides(0), heads.strides.empty() ? 0 : heads.strides[0],
                  x.strides(-2)};
  const int64_t stride = offsets && offsets->size() > 1 ? 1 : 0;
  if (stride == 0 && shape.batch_stride == shape.heads * shape.head_stride) {
    // The angles of all batches are the same: they count as heads.
    shape.heads *= shape.batch;
    shape.batch = 1;
  }
  RopePlan plan(x.dtype(), shape, settings.dims / 2, settings.traditional, settings.base,
                static_cast<double>(settings.scale));
  Bound source = encoder.input(x), given, rates;
  if (offset_row) given = encoder.input(*offset_row);
  if (frequency_row) rates = encoder.input(*frequency_row);
  Bound target = encoder.output(out);
  const int64_t fixed = settings.offset.value_or(0);
  const int64_t tasks = plan.tasks();
  encoder.native(
      encoder.op(), tasks, 3 * static_cast<int64_t>(out.nbytes()),
      [=, plan = std::move(plan)](const NativeContext& context, int64_t begin, int64_t end) {
        TaskScratch scratch(plan.task_scratch_bytes());
        const auto* first = context.data<int64_t>(given);
        for (int64_t task = begin; task < end; ++task) {
          plan.run(task, context.data(source), first != nullptr ? first : &fixed, stride,
                   context.data<float>(rates), context.data(target), scratch.get());
        }
      });
}

}  // namespace holdfast::kernels::cpu
