#include <algorithm>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dynamic_start.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

void CpuBackend::dynamic_slice(Encoder& encoder, std::span<const int> axes, const array& in,
                               const array& start, array& out) {
  encoder.allocate(out);
  const Bound source = encoder.input(in), starts = encoder.input(start);
  const Bound target = encoder.output(out);
  DynamicStart slice("slice", axes, in.shape(), in.strides(), out.shape(), start);
  CollapsedLayout layout = collapse(span_of(out.shape()), span_of(in.strides()));
  const auto item = static_cast<int64_t>(in.itemsize());
  const int64_t grain = copy_grain(layout, in.itemsize());
  // At least one task, so that a bad start is an error for empty slices too.
  encoder.native(encoder.op(), std::max<int64_t>(1, divide_up(layout.size, grain)),
                 2 * static_cast<int64_t>(out.nbytes()),
                 [=, slice = std::move(slice), layout = std::move(layout)](
                     const NativeContext& context, int64_t begin, int64_t end) {
                   const int64_t offset = slice.offset(context.data(starts));
                   const int64_t first = begin * grain, last = std::min(layout.size, end * grain);
                   if (first >= last) return;
                   gather_range(context.data(source) + offset * item, layout,
                                static_cast<size_t>(item), first, last,
                                context.data(target) + first * item);
                 });
}

}  // namespace holdfast::kernels::cpu
