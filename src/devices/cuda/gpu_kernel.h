// A kernel that an NVIDIA GPU has loaded, as a pipeline. It holds several images, of which each
// dispatch takes one.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "devices/cuda/compiled_kernel.h"
#include "devices/cuda/gpu.h"
#include "devices/device.h"
#include "devices/pipeline.h"
#include "devices/target.h"

namespace holdfast::cuda {

// How a dispatch is launched.
struct LaunchShape {
  uint32_t grid[3];   // blocks
  uint32_t block[3];  // threads
};

class GpuKernel final : public exec::Pipeline {
 public:
  // Loads the images. Throws Error, and std::runtime_error when the kernel does not fit the GPU.
  GpuKernel(Gpu& gpu, std::string name, CompiledKernel kernel);
  ~GpuKernel() override;

  const std::string& name() const override { return name_; }
  const msl::KernelInterface& interface() const override { return kernel_.interface; }
  exec::PipelineReport report() const override { return {"PTX", "", ""}; }
  void check(const exec::Dispatch& dispatch) const override;

  bool is_guarded() const { return kernel_.guarded; }
  bool can_be_cancelled() const { return kernel_.can_be_cancelled; }

  // The first caller is the one who says it.
  bool is_first_outside_read() const { return !has_read_outside_.exchange(true); }

  // The image for a dispatch whose arguments have these addresses (by KernelInterface::arguments;
  // zeros are not looked at).
  size_t choose(const exec::Dispatch& dispatch, const Address* addresses) const;
  const ParameterLayout& layout(size_t image) const { return loaded_[image].layout; }
  Function function(size_t image) const { return loaded_[image].function; }
  LaunchShape shape(size_t image, const exec::Dispatch& dispatch) const;

 private:
  bool fits(size_t image, const exec::Dispatch& dispatch, const Address* addresses) const;

  Gpu& gpu_;
  const std::string name_;
  const CompiledKernel kernel_;
  struct Loaded {
    Module module = nullptr;
    Function function = nullptr;
    ParameterLayout layout;
  };
  std::vector<Loaded> loaded_;  // by image
  uint32_t max_threads_ = 0;
  mutable std::atomic<bool> has_read_outside_{false};
};

}  // namespace holdfast::cuda
