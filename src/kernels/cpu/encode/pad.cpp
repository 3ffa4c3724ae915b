#include <algorithm>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

namespace {

// Rows run along the last axis that grows, with everything behind it: each is a piece of the input
// between two borders, or border altogether.
struct PadPlan {
  Shape outer, outer_in, outer_low;  // axes before that one: of the output, of the input, shifts
  CollapsedLayout layout;            // of the input
  int64_t row, row_in, row_low;      // in elements
  size_t item;

  PadPlan(const array& in, const array& out, const Shape& low)
      : layout(collapse(span_of(in.shape()), span_of(in.strides()))), item(out.itemsize()) {
    size_t last = out.ndim();
    while (last > 1 && out.shape()[last - 1] == in.shape()[last - 1]) --last;
    int64_t inner = 1;
    for (size_t i = last; i < out.ndim(); ++i) inner *= out.shape()[i];
    const size_t at = last - 1;
    const auto count = static_cast<int64_t>(at);
    outer = Shape(out.shape().begin(), out.shape().begin() + count);
    outer_in = Shape(in.shape().begin(), in.shape().begin() + count);
    outer_low = Shape(low.begin(), low.begin() + count);
    row = out.shape()[at] * inner;
    row_in = in.shape()[at] * inner;
    row_low = low[at] * inner;
  }

  void run(const char* in, const void* value, char* out, int64_t begin, int64_t end) const {
    int64_t bytes = static_cast<int64_t>(item);
    for (int64_t r = begin; r < end; ++r) {
      char* to = out + r * row * bytes;
      int64_t rest = r, in_row = 0, scale = 1;
      bool inside = row_in > 0;
      for (size_t i = outer.size(); i-- > 0;) {
        int64_t at = rest % outer[i] - outer_low[i];
        rest /= outer[i];
        inside = inside && at >= 0 && at < outer_in[i];
        in_row += at * scale;
        scale *= outer_in[i];
      }
      if (!inside) {
        fill_block(to, value, item, row);
        continue;
      }
      fill_block(to, value, item, row_low);
      gather_range(in, layout, item, in_row * row_in, (in_row + 1) * row_in, to + row_low * bytes);
      fill_block(to + (row_low + row_in) * bytes, value, item, row - row_low - row_in);
    }
  }
};

}  // namespace

void CpuBackend::pad(Encoder& encoder, const Shape& low, const array& in, const array& value,
                     array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const Bound source = encoder.input(in), border = encoder.input(value);
  const Bound target = encoder.output(out);
  PadPlan plan(in, out, low);
  const int64_t rows = static_cast<int64_t>(out.size()) / plan.row;
  const int64_t grain =
      std::max<int64_t>(1, (int64_t{1} << 17) / (plan.row * static_cast<int64_t>(plan.item)));
  encoder.native(
      encoder.op(), divide_up(rows, grain), 2 * static_cast<int64_t>(out.nbytes()),
      [=, plan = std::move(plan)](const NativeContext& context, int64_t begin, int64_t end) {
        plan.run(context.data(source), context.data(border), context.data(target), begin * grain,
                 std::min(rows, end * grain));
      });
}

}  // namespace holdfast::kernels::cpu
