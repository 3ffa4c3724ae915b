#include <algorithm>

#include "kernels/cpu/arange.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/threefry.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

void CpuBackend::fill(Encoder& encoder, const array& value, array& out) {
  constexpr int64_t bytes_per_task = 1 << 19;
  encoder.allocate(out);
  if (out.size() == 0) return;
  Bound source = encoder.input(value), target = encoder.output(out);
  const auto item = static_cast<int64_t>(out.itemsize());
  const auto size = static_cast<int64_t>(out.size());
  const int64_t grain = bytes_per_task / item;
  const bool stream = out.nbytes() > stream_threshold();
  encoder.native(encoder.op(), divide_up(size, grain), static_cast<int64_t>(out.nbytes()),
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   int64_t first = begin * grain, last = std::min(size, end * grain);
                   fill_dense(context.data(target) + first * item, context.data(source),
                              static_cast<size_t>(item), last - first, stream);
                 });
}

void CpuBackend::arange(Encoder& encoder, double start, double step, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  Bound target = encoder.output(out);
  constexpr int64_t grain = 1 << 14;
  const auto size = static_cast<int64_t>(out.size());
  const Dtype::Val dtype = out.dtype();
  encoder.native(encoder.op(), divide_up(size, grain), 4 * static_cast<int64_t>(out.nbytes()),
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   cpu::arange(dtype, start, step, begin * grain, std::min(size, end * grain),
                               context.data(target));
                 });
}

void CpuBackend::random_bits(Encoder& encoder, const array& key, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  Bound words = encoder.input(key), target = encoder.output(out);
  const auto bytes = static_cast<int64_t>(out.nbytes());
  RandomBitsPlan plan(collapse(span_of(key.shape()), span_of(key.strides())), bytes);
  const int64_t tasks = plan.tasks();
  // Twenty rounds for eight bytes: worth several bytes moved.
  encoder.native(
      encoder.op(), tasks, 8 * bytes,
      [=, plan = std::move(plan)](const NativeContext& context, int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          plan.run(task, context.data<uint32_t>(words), context.data(target));
        }
      });
}

}  // namespace holdfast::kernels::cpu
