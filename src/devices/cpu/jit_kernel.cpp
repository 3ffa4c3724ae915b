#include "devices/cpu/jit_kernel.h"

namespace holdfast::exec {

PipelineReport JitKernel::report() const {
  const jit::CompiledKernel& kernel = pipeline_->kernel();
  PipelineReport report{"widened", kernel.remark, kernel.race};
  if (kernel.lowering == jit::Lowering::reference) report.code = "reference";
  if (kernel.lowering == jit::Lowering::checked) report.code = "checked";
  return report;
}

void JitKernel::check(const Dispatch& dispatch) const {
  jit::check_dispatch(*pipeline_, arguments_of(dispatch));
}

void JitKernel::begin(jit::DispatchArguments& arguments) const { jit::begin_dispatch(arguments); }

void JitKernel::run_groups(const jit::DispatchArguments& arguments, int64_t begin,
                           int64_t end) const {
  jit::run_groups(*pipeline_, arguments, begin, end);
}

}  // namespace holdfast::exec
