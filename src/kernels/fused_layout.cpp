#include "kernels/fused_layout.h"

#include <cstdlib>

namespace holdfast::kernels {
namespace {

constexpr size_t copied_elements = size_t{1} << 16;
constexpr int64_t line_of_memory = 64;

bool same_strides(const Shape& shape, const Strides& a, const Strides& b) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1 && a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace

FusedWalk::FusedWalk(const FusedGroup& group) {
  const array* first = nullptr;
  for (const array& input : group.inputs) {
    if (is_scalar(input)) continue;
    if (!input.flags().contiguous || input.shape() != *group.shape ||
        input.data_size() != input.size()) {
      return;
    }
    if (!first)
      first = &input;
    else if (!same_strides(*group.shape, first->strides(), input.strides()))
      return;
  }
  if (first && !first->flags().row_contiguous) like = first;
}

bool FusedWalk::is_in_order(const array& input, const Shape& shape) const {
  return like || (input.flags().row_contiguous && input.shape() == shape);
}

bool FusedWalk::can_take_over(const array& input, const array& output) const {
  return input.itemsize() == output.itemsize() && input.shape() == output.shape() &&
         input.data_size() == input.size() &&
         (like ? !is_scalar(input) : input.flags().row_contiguous);
}

int FusedWalk::allocate(Encoder& encoder, const FusedGroup& group, array& output,
                        uint32_t& donatable, const std::function<bool(size_t)>& may_take) const {
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    if ((donatable >> i & 1) == 0 || !can_take_over(group.inputs[i], output) || !may_take(i))
      continue;
    donatable &= ~(1u << i);
    output.copy_shared_buffer(group.inputs[i]);
    return static_cast<int>(i);
  }
  if (like) {
    output.set_data(encoder.allocate(output.nbytes()), output.size(), like->strides(),
                    like->flags());
  } else {
    encoder.allocate(output);
  }
  return -1;
}

bool is_read_across(const array& a, const CollapsedLayout& layout) {
  if (a.size() < copied_elements || a.size() != static_cast<size_t>(layout.size)) return false;
  return std::abs(layout.strides.back()) * static_cast<int64_t>(a.itemsize()) >= line_of_memory;
}

}  // namespace holdfast::kernels
