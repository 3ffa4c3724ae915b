#include "kernels/cpu/copy.h"

#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

CpuBackend& CpuBackend::get() {
  static auto* backend = new CpuBackend;  // as long as the process: queues may use it at exit
  return *backend;
}

void CpuBackend::copy(Encoder& encoder, const array& in, array& out) {
  Bound source = encoder.input(in), target = encoder.output(out);
  const auto item = static_cast<int64_t>(in.itemsize());
  CollapsedLayout layout = collapse(span_of(in.shape()), span_of(in.strides()));
  int64_t size = layout.size;
  int64_t grain = copy_grain(layout, in.itemsize());
  bool dense = layout.is_dense();
  bool stream = dense && out.nbytes() > stream_threshold();
  encoder.native(
      encoder.op(), divide_up(size, grain), 2 * static_cast<int64_t>(out.nbytes()),
      [=, layout = std::move(layout)](const NativeContext& context, int64_t begin, int64_t end) {
        const char* from = context.data(source);
        char* to = context.data(target);
        int64_t first = begin * grain;
        int64_t last = std::min(size, end * grain);
        if (dense) {
          copy_dense(to + first * item, from + first * item,
                     static_cast<size_t>((last - first) * item), stream);
        } else {
          gather_range(from, layout, static_cast<size_t>(item), first, last, to + first * item);
        }
      });
}

}  // namespace holdfast::kernels::cpu
