// Kernels written in CUDA C++: there is no CUDA device in this build, and each call says so.
#include <holdfast/fast.h>

#include "ops/support.h"

namespace holdfast::fast {

namespace {

[[noreturn]] void refuse(const char* op, const std::string& name) {
  throw std::runtime_error(text("[", op, "] kernel \"", name,
                                "\" needs a CUDA device, and this build has none: metal_kernel "
                                "runs on every device"));
}

}  // namespace

CustomKernelFunction cuda_kernel(const std::string& name, const std::vector<std::string>&,
                                 const std::vector<std::string>&, const std::string&,
                                 const std::string&, bool, int) {
  refuse("cuda_kernel", name);
}

std::vector<array> precompiled_cuda_kernel(const std::string& name, const std::string&,
                                           const std::vector<array>&, const std::vector<Shape>&,
                                           const std::vector<Dtype>&, const std::vector<ScalarArg>&,
                                           std::tuple<int, int, int>, std::tuple<int, int, int>,
                                           int, std::optional<float>, bool, StreamOrDevice) {
  refuse("precompiled_cuda_kernel", name);
}

}  // namespace holdfast::fast
