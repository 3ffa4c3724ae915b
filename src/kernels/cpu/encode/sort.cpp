#include "kernels/cpu/sort.h"

#include <algorithm>
#include <optional>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

void CpuBackend::sort(Encoder& encoder, const SortKind& kind, const array& in, array& out) {
  std::optional<array> dense;
  if (out.size() > 0 && !in.flags().row_contiguous) {
    dense.emplace(in.shape(), in.dtype(), nullptr, std::vector<array>{});
    encode_copy(encoder, in, *dense);
  }
  if (kind.is_arg) {
    encoder.allocate(out);
  } else if (dense) {
    share(*dense, out, dense->strides());
  } else {
    allocate_or_take(encoder, in, out);
  }
  if (out.size() == 0) return;
  const array& from = dense ? *dense : in;
  const int64_t length = out.shape(-1);
  SortPlan plan(kind, from.dtype(), static_cast<int64_t>(out.size()) / length, length);
  std::optional<array> scratch;
  if (plan.scratch_bytes() > 0) scratch = make_temporary(encoder, plan.scratch_bytes());
  for (int64_t phase = 0; phase < plan.phases(); ++phase) {
    Bound source = encoder.input(from), target = encoder.output(out), memory;
    if (scratch) memory = encoder.output(*scratch);
    encoder.native(encoder.op(), plan.tasks(phase), plan.work(phase),
                   [=](const NativeContext& context, int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       plan.run(phase, task, context.data(source), context.data(target),
                                context.data(memory));
                     }
                   });
  }
}

void CpuBackend::search_sorted(Encoder& encoder, bool right, const array& sorted,
                               const array& values, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  Bound sequence = encoder.input(sorted), wanted = encoder.input(values),
        target = encoder.output(out);
  constexpr int64_t grain = 1 << 10;
  CollapsedLayout layout = collapse(span_of(values.shape()), span_of(values.strides()));
  const size_t item = values.itemsize();
  const Dtype::Val dtype = values.dtype();
  encoder.native(
      encoder.op(), divide_up(layout.size, grain), layout.size * 128,
      [=, count = int64_t{sorted.shape(0)}, stride = sorted.strides(0), layout = std::move(layout)](
          const NativeContext& context, int64_t begin, int64_t end) {
        alignas(64) char block[grain * 8];
        for (int64_t task = begin; task < end; ++task) {
          int64_t first = task * grain, last = std::min(layout.size, first + grain);
          gather_range(context.data(wanted), layout, item, first, last, block);
          cpu::search_sorted(dtype, context.data(sequence), count, stride, block, last - first,
                             right, context.data<uint32_t>(target) + first);
        }
      });
}

}  // namespace holdfast::kernels::cpu
