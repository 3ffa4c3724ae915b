// The compiler as the rest of the library sees it: sources in, objects out. It lives in a library
// of its own (libholdfast-jit) with clang and LLVM inside, which is loaded when the first kernel
// has to be compiled.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/machine.h"
#include "devices/cpu/jit/kernel_abi.h"
#include "devices/cuda/ptx_kernel.h"
#include "msl/kernel_source.h"

namespace holdfast::jit {

// `checked` is the reference lowering of a kernel that has each of its accesses looked at
// (kernel_checker.h).
enum class Lowering : uint8_t { automatic, widened, reference, checked };
using machine::instruction_set_name;
using machine::InstructionSet;

struct CompileOptions {
  Lowering lowering =
      Lowering::automatic;  // automatic: widened, or the reference where widening declines
  InstructionSet instruction_set = InstructionSet::baseline;
  // Accesses that cannot be proved to be inside of what the kernel was given are looked at, and not
  // made when they are not: see DispatchArguments::ranges. (Checked kernels look at all of theirs.)
  bool guarded = false;
  // Threads of the threadgroups that the kernel is wanted for, for what is said of it
  // (CompiledKernel::race); zeros: a row of them. Not part of a key.
  std::array<uint32_t, 3> threadgroup{};
  std::string dump_directory;  // HOLDFAST_DUMP_KERNELS; not part of a key
};

// What images of kernels for the CPU are called (devices/image_writer.h).
inline std::string image_name(InstructionSet set) {
  return instruction_set_name(set) + ("-" + std::to_string(abi_version));
}

// Machine code of one kernel, and all that running it needs to know. Serialised as it is into the
// disk cache.
struct CompiledKernel {
  msl::KernelInterface interface;
  Lowering lowering = Lowering::widened;
  std::string remark;        // why it was not widened; empty when it was
  std::string race;          // a barrier that seems to be missing; empty: none was found
  std::string symbol;        // the function to call
  std::vector<char> object;  // relocatable ELF without undefined symbols
  uint32_t threadgroup_bytes = 0;
  uint32_t frame_bytes = 0;     // per simdgroup, widened only
  uint32_t register_bytes = 0;  // stack per thread, reference only: a hint for the fibre's stack
  bool has_fences = false;      // checked only: threads of several groups may wait for each other
};

using msl::CompileError;

// A source that was read once, for compiling its kernels one after the other, or at once on several
// threads.
class ParsedKernels {
 public:
  virtual ~ParsedKernels() = default;
  // With KernelInterface::assumed_constants.
  virtual const std::vector<msl::KernelInterface>& kernels() const = 0;
  // A digest of all code of kernel `number`: with its interface, the compiler's version and the
  // options it decides what comes of it, but for the lines in CompiledKernel::race.
  virtual std::string identity(size_t number) const = 0;
  // Kernel `number` as Compiler::compile and compile_to_ptx give it.
  virtual CompiledKernel compile(size_t number, const CompileOptions& options) const = 0;
  virtual std::vector<cuda::PtxKernel> compile_to_ptx(
      size_t number, const std::vector<cuda::PtxOptions>& options) const = 0;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Changes with everything that changes the result: compiler, passes, prelude. Part of every key.
  virtual const std::string& version() const = 0;
  // The kernels of a source: the entries of a .metal file.
  virtual std::vector<msl::KernelInterface> list(const msl::KernelSource& source) = 0;
  // Throws CompileError. May be called from several threads at once.
  virtual CompiledKernel compile(const msl::KernelSource& source,
                                 const CompileOptions& options) = 0;
  // The kernel for an NVIDIA GPU, once for each of `options`, which agree in
  // `trusts_source_alignment` and `guarded`. Throws and may be called as `compile`.
  virtual std::vector<cuda::PtxKernel> compile_to_ptx(
      const msl::KernelSource& source, const std::vector<cuda::PtxOptions>& options) = 0;
  // All kernels of a source; function constants that it does not say are assumed to be 0 or false.
  // Throws as `compile`.
  virtual std::unique_ptr<const ParsedKernels> parse(const msl::KernelSource& source) = 0;
};

// The compiler of libholdfast-jit, loaded at the first call. Throws std::runtime_error that says
// what to install when it is not there. (compiler_loader.cpp, in the main library.)
Compiler& default_compiler();
// The version without loading the compiler: a constant that the build knows.
const std::string& default_compiler_version();

}  // namespace holdfast::jit
