#include "devices/cpu/jit_kernel.h"

namespace holdfast::exec {

void JitKernel::check(const Dispatch& dispatch) const {
  jit::check_dispatch(*pipeline_, arguments_of(dispatch));
}

void JitKernel::begin(jit::DispatchArguments& arguments) const { jit::begin_dispatch(arguments); }

void JitKernel::run_groups(const jit::DispatchArguments& arguments, int64_t begin,
                           int64_t end) const {
  jit::run_groups(*pipeline_, arguments, begin, end);
}

}  // namespace holdfast::exec
