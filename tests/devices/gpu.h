// The GPU of these tests: the one that HOLDFAST_GPU names, or, where that is not the simulated one,
// the third device; or, with HOLDFAST_TEST_FAKE_CUDA, the CUDA device on the fake driver.
#pragma once

#include <cstdlib>

#include "base/environment.h"
#include "cuda/fake_driver.h"
#include "devices/third_device.h"
#include "exec/runtime.h"

namespace holdfast::testing {

inline bool has_fake_cuda() { return std::getenv("HOLDFAST_TEST_FAKE_CUDA") != nullptr; }
inline bool has_third_device() {
  return !has_fake_cuda() && environment::settings().gpu != environment::Gpu::simulated;
}

// To be called before the first gpu stream.
inline void install_gpu() {
  static const bool installed = [] {
    if (has_fake_cuda()) install_fake_gpu();
    if (has_third_device()) exec::Runtime::get().install_gpu(make_third_device());
    return true;
  }();
  (void)installed;
}

}  // namespace holdfast::testing
