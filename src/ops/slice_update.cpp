// Arrays with a part replaced or combined: slice_update and masked_scatter.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "kernels/cpu/combine.h"
#include "kernels/cpu/copy.h"
#include "ops/accumulate.h"
#include "ops/dynamic_shape.h"
#include "ops/views.h"

namespace holdfast {

namespace {

using kernels::cpu::UpdateMode;

const char* slice_function_of(UpdateMode mode) {
  constexpr const char* names[] = {"slice_update", "slice_update_add", "slice_update_prod",
                                   "slice_update_max", "slice_update_min"};
  return names[static_cast<size_t>(mode)];
}

// A part of an array and what meets it, walked together.
struct RegionUpdate {
  kernels::JointLayout layout;  // views: the region, the update
  kernels::CollapsedLayout region, update;
  size_t item;
  kernels::cpu::BlockCombine combine;
  bool replaces;

  RegionUpdate(const Shape& shape, const Strides& region_strides, const Strides& update_strides,
               Dtype dtype, UpdateMode mode)
      : item(dtype.size()), combine(mode, dtype), replaces(mode == UpdateMode::replace) {
    std::span<const int64_t> views[] = {span_of(region_strides), span_of(update_strides)};
    layout = kernels::collapse_jointly(span_of(shape), views);
    region = layout.view(0);
    update = layout.view(1);
  }

  // Positions [begin, end).
  void run(char* to, const char* from, int64_t begin, int64_t end) const {
    constexpr int64_t direct_bytes = 256;  // runs from this size need no block between
    constexpr size_t block_bytes = 4096;
    int64_t bytes = static_cast<int64_t>(item);
    bool is_dense =
        layout.shape.empty() || (layout.strides[0].back() == 1 && layout.strides[1].back() == 1);
    if (is_dense && (layout.shape.empty() || layout.shape.back() * bytes >= direct_bytes)) {
      kernels::Odometer target(region, begin), source(update, begin);
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
      kernels::cpu::gather_range(from, update, item, i, last, taken);
      if (replaces) {
        kernels::cpu::scatter_range(taken, region, item, i, last, to);
      } else {
        kernels::cpu::gather_range(to, region, item, i, last, old);
        combine(old, taken, last - i);
        kernels::cpu::scatter_range(old, region, item, i, last, to);
      }
    }
  }
};

constexpr int64_t region_grain = 1 << 15;

class SliceUpdate final : public Recorded<SliceUpdate, Op>, public PartialUpdate {
 public:
  SliceUpdate(Stream stream, UpdateMode mode, Shape start, Shape steps)
      : Recorded(stream), mode_(mode), start_(std::move(start)), steps_(std::move(steps)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<SliceUpdate>(stream(), mode_, with_front(0, start_),
                                         with_front(1, steps_));
  }
  // No element of a slice is there twice.
  std::shared_ptr<Primitive> as_addition() override {
    if (mode_ != UpdateMode::add && mode_ != UpdateMode::replace) return nullptr;
    return std::make_shared<SliceUpdate>(stream(), UpdateMode::add, start_, steps_);
  }
  const char* name() const override { return "SliceUpdate"; }
  auto members() const { return std::tie(mode_, start_, steps_); }

