// MSL source to scalar IR (msl/scalar_ir.h), with clang in this process.
//
// Every function may be called from several threads at once. They print nothing, install no signal
// handler and read no file but those beside KernelSource::directory; what goes wrong is a
// CompileError with the kernel's name and the place in the user's text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "msl/kernel_source.h"
#include "msl/scalar_ir.h"

namespace llvm {
class Function;
class LLVMContext;
class Module;
}  // namespace llvm

namespace holdfast::msl {

// The kernel `source.entry` of `source` as scalar IR, and what its dispatch has to know. With
// lines, instructions know their place: the lines of file `source_file` are those of `source.text`.
std::unique_ptr<llvm::Module> to_scalar_ir(const KernelSource& source, llvm::LLVMContext& context,
                                           KernelInterface& result,
                                           ScalarForm form = ScalarForm::optimised,
                                           const LoweringTraits& traits = {});
inline constexpr const char* source_file = "/holdfast/user/kernel.metal";

// The kernels that `source` defines, in its order: functions, and instantiations with a host_name.
// What only IR tells (written, threadgroup_bytes) is filled in as far as declarations say it.
std::vector<KernelInterface> list_kernels(const KernelSource& source);

// What is wrong with `module` as scalar IR, one sentence; empty when nothing is.
std::string check_scalar_ir(const llvm::Module& module, const KernelInterface& interface);

// Changes with everything that changes the result, the embedded headers too.
const std::string& frontend_version();

}  // namespace holdfast::msl
