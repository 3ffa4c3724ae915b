#include "devices/cuda/compiler/target.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/JumpThreading.h>
#include <llvm/Transforms/Scalar/SeparateConstOffsetFromGEP.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Scalar/StraightLineStrengthReduce.h>
#include <llvm/Transforms/Vectorize/LoadStoreVectorizer.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "devices/cuda/compiler/memory_access.h"

namespace holdfast::cuda {
namespace {

constexpr const char* triple = "nvptx64-nvidia-cuda";

const llvm::Target& nvptx() {
  static const llvm::Target* found = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    std::string error;
    const llvm::Target* result = llvm::TargetRegistry::lookupTarget(triple, error);
    if (!result) throw std::runtime_error("[jit] this LLVM cannot generate PTX: " + error);
    return result;
  }();
  return *found;
}

// ptxas 13.0 loses the high half of some products of 64 bits where LLVM takes it by an unpacking
// move (from -O2 on): a shift takes it as well.
std::string without_unpacked_halves(llvm::StringRef text) {
  constexpr llvm::StringLiteral move = "{ .reg .b32 tmp; mov.b64 {tmp, ";
  std::string result;
  result.reserve(text.size());
  for (size_t at; (at = text.find(move)) != llvm::StringRef::npos;) {
    result += text.take_front(at);
    text = text.drop_front(at + move.size());
    auto [half, rest] = text.split("}, ");
    auto [whole, after] = rest.split(';');
    result +=
        ("{ .reg .b64 tmp; shr.u64 tmp, " + whole + ", 32; cvt.u32.u64 " + half + ", tmp;").str();
    text = after;
  }
  result += text;
  return result;
}

// LLVM numbers all calls of a process in comments: without them, text depends on the kernel alone.
std::string without_call_numbers(const std::string& text) {
  constexpr std::string_view comment = " // callseq";
  std::string result;
  result.reserve(text.size());
  size_t begin = 0;
  for (size_t at; (at = text.find(comment, begin)) != std::string::npos;) {
    result.append(text, begin, at - begin);
    begin = std::min(text.find('\n', at), text.size());
  }
  return result.append(text, begin);
}

struct UnrollAcrossLanes : llvm::PassInfoMixin<UnrollAcrossLanes> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    return unroll_across_lanes(function, analyses) ? llvm::PreservedAnalyses::none()
                                                   : llvm::PreservedAnalyses::all();
  }
};

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_target_machine(uint32_t target) {
  llvm::TargetOptions options;
  // Products are fused only where the source says fma: `mul.rn` and `add.rn`, which no assembler
  // contracts.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.ExceptionModel = llvm::ExceptionHandling::None;
  const std::string processor = "sm_" + std::to_string(target);
  std::unique_ptr<llvm::TargetMachine> machine(
      nvptx().createTargetMachine(triple, processor, "+ptx78", options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (target < 80 || !machine->getMCSubtargetInfo()->isCPUStringValid(processor))
    throw std::runtime_error(
        "[jit] kernels are compiled for sm_80 and later, as far as LLVM knows "
        "them, not for " +
        processor);
  return machine;
}

void thread_jumps(llvm::Function& function) {
  // Without a target machine: for targets whose branches diverge the pass does nothing.
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::JumpThreadingPass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.run(function, functions);
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  machine.registerPassBuilderCallbacks(builder);
  builder.registerVectorizerStartEPCallback(
      [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) {
        passes.addPass(UnrollAcrossLanes());
      });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

void merge_accesses(llvm::Function& function, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  // Addresses at constant distances from each other come to say so.
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SeparateConstOffsetFromGEPPass());
  passes.addPass(llvm::StraightLineStrengthReducePass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::LoadStoreVectorizerPass());
  passes.run(function, functions);
}

std::string emit_ptx(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile,
                                  /*DisableVerify=*/true))
    throw std::logic_error("[jit] this LLVM cannot emit PTX");
  passes.run(module);
  return without_call_numbers(without_unpacked_halves(text.str()));
}

}  // namespace holdfast::cuda
