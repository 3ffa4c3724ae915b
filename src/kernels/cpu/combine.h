// An update meets what is there: the loops of scatter and slice_update.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/plan/update.h"

namespace holdfast::kernels::cpu {

// target[i] = target[i] combined with update[i], over dense elements of one dtype that do not
// overlap. Half types are rounded after each update.
class BlockCombine {
 public:
  BlockCombine(UpdateMode mode, Dtype::Val dtype);
  void operator()(void* target, const void* update, int64_t count) const;

 private:
  size_t item_size_;
  BlockKernel kernel_ = nullptr;  // null: replace
  ConvertKernel load_ = nullptr, store_ = nullptr;
};

// The same for one element.
template <UpdateMode mode, typename T>
T combined(T old, T update) {
  if constexpr (mode == UpdateMode::replace) {
    return update;
  } else if constexpr (mode == UpdateMode::add) {
    if constexpr (std::is_same_v<T, bool>)
      return old || update;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(update));
    else
      return old + update;
  } else if constexpr (mode == UpdateMode::multiply) {
    if constexpr (std::is_same_v<T, bool>)
      return old && update;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(old) * static_cast<uint64_t>(update));
    else
      return old * update;
  } else {
    if (old != old) return old;
    if (update != update) return update;
    bool takes = mode == UpdateMode::maximum ? old < update : update < old;
    return takes ? update : old;
  }
}

// Calls f(std::integral_constant<UpdateMode, mode>{}).
template <typename F>
decltype(auto) dispatch_mode(UpdateMode mode, F&& f) {
  switch (mode) {
    case UpdateMode::add:
      return f(std::integral_constant<UpdateMode, UpdateMode::add>{});
    case UpdateMode::multiply:
      return f(std::integral_constant<UpdateMode, UpdateMode::multiply>{});
    case UpdateMode::maximum:
      return f(std::integral_constant<UpdateMode, UpdateMode::maximum>{});
    case UpdateMode::minimum:
      return f(std::integral_constant<UpdateMode, UpdateMode::minimum>{});
    case UpdateMode::replace:
      break;
  }
  return f(std::integral_constant<UpdateMode, UpdateMode::replace>{});
}

}  // namespace holdfast::kernels::cpu
