#include "kernels/cpu/recurrence.h"

#include <type_traits>

namespace holdfast::kernels::cpu {
namespace {

template <typename T>
struct Carried {
  using type = std::conditional_t<sizeof(T) == 2, float, T>;
};

template <typename T>
void run_lines(const T* factors, const T* terms, T* out, int64_t length, int64_t inner,
               bool reverse, int64_t begin, int64_t end) {
  using Wide = typename Carried<T>::type;
  for (int64_t line = begin; line < end; ++line) {
    int64_t first = line / inner * inner * length + line % inner;
    Wide h{};
    for (int64_t k = 0; k < length; ++k) {
      int64_t at = first + (reverse ? length - 1 - k : k) * inner;
      Wide term = static_cast<Wide>(terms[at]);
      h = k == 0 ? term : Wide(static_cast<Wide>(factors[at]) * h + term);
      out[at] = static_cast<T>(h);
    }
  }
}

}  // namespace

void run_recurrence(Dtype::Val dtype, const void* factors, const void* terms, void* output,
                    int64_t length, int64_t inner, bool reverse, int64_t begin, int64_t end) {
  dispatch_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) {
      run_lines(static_cast<const T*>(factors), static_cast<const T*>(terms),
                static_cast<T*>(output), length, inner, reverse, begin, end);
    }
  });
}

}  // namespace holdfast::kernels::cpu
