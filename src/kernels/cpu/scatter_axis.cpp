#include "kernels/cpu/scatter_axis.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/combine.h"

namespace holdfast::kernels::cpu {

int64_t ScatterAxisPlan::grain() const {
  return std::max<int64_t>(1, std::min<int64_t>(512, 8192 / count));
}

// One index after the other, so that neighbours are read together.
template <UpdateMode mode, typename T, typename Index>
IndexStatus ScatterAxisPlan::run_lines(int64_t begin, int64_t end, const Index* indices,
                                       const T* values, T* out) const {
  for (int64_t j = 0; j < count; ++j) {
    Odometer to(lines.shape, lines.strides[0], begin);
    Odometer index_at(lines.shape, lines.strides[1], begin);
    Odometer from(lines.shape, lines.strides[2], begin);
    for (int64_t line = begin; line < end; ++line) {
      const int64_t given = indices[index_at.offset() + j * strides[1]];
      const int64_t index = given < 0 ? given + axis_size : given;
      if (index < 0 || index >= axis_size) return {false, given};
      T& place = out[to.offset() + index * strides[0]];
      place = combined<mode>(place, values[from.offset() + j * strides[2]]);
      to.advance(1);
      index_at.advance(1);
      from.advance(1);
    }
  }
  return {};
}

IndexStatus ScatterAxisPlan::run(int64_t begin, int64_t end, const void* indices,
                                 const void* values, void* output) const {
  const int64_t first = begin * grain(), last = std::min(lines.size, end * grain());
  return dispatch_dtype(dtype, [&](auto tag) {
    return dispatch_dtype(index_type, [&](auto index_tag) -> IndexStatus {
      using T = typename decltype(tag)::type;
      using Index = typename decltype(index_tag)::type;
      if constexpr (std::is_same_v<Index, int32_t> || std::is_same_v<Index, int64_t> ||
                    std::is_same_v<Index, uint32_t>) {
        const auto* places = static_cast<const Index*>(indices);
        const auto* from = static_cast<const T*>(values);
        auto* to = static_cast<T*>(output);
        return mode == UpdateMode::add
                   ? run_lines<UpdateMode::add>(first, last, places, from, to)
                   : run_lines<UpdateMode::replace>(first, last, places, from, to);
      } else {
        return {};
      }
    });
  });
}

}  // namespace holdfast::kernels::cpu
