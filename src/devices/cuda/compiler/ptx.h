// Scalar IR to PTX: what the compiler does for an NVIDIA GPU after the front-end.
#pragma once

#include <memory>
#include <vector>

#include "devices/cuda/ptx_kernel.h"
#include "msl/scalar_ir.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace holdfast::cuda {

// From a source. Throws CompileError, std::runtime_error for an unknown target.
PtxKernel compile_to_ptx(const msl::KernelSource& source, const PtxOptions& options);
// A kernel for each of `options`, which agree in what the front-end looks at: traits_of and
// `guarded`.
std::vector<PtxKernel> compile_to_ptx(const msl::KernelSource& source,
                                      const std::vector<PtxOptions>& options);

// What the front-end leaves to these lowerings.
msl::LoweringTraits traits_of(const PtxOptions& options);

// From scalar IR (msl/scalar_ir.h), a kernel for each of `options`. `source`: how the user's parts
// are called, for what guards say; may be null.
std::vector<PtxKernel> compile_to_ptx(const llvm::Module& module,
                                      const msl::KernelInterface& interface,
                                      const std::vector<PtxOptions>& options,
                                      const msl::KernelSource* source = nullptr);

// The first half of it: one .entry, result.symbol, that nothing has optimised yet, and in `result`
// all but its text. Nothing but LLVM's intrinsics, NVPTX's among them, is called in it.
std::unique_ptr<llvm::Module> lower_to_nvptx(std::unique_ptr<llvm::Module> module,
                                             const msl::KernelInterface& interface,
                                             const PtxOptions& options,
                                             llvm::TargetMachine& machine, PtxKernel& result,
                                             const msl::KernelSource* source = nullptr);
// Then this, and what is left is conversions that finish_arithmetic (arithmetic.h) writes down.
void optimise_entry(llvm::Module& module, llvm::TargetMachine& machine, const std::string& symbol);

}  // namespace holdfast::cuda
