// When `compile` makes kernels, for the time of a scope.
#pragma once

#include "base/environment.h"

namespace holdfast::testing {

using environment::CompileKernels;

class CompileKernelsSetting {
 public:
  explicit CompileKernelsSetting(CompileKernels now) {
    environment::settings_for_tests().compile_kernels = now;
  }
  ~CompileKernelsSetting() { environment::settings_for_tests().compile_kernels = before_; }
  CompileKernelsSetting(const CompileKernelsSetting&) = delete;
  CompileKernelsSetting& operator=(const CompileKernelsSetting&) = delete;

 private:
  CompileKernels before_ = environment::settings().compile_kernels;
};

}  // namespace holdfast::testing
