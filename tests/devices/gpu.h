// The GPU of these tests: the one that HOLDFAST_GPU names, or the third device where that is
// not the simulated one.
#pragma once

#include "base/environment.h"
#include "devices/third_device.h"
#include "exec/runtime.h"

namespace holdfast::testing {

inline bool has_third_device() {
  return environment::settings().gpu != environment::Gpu::simulated;
}

// To be called before the first gpu stream.
inline void install_gpu() {
  static const bool installed = [] {
    if (has_third_device()) exec::Runtime::get().install_gpu(make_third_device());
    return true;
  }();
  (void)installed;
}

}  // namespace holdfast::testing