 private:
  array region_of(const array& a, const Shape& shape);
  UpdateMode mode_;
  Shape start_, steps_;  // normalised
};

// inputs: the array, the update broadcast to the slice.
void SliceUpdate::encode(Encoder& encoder, const std::vector<array>& inputs,
                         std::vector<array>& outputs) {
  const array& update = inputs[1];
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  if (update.size() == 0) return;
  Strides strides = out.strides();
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += start_[i] * strides[i];
    strides[i] *= steps_[i];
  }
  RegionUpdate plan(update.shape(), strides, update.strides(), out.dtype(), mode_);
  encoder.input(update);
  encoder.input(out);
  encoder.output(out);
  char* target = out.data<char>() + offset * static_cast<int64_t>(out.itemsize());
  const char* source = update.data<char>();
  int64_t size = plan.layout.size;
  encoder.native(name(), (size + region_grain - 1) / region_grain,
                 2 * size * static_cast<int64_t>(out.itemsize()),
                 [=, plan = std::move(plan)](int64_t begin, int64_t end) {
                   plan.run(target, source, begin * region_grain,
                            std::min(size, end * region_grain));
                 });
}

// The slice that the update replaces.
array SliceUpdate::region_of(const array& a, const Shape& shape) {
  return make_node<Slice>(shape, a.dtype(), {a}, stream(), start_, steps_);
}

// The update, combined with what is there, replaces it.
std::vector<array> SliceUpdate::decomposed(const std::vector<array>& inputs) {
  const array &a = inputs[0], &update = inputs[1];
  if (mode_ == UpdateMode::replace) return {};
  array old = region_of(a, update.shape());
  array combined = mode_ == UpdateMode::add        ? add(old, update, stream())
                   : mode_ == UpdateMode::multiply ? multiply(old, update, stream())
                   : mode_ == UpdateMode::maximum  ? maximum(old, update, stream())
                                                   : minimum(old, update, stream());
  return {make_node<SliceUpdate>(a.shape(), a.dtype(), {a, combined}, stream(), UpdateMode::replace,
                                 start_, steps_)};
}

std::vector<array> SliceUpdate::vjp_rule(const std::vector<array>& primals,
                                         const std::vector<array>& cotangents,
                                         const std::vector<int>& argnums,
                                         const std::vector<array>&) {
  const array &a = primals[0], &update = primals[1];
  std::vector<array> result;
  for (int argnum : argnums) {
    result.push_back(argnum == 0
                         ? make_node<SliceUpdate>(a.shape(), a.dtype(),
                                                  {cotangents[0], zeros_like(update, stream())},
                                                  stream(), mode_, start_, steps_)
                         : region_of(cotangents[0], update.shape()));
  }
  return result;
}

// The start is known only when the op runs.
class DynamicSliceUpdate final : public Recorded<DynamicSliceUpdate, Op> {
 public:
  DynamicSliceUpdate(Stream stream, std::vector<int> axes)
      : Recorded(stream), axes_(std::move(axes)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    const Shape &shape = inputs[0].shape(), &update = inputs[1].shape();
    bool fits = true;
    for (size_t i = 0; i < shape.size(); ++i) {
      bool is_named = std::find(axes_.begin(), axes_.end(), static_cast<int>(i)) != axes_.end();
      fits = fits && (is_named ? update[i] <= shape[i] : update[i] == shape[i]);
    }
    if (!fits) {
      throw std::invalid_argument(
          text("[slice_update] an update of shape ", update, " does not fit into shape ", shape));
    }
    return {shape};
  }
  const char* name() const override { return "DynamicSliceUpdate"; }
  auto members() const { return std::tie(axes_); }

 private:
  std::vector<int> axes_;
};

void DynamicSliceUpdate::encode(Encoder& encoder, const std::vector<array>& inputs,
                                std::vector<array>& outputs) {
  const array& update = inputs[1];
  const array& start = inputs[2];  // int64
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  struct Axis {
    int64_t stride, room;
    int index;
  };
  std::vector<Axis> axes;
  for (int axis : axes_) {
    axes.push_back({out.strides(axis), out.shape(axis) - update.shape(axis), axis});
  }
  RegionUpdate plan(update.shape(), out.strides(), update.strides(), out.dtype(),
                    UpdateMode::replace);
  encoder.input(update);
  encoder.input(start);
  encoder.input(out);
  encoder.output(out);
  char* target = out.data<char>();
  const char* source = update.data<char>();
  const int64_t* starts = start.data<int64_t>();
  int64_t start_stride = start.ndim() == 0 ? 0 : start.strides(0);
  int64_t size = plan.layout.size, item = static_cast<int64_t>(out.itemsize());
  // At least one task, so that a bad start is an error for empty updates too.
  encoder.native(
      name(), std::max<int64_t>(1, (size + region_grain - 1) / region_grain), 2 * size * item,
      [=, axes = std::move(axes), plan = std::move(plan)](int64_t begin, int64_t end) {
        int64_t offset = 0;
        for (size_t i = 0; i < axes.size(); ++i) {
          int64_t first = starts[static_cast<int64_t>(i) * start_stride];
          if (first < 0 || first > axes[i].room) {
            throw std::runtime_error(text("[slice_update] start ", first, " of axis ",
                                          axes[i].index, " must be between 0 and ", axes[i].room));
          }
          offset += first * axes[i].stride;
        }
        int64_t last = std::min(size, end * region_grain);
        if (begin * region_grain < last) {
          plan.run(target + offset * item, source, begin * region_grain, last);
        }
      });
}

std::vector<array> DynamicSliceUpdate::vjp_rule(const std::vector<array>& primals,
                                                const std::vector<array>& cotangents,
                                                const std::vector<int>& argnums,
                                                const std::vector<array>&) {
  const array &update = primals[1], &start = primals[2];
  std::vector<array> result;
  for (int argnum : argnums) {
    result.push_back(argnum == 0 ? slice_update(cotangents[0], zeros_like(update, stream()), start,
                                                axes_, stream())
                                 : slice(cotangents[0], start, axes_, update.shape(), stream()));
  }
  return result;
}

// One start for all is one update of all; more are as many updates.
std::pair<std::vector<array>, std::vector<int>> DynamicSliceUpdate::vmap_rule(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  if (axes[2] >= 0) return {};
  int size = axes[0] >= 0 ? inputs[0].shape(axes[0]) : inputs[1].shape(axes[1]);
  array a = with_mapped_axis(inputs[0], axes[0], size, stream());
  array update = with_mapped_axis(inputs[1], axes[1], size, stream());
  return {{slice_update(a, update, inputs[2], one_further(axes_), stream())}, {0}};
}

array update_slice(UpdateMode mode, const array& src, const array& update, Shape start, Shape stop,
                   Shape strides, StreamOrDevice s) {
  const char* op = slice_function_of(mode);
  if (start.size() != src.ndim() || stop.size() != src.ndim() || strides.size() != src.ndim()) {
    throw std::invalid_argument(text("[", op,
                                     "] expected one start, stop and stride for each axis "
                                     "of shape ",
                                     src.shape(), ", got ", start, ", ", stop, " and ", strides));
  }
  Shape shape = src.shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (strides[i] == 0) {
      throw std::invalid_argument(text("[", op, "] strides must not be 0, got ", strides));
    }
    SliceRange range = normalized_range(start[i], stop[i], strides[i], src.shape()[i]);
    start[i] = range.start;
    shape[i] = range.size;
  }
  // A leading dimension of 1 more than the array has is dropped, as NumPy does.
  array taken = astype(update, src.dtype(), s);
  while (taken.ndim() > src.ndim() && taken.shape(0) == 1) taken = squeeze(taken, 0, s);
  if (broadcast_shapes_for(op, taken.shape(), shape) != shape) {
    throw std::invalid_argument(text("[", op, "] an update of shape ", update.shape(),
                                     " cannot be broadcast to the slice of shape ", shape));
  }
  if (shape == src.shape() && mode == UpdateMode::replace &&
      std::all_of(strides.begin(), strides.end(), [](ShapeElem step) { return step == 1; })) {
    return broadcast_here(taken, shape, s);
  }
  return make_node<SliceUpdate>(src.shape(), src.dtype(), {src, broadcast_here(taken, shape, s)}, s,
                                mode, std::move(start), std::move(strides));
}

}  // namespace

