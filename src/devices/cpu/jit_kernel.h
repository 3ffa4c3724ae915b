// A kernel of the JIT as a pipeline.
#pragma once

#include <string>
#include <utility>

#include "devices/cpu/cpu_kernel.h"

namespace holdfast::exec {

class JitKernel final : public CpuKernel {
 public:
  explicit JitKernel(Ref<jit::CpuPipeline> pipeline) : pipeline_(std::move(pipeline)) {}
  const std::string& name() const override { return pipeline_->name(); }
  const msl::KernelInterface& interface() const override { return pipeline_->interface(); }
  PipelineReport report() const override;
  void check(const Dispatch& dispatch) const override;
  void begin(jit::DispatchArguments& arguments) const override;
  void run_groups(const jit::DispatchArguments& arguments, int64_t begin,
                  int64_t end) const override;
  const jit::CpuPipeline& pipeline() const { return *pipeline_; }

 private:
  Ref<jit::CpuPipeline> pipeline_;
};

}  // namespace holdfast::exec
