// NativeContext: where a native command finds what was bound to it, while it runs.
#pragma once

#include <cstdint>

namespace holdfast {

// A binding of the command that is being encoded, as Encoder::input and Encoder::output return it.
// Valid for the next command only.
struct Bound {
  static constexpr uint32_t nothing = UINT32_MAX;  // an array without elements
  uint32_t index = nothing;
};

// A command names what it works on by its bindings, since memory has an address only on the device
// that the command runs on, and only while it runs.
class NativeContext {
 public:
  explicit NativeContext(void* const* addresses) : addresses_(addresses) {}
  // The address of the first element of what was bound; null for an array without elements.
  template <typename T = char>
  T* data(Bound bound) const {
    return bound.index == Bound::nothing ? nullptr : static_cast<T*>(addresses_[bound.index]);
  }

 private:
  void* const* addresses_;  // by binding of the command; set by the device
};

}  // namespace holdfast