#define HOLDFAST_SLICE_UPDATE(name, mode)                                                        \
  array name(const array& src, const array& update, Shape start, Shape stop, Shape strides,      \
             StreamOrDevice s) {                                                                 \
    return update_slice(UpdateMode::mode, src, update, std::move(start), std::move(stop),        \
                        std::move(strides), s);                                                  \
  }                                                                                              \
  array name(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s) { \
    return update_slice(UpdateMode::mode, src, update, std::move(start), std::move(stop),        \
                        Shape(src.ndim(), 1), s);                                                \
  }
HOLDFAST_SLICE_UPDATE(slice_update, replace)
HOLDFAST_SLICE_UPDATE(slice_update_add, add)
HOLDFAST_SLICE_UPDATE(slice_update_prod, multiply)
HOLDFAST_SLICE_UPDATE(slice_update_max, maximum)
HOLDFAST_SLICE_UPDATE(slice_update_min, minimum)
#undef HOLDFAST_SLICE_UPDATE

array slice_update(const array& src, const array& update, const array& start, std::vector<int> axes,
                   StreamOrDevice s) {
  if (!issubdtype(start.dtype(), integer)) {
    throw std::invalid_argument(
        text("[slice_update] expected a start of integers, got ", start.dtype()));
  }
  if (start.ndim() > 1 || start.size() != axes.size()) {
    throw std::invalid_argument(
        text("[slice_update] expected a start with one value for each of "
             "the axes ",
             axes, ", got shape ", start.shape()));
  }
  checked_axes("slice_update", axes, src.ndim());
  for (int& axis : axes) axis = checked_axis("slice_update", axis, src.ndim());
  if (update.ndim() > src.ndim()) {
    throw std::invalid_argument(text("[slice_update] expected an update of at most ", src.ndim(),
                                     " dimensions, got shape ", update.shape()));
  }
  // Along the named axes the update says how much is replaced, along the others all is.
  Shape shape = src.shape();
  size_t missing = src.ndim() - update.ndim();
  for (int axis : axes) {
    size_t at = static_cast<size_t>(axis);
    shape[at] = at < missing ? 1 : update.shape()[at - missing];
    if (shape[at] > src.shape(axis)) {
      throw std::invalid_argument(text("[slice_update] an update of shape ", update.shape(),
                                       " does not fit into shape ", src.shape()));
    }
  }
  if (broadcast_shapes_for("slice_update", update.shape(), shape) != shape) {
    throw std::invalid_argument(text("[slice_update] an update of shape ", update.shape(),
                                     " cannot be broadcast to the slice of shape ", shape));
  }
  array taken = astype(update, src.dtype(), s);
  if (taken.shape() != shape) taken = broadcast_here(taken, shape, s);
  return make_node<DynamicSliceUpdate>(src.shape(), src.dtype(),
                                       {src, taken, astype(start, int64, s)}, s, std::move(axes));
}

