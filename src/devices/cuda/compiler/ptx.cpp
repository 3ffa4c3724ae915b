#include "devices/cuda/compiler/ptx.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <stdexcept>

#include "devices/cpu/jit/compiler/dump.h"
#include "devices/cpu/jit/compiler/guard_accesses.h"
#include "devices/cuda/compiler/address_spaces.h"
#include "devices/cuda/compiler/arithmetic.h"
#include "devices/cuda/compiler/convergence.h"
#include "devices/cuda/compiler/cross_lane.h"
#include "devices/cuda/compiler/entry.h"
#include "devices/cuda/compiler/memory_access.h"
#include "devices/cuda/compiler/polling.h"
#include "devices/cuda/compiler/target.h"
#include "devices/cuda/compiler/tiles.h"
#include "msl/frontend/define_arithmetic.h"
#include "msl/frontend/frontend.h"
#include "msl/frontend/guard.h"
#include "msl/frontend/inline_calls.h"

namespace holdfast::cuda {
namespace {

// A name that PTX has no other use for.
std::string symbol_of(const std::string& kernel) {
  std::string symbol = "holdfast_";
  for (char c : kernel) symbol += llvm::isAlnum(c) ? c : '_';
  return symbol;
}

void check(const llvm::Module& module, const char* after) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    throw std::logic_error(std::string("[jit] broken module after ") + after + ": " + problem);
}

llvm::Function& only_function(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) return function;
  }
  throw std::logic_error("[jit] the front-end left no function");
}

}  // namespace

msl::LoweringTraits traits_of(const PtxOptions& options) {
  msl::LoweringTraits traits;
  traits.keeps_source_alignment = options.trusts_source_alignment;
  traits.has_approximations = true;
  traits.has_tile_instructions = true;
  traits.has_tile_memory = true;
  traits.drops_messages = true;
  return traits;
}

std::unique_ptr<llvm::Module> lower_to_nvptx(std::unique_ptr<llvm::Module> module,
                                             const msl::KernelInterface& interface,
                                             const PtxOptions& options,
                                             llvm::TargetMachine& machine, PtxKernel& result,
                                             const msl::KernelSource* source) {
  result.interface = interface;
  result.symbol = symbol_of(interface.entry);
  result.parameter_bytes =
      parameter_layout(interface, options.guarded, options.has_inline_constants).bytes;
  msl::inline_shared_functions(*module);
  // While lines are known.
  if (options.guarded) jit::guard_accesses(only_function(*module), {interface, source});
  llvm::StripDebugInfo(*module);
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());

  // Pointers into the block of parameters are generic: with them all of constant memory.
  llvm::Function& kernel = replace_constant_memory(
      only_function(*module),
      options.has_inline_constants ? 0 : unsigned{msl::address_space::device});
  msl::define_arithmetic(kernel);
  prepare_arithmetic(kernel);
  const bool has_rows = options.positions == Positions::rows;
  const Convergence convergence =
      find_convergence(kernel, has_rows, has_rows || options.full_simdgroups);
  result.gathers = convergence.gathers;
  result.depends_on_target = lower_tiles(kernel, options.target);
  lower_cross_lane(kernel, convergence);
  make_entry(kernel, interface, options, result.symbol);
  check(*module, "the lowering to NVPTX");
  return module;
}

void optimise_entry(llvm::Module& module, llvm::TargetMachine& machine, const std::string& symbol) {
  llvm::Function& entry = *module.getFunction(symbol);
  thread_jumps(entry);
  // Before accesses that two branches share are moved out of them, one by one.
  merge_accesses(entry, machine);
  unroll_bounded_loops(entry);
  ask_for_unrolling(entry);
  optimise(module, machine);
  raise_alignments(entry);
  check(module, "optimising");
}

namespace {

PtxKernel compile_variant(std::unique_ptr<llvm::Module> module,
                          const msl::KernelInterface& interface, PtxOptions options,
                          const msl::KernelSource* source) {
  options.max_threads = std::min(options.max_threads, interface.max_threads);
  std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(options.target);
  const jit::Dump dump(options.dump_directory, interface.entry,
                       "sm_" + std::to_string(options.target));
  if (dump) dump.module("scalar.ll", *module);
  PtxKernel result;
  module = lower_to_nvptx(std::move(module), interface, options, *machine, result, source);
  if (dump) dump.module("lowered.ll", *module);
  optimise_entry(*module, *machine, result.symbol);
  if (options.can_be_cancelled) poll_unbounded_loops(*module->getFunction(result.symbol));
  lower_streaming_loads(*module->getFunction(result.symbol), *machine);
  for (llvm::Function& function : *module) {
    if (!function.isDeclaration()) finish_arithmetic(function);
  }
  if (dump) dump.module("optimised.ll", *module);
  check(*module, "the last conversions");
  result.text = emit_ptx(*module, *machine);
  if (dump) dump.text("ptx", result.text);
  return result;
}

}  // namespace

std::vector<PtxKernel> compile_to_ptx(const llvm::Module& module,
                                      const msl::KernelInterface& interface,
                                      const std::vector<PtxOptions>& options,
                                      const msl::KernelSource* source) {
  std::vector<PtxKernel> kernels;
  // A copy for each, also for the last: copies have their uses in the order of the text, whatever
  // was done to the module before, and some of LLVM's passes go by that order.
  for (const PtxOptions& one : options)
    kernels.push_back(compile_variant(llvm::CloneModule(module), interface, one, source));
  return kernels;
}

std::vector<PtxKernel> compile_to_ptx(const msl::KernelSource& source,
                                      const std::vector<PtxOptions>& options) {
  std::vector<PtxKernel> kernels;
  msl::run_guarded([&] {
    llvm::LLVMContext context;
    msl::KernelInterface interface;
    const PtxOptions& first = options.at(0);
    std::unique_ptr<llvm::Module> module = msl::to_scalar_ir(
        source, context, interface,
        first.guarded ? msl::ScalarForm::with_lines : msl::ScalarForm::optimised, traits_of(first));
    kernels = compile_to_ptx(*module, interface, options, &source);
  });
  return kernels;
}

PtxKernel compile_to_ptx(const msl::KernelSource& source, const PtxOptions& options) {
  return compile_to_ptx(source, std::vector{options})[0];
}

}  // namespace holdfast::cuda
