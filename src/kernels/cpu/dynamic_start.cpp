#include "kernels/cpu/dynamic_start.h"

#include <stdexcept>

#include "base/text.h"

namespace holdfast::kernels::cpu {

DynamicStart::DynamicStart(const char* op, std::span<const int> axes, const Shape& whole,
                           const Strides& strides, const Shape& slice, const array& start)
    : op_(op), type_(start.dtype()), step_(start.ndim() == 0 ? 0 : start.strides(0)) {
  for (int axis : axes) {
    const auto at = static_cast<size_t>(axis);
    axes_.push_back({strides[at], int64_t{whole[at]} - slice[at], axis});
  }
}

int64_t DynamicStart::offset(const void* starts) const {
  return dispatch_dtype(type_, [&](auto tag) {
    using Index = typename decltype(tag)::type;
    const auto* next = static_cast<const Index*>(starts);
    int64_t offset = 0;
    for (const Axis& axis : axes_) {
      const auto first = convert_element<int64_t>(*next);
      // Negative starts and uint64 beyond int64 alike are outside.
      if (first < 0 || first > axis.room) {
        throw std::runtime_error(text("[", op_, "] start ", first, " of axis ", axis.index,
                                      " must be between 0 and ", axis.room));
      }
      offset += first * axis.stride;
      next += step_;
    }
    return offset;
  });
}

}  // namespace holdfast::kernels::cpu
