#include "kernels/cpu/combine.h"

#include <algorithm>
#include <cstring>

#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {
namespace {

ElementwiseOp op_of(UpdateMode mode) {
  switch (mode) {
    case UpdateMode::add:
      return ElementwiseOp::Add;
    case UpdateMode::multiply:
      return ElementwiseOp::Multiply;
    case UpdateMode::maximum:
      return ElementwiseOp::Maximum;
    default:
      return ElementwiseOp::Minimum;
  }
}

}  // namespace

BlockCombine::BlockCombine(UpdateMode mode, Dtype::Val dtype) : item_size_(item_size(dtype)) {
  if (mode == UpdateMode::replace) return;
  kernel_ = elementwise_kernel(op_of(mode), lane_of(dtype));
  load_ = load_kernel(dtype);
  store_ = store_kernel(dtype);
}

void BlockCombine::operator()(void* target, const void* update, int64_t count) const {
  if (kernel_ == nullptr) {
    std::memcpy(target, update, static_cast<size_t>(count) * item_size_);
    return;
  }
  if (load_ == nullptr) {
    const void* operands[] = {target, update};
    kernel_(target, operands, count);
    return;
  }
  constexpr int64_t block = 512;
  alignas(64) float old[block], taken[block];
  for (int64_t i = 0; i < count; i += block) {
    int64_t part = std::min(block, count - i);
    char* place = static_cast<char*>(target) + static_cast<size_t>(i) * item_size_;
    load_(old, place, part);
    load_(taken, static_cast<const char*>(update) + static_cast<size_t>(i) * item_size_, part);
    const void* operands[] = {old, taken};
    kernel_(old, operands, part);
    store_(place, old, part);
  }
}

}  // namespace holdfast::kernels::cpu
