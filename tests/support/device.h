// Which device a test runs on, and what that takes. HOLDFAST_DEFAULT_DEVICE=gpu runs any suite on
// the GPU, and HOLDFAST_GPU=simulated on one with memory of its own.
#pragma once

#include <algorithm>
#include <vector>

#include <holdfast/device.h>
#include <holdfast/dtype.h>
#include <holdfast/stream.h>

namespace holdfast::testing {

// For TEST_CASE_FIXTURE: what tests the CPU's engine, or computes in float64 or by factorisations,
// which no GPU takes.
struct OnCpu {
  StreamContext on_cpu{Device::cpu};
};

// Without float64 where the default device is a GPU. What a test computes in float64 to compare
// with names the CPU.
inline std::vector<Dtype> taken_here(std::vector<Dtype> dtypes) {
  if (default_device() == Device::gpu) std::erase(dtypes, float64);
  return dtypes;
}

inline std::vector<Dtype> all_dtypes() {
  return taken_here({bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16,
                     float32, float64, bfloat16, complex64});
}

}  // namespace holdfast::testing
