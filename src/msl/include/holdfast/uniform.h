// metal::uniform<T>: a value of which the source promises that it is the same in all threads. The
// compiler finds out by itself which values are, so the promise changes nothing.
#pragma once

#include <holdfast/base.h>

namespace metal {

template <class T>
struct uniform {
  uniform() = default;
  HF_INLINE constexpr uniform(T value) : value_(value) {}
  HF_INLINE constexpr operator T() const { return value_; }

 private:
  T value_;
};

template <class T>
HF_INLINE constexpr uniform<T> make_uniform(T value) {
  return uniform<T>(value);
}

}  // namespace metal