// --- masked_scatter ---

namespace {

// Where the mask holds, the elements of the source one after the other.
class MaskedScatter final : public Recorded<MaskedScatter, Op> {
 public:
  using Recorded::Recorded;
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  const char* name() const override { return "MaskedScatter"; }
  auto members() const { return std::tie(); }
};

// inputs: the array, the mask of the same shape, the source (1-d, row-contiguous).
void MaskedScatter::encode(Encoder& encoder, const std::vector<array>& inputs,
                           std::vector<array>& outputs) {
  const array& mask = inputs[1];
  const array& source = inputs[2];
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  if (out.size() == 0) return;
  constexpr int64_t grain = 1 << 14;
  int64_t size = static_cast<int64_t>(out.size()), chunks = (size + grain - 1) / grain;
  array counts = make_temporary(encoder, static_cast<size_t>(chunks) * sizeof(int64_t));
  int64_t* before = counts.data<int64_t>();
  const bool* holds = mask.data<bool>();
  kernels::CollapsedLayout layout =
      kernels::collapse(span_of(mask.shape()), span_of(mask.strides()));
  // How many each chunk takes; then the chunks, each with what was taken before it.
  encoder.input(mask);
  encoder.output(counts);
  encoder.native(name(), chunks, size, [=](int64_t begin, int64_t end) {
    alignas(64) bool block[grain];
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      int64_t first = chunk * grain, last = std::min(size, first + grain);
      kernels::cpu::gather_range(holds, layout, 1, first, last, block);
      before[chunk] = std::accumulate(block, block + (last - first), int64_t{0});
    }
  });
  int64_t available = static_cast<int64_t>(source.size());
  encoder.output(counts);
  encoder.native(name(), 1, 0, [=](int64_t, int64_t) {
    int64_t total = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) total += std::exchange(before[chunk], total);
    if (total > available) {
      throw std::runtime_error(
          text("[masked_scatter] the mask takes ", total, " elements, the source has ", available));
    }
  });
  encoder.input(mask);
  encoder.input(source);
  encoder.input(counts);
  encoder.input(out);
  encoder.output(out);
  dispatch_item_size(out.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = reinterpret_cast<const T*>(source.data<char>());
    T* to = reinterpret_cast<T*>(out.data<char>());
    encoder.native(name(), chunks, size * static_cast<int64_t>(sizeof(T)) * 2,
                   [=](int64_t begin, int64_t end) {
                     alignas(64) bool block[grain];
                     for (int64_t chunk = begin; chunk < end; ++chunk) {
                       int64_t first = chunk * grain, last = std::min(size, first + grain);
                       kernels::cpu::gather_range(holds, layout, 1, first, last, block);
                       const T* next = from + before[chunk];
                       for (int64_t i = first; i < last; ++i) {
                         if (block[i - first]) to[i] = *next++;
                       }
                     }
                   });
  });
}

// Each element that the mask takes has a number: how many were taken before it.
std::vector<array> MaskedScatter::decomposed(const std::vector<array>& inputs) {
  const array &a = inputs[0], &mask = inputs[1], &source = inputs[2];
  Stream s = stream();
  if (source.size() == 0) return {copy(a, s)};
  array flags = astype(flatten(mask, s), int32, s);
  array numbers = reshape_here(cumsum(flags, 0, false, false, std::nullopt, s), a.shape(), s);
  array places = where(mask, numbers, array(0), s);
  return {where(mask, take(source, places, 0, s), a, s)};
}

}  // namespace

array masked_scatter(const array& a, const array& mask, const array& src, StreamOrDevice s) {
  if (mask.dtype() != bool_) {
    throw std::invalid_argument(text("[masked_scatter] expected a bool mask, got ", mask.dtype()));
  }
  // The mask names the first axes of the array; what is missing behind is taken whole.
  array seen = mask;
  while (seen.ndim() > 0 && seen.ndim() < a.ndim()) seen = expand_dims(seen, -1, s);
  if (broadcast_shapes_for("masked_scatter", seen.shape(), a.shape()) != a.shape()) {
    throw std::invalid_argument(text("[masked_scatter] a mask of shape ", mask.shape(),
                                     " does not name the first axes of shape ", a.shape()));
  }
  array values = astype(src, a.dtype(), s);
  if (src.size() == 1) return where(seen, reshape(values, {}, s), a, s);
  return make_node<MaskedScatter>(
      a.shape(), a.dtype(),
      {a, broadcast_here(seen, a.shape(), s), contiguous(flatten(values, s), false, s)}, s);
}

}  // namespace holdfast
