// Arrays with a part replaced or combined: slice_update and masked_scatter.
#include <algorithm>

#include "ops/accumulate.h"
#include "ops/dynamic_shape.h"
#include "ops/views.h"

namespace holdfast {

namespace {

using kernels::UpdateMode;

const char* slice_function_of(UpdateMode mode) {
  constexpr const char* names[] = {"slice_update", "slice_update_add", "slice_update_prod",
                                   "slice_update_max", "slice_update_min"};
  return names[static_cast<size_t>(mode)];
}

array combined(UpdateMode mode, const array& old, const array& update, StreamOrDevice s) {
  return mode == UpdateMode::add        ? add(old, update, s)
         : mode == UpdateMode::multiply ? multiply(old, update, s)
         : mode == UpdateMode::maximum  ? maximum(old, update, s)
                                        : minimum(old, update, s);
}

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
  kernels::SliceRegion region = kernels::slice_region(out.strides(), start_, steps_);
  kernels::backend_of(encoder).slice_update(encoder, region, mode_, update, nullptr, out);
}

// The slice that the update replaces.
array SliceUpdate::region_of(const array& a, const Shape& shape) {
  return make_node<Slice>(shape, a.dtype(), {a}, stream(), start_, steps_);
}

// The update, combined with what is there, replaces it.
std::vector<array> SliceUpdate::decomposed(const std::vector<array>& inputs) {
  const array &a = inputs[0], &update = inputs[1];
  if (mode_ == UpdateMode::replace) return {};
  array changed = combined(mode_, region_of(a, update.shape()), update, stream());
  return {make_node<SliceUpdate>(a.shape(), a.dtype(), {a, changed}, stream(), UpdateMode::replace,
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
    if (!std::equal(update.begin(), update.end(), shape.begin(), shape.end(), std::less_equal())) {
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

// inputs: the array, the update, the start (int64).
void DynamicSliceUpdate::encode(Encoder& encoder, const std::vector<array>& inputs,
                                std::vector<array>& outputs) {
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  kernels::backend_of(encoder).slice_update(encoder, {out.strides(), 0, axes_}, UpdateMode::replace,
                                            inputs[1], &inputs[2], out);
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
  check_slice(op, src, {start, stop, strides});
  // A leading dimension of 1 more than the array has is dropped, as NumPy does.
  array taken = astype(update, src.dtype(), s);
  while (taken.ndim() > src.ndim() && taken.shape(0) == 1) taken = squeeze(taken, 0, s);
  if (has_open_shape(src) || has_open_shape(update)) {
    SliceNumbers numbers{std::move(start), std::move(stop), std::move(strides)};
    if (mode != UpdateMode::replace) taken = combined(mode, slice_by(src, numbers, s), taken, s);
    return slice_update_by(src, taken, numbers, s);
  }
  Shape shape = src.shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    SliceRange range = normalized_range(start[i], stop[i], strides[i], src.shape()[i]);
    start[i] = range.start;
    shape[i] = range.size;
  }
  if (broadcast_shapes_for(op, taken.shape(), shape) != shape) {
    throw std::invalid_argument(text("[", op, "] an update of shape ", update.shape(),
                                     " cannot be broadcast to the slice of shape ", shape));
  }
  if (shape == src.shape() && mode == UpdateMode::replace &&
      std::all_of(strides.begin(), strides.end(), [](ShapeElem step) { return step == 1; })) {
    return broadcast_to(taken, shape, s);
  }
  return make_node<SliceUpdate>(src.shape(), src.dtype(), {src, broadcast_to(taken, shape, s)}, s,
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
  // The update says how much is replaced. Of leading axes that it lacks all is, and one place of
  // those that have a start.
  Shape shape = src.shape();
  size_t missing = src.ndim() - update.ndim();
  for (int axis : axes) shape[static_cast<size_t>(axis)] = 1;
  std::copy(update.shape().begin(), update.shape().end(), shape.begin() + missing);
  if (!std::equal(shape.begin(), shape.end(), src.shape().begin(), std::less_equal())) {
    throw std::invalid_argument(text("[slice_update] an update of shape ", update.shape(),
                                     " does not fit into shape ", src.shape()));
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
  array& out = outputs[0];
  copy_or_take(encoder, inputs[0], out);
  if (out.size() == 0) return;
  kernels::backend_of(encoder).masked_scatter(encoder, inputs[1], inputs[2], out);
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
