#include <algorithm>

#include "kernels/cpu/combine.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dynamic_start.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

namespace {

// A part of an array and what meets it, walked together.
struct RegionUpdate {
  static constexpr int64_t grain = 1 << 15;

  JointLayout layout;  // views: the region, the update
  CollapsedLayout region, update;
  size_t item;
  BlockCombine combine;
  bool replaces;

  RegionUpdate(const Shape& shape, const Strides& region_strides, const Strides& update_strides,
               Dtype dtype, UpdateMode mode)
      : item(dtype.size()), combine(mode, dtype), replaces(mode == UpdateMode::replace) {
    std::span<const int64_t> views[] = {span_of(region_strides), span_of(update_strides)};
    layout = collapse_jointly(span_of(shape), views);
    region = layout.view(0);
    update = layout.view(1);
  }

  int64_t tasks() const { return divide_up(layout.size, grain); }

  // Tasks [first_task, last_task).
  void run(char* to, const char* from, int64_t first_task, int64_t last_task) const {
    constexpr int64_t direct_bytes = 256;  // runs from this size need no block between
    constexpr size_t block_bytes = 4096;
    const int64_t begin = first_task * grain, end = std::min(layout.size, last_task * grain);
    int64_t bytes = static_cast<int64_t>(item);
    bool is_dense =
        layout.shape.empty() || (layout.strides[0].back() == 1 && layout.strides[1].back() == 1);
    if (is_dense && (layout.shape.empty() || layout.shape.back() * bytes >= direct_bytes)) {
      Odometer target(region, begin), source(update, begin);
      for (int64_t i = begin; i < end;) {
        int64_t run = std::min(target.run(), end - i);
        combine(to + target.offset() * bytes, from + source.offset() * bytes, run);
        target.advance(run);
        source.advance(run);
        i += run;
      }
      return;
    }
    alignas(64) char taken[block_bytes], old[block_bytes];
    int64_t block = static_cast<int64_t>(block_bytes / item);
    for (int64_t i = begin; i < end; i += block) {
      int64_t last = std::min(end, i + block);
      gather_range(from, update, item, i, last, taken);
      if (replaces) {
        scatter_range(taken, region, item, i, last, to);
      } else {
        gather_range(to, region, item, i, last, old);
        combine(old, taken, last - i);
        scatter_range(old, region, item, i, last, to);
      }
    }
  }
};

}  // namespace

void CpuBackend::slice_update(Encoder& encoder, const SliceRegion& region, UpdateMode mode,
                              const array& update, const array* start, array& out) {
  const int64_t item = static_cast<int64_t>(out.itemsize());
  RegionUpdate plan(update.shape(), region.strides, update.strides(), out.dtype(), mode);
  const int64_t tasks = plan.tasks(), work = 2 * plan.layout.size * item;
  const Bound source = encoder.input(update), starts = start ? encoder.input(*start) : Bound{};
  encoder.input(out);
  const Bound target = encoder.output(out);
  if (!start) {
    encoder.native(encoder.op(), tasks, work,
                   [=, offset = region.offset * item, plan = std::move(plan)](
                       const NativeContext& context, int64_t begin, int64_t end) {
                     plan.run(context.data(target) + offset, context.data(source), begin, end);
                   });
    return;
  }
  DynamicStart slice("slice_update", region.axes, out.shape(), region.strides, update.shape(),
                     *start);
  // At least one task, so that a bad start is an error for empty updates too.
  encoder.native(encoder.op(), std::max<int64_t>(1, tasks), work,
                 [=, slice = std::move(slice), plan = std::move(plan)](const NativeContext& context,
                                                                       int64_t begin, int64_t end) {
                   const int64_t offset = slice.offset(context.data(starts));
                   if (plan.layout.size == 0) return;
                   plan.run(context.data(target) + offset * item, context.data(source), begin, end);
                 });
}

}  // namespace holdfast::kernels::cpu
