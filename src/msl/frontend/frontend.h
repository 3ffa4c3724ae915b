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

// A source that is parsed once, for all of its kernels. Never changes: any number of threads may
// use it, each with a context of its own.
class ParsedSource {
 public:
  // `source.entry` says nothing here. Throws CompileError, also where only one kernel is wrong.
  explicit ParsedSource(const KernelSource& source);
  ~ParsedSource();
  // As list_kernels gives them; with KernelSource::assume_missing_constants, also which constants
  // they assume.
  const std::vector<KernelInterface>& kernels() const { return kernels_; }
  // Kernel `number` as to_scalar_ir(source, …) gives it.
  std::unique_ptr<llvm::Module> to_scalar_ir(size_t number, llvm::LLVMContext& context,
                                             KernelInterface& result, ScalarForm form,
                                             const LoweringTraits& traits = {}) const;
  // A digest (SHA-256) of all code of kernel `number`, wherever in the source it is: kernels of one
  // digest and interface have the same scalar IR but for lines.
  std::string identity(size_t number) const;

 private:
  const std::string name_;
  const MathMode math_;
  std::vector<KernelInterface> kernels_;
  std::string bitcode_;  // of all of them
};

// What is wrong with `module` as scalar IR, one sentence; empty when nothing is.
std::string check_scalar_ir(const llvm::Module& module, const KernelInterface& interface);

// Changes with everything that changes the result, the embedded headers too.
const std::string& frontend_version();

}  // namespace holdfast::msl
