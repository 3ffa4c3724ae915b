// metal::array.
#pragma once

#include <holdfast/traits.h>

namespace metal {

template <class T, size_t count>
struct array {
  T __elements[count];
  using value_type = T;
  HF_INLINE constexpr T& operator[](size_t i) { return __elements[i]; }
  HF_INLINE constexpr const T& operator[](size_t i) const { return __elements[i]; }
  HF_INLINE static constexpr size_t size() { return count; }
  HF_INLINE static constexpr bool empty() { return count == 0; }
  HF_INLINE constexpr T* data() { return __elements; }
  HF_INLINE constexpr const T* data() const { return __elements; }
  HF_INLINE constexpr T* begin() { return __elements; }
  HF_INLINE constexpr const T* begin() const { return __elements; }
  HF_INLINE constexpr T* end() { return __elements + count; }
  HF_INLINE constexpr const T* end() const { return __elements + count; }
  HF_INLINE constexpr T& front() { return __elements[0]; }
  HF_INLINE constexpr const T& front() const { return __elements[0]; }
  HF_INLINE constexpr T& back() { return __elements[count - 1]; }
  HF_INLINE constexpr const T& back() const { return __elements[count - 1]; }
  HF_INLINE constexpr void fill(const T& value) {
    for (size_t i = 0; i < count; ++i) __elements[i] = value;
  }
};

}  // namespace metal
