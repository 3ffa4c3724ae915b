#include "devices/cpu/jit/compiler/codegen.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/DataExtractor.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/BDCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LowerMemIntrinsics.h>

#include <algorithm>
#include <stdexcept>

namespace holdfast::jit {
namespace {

constexpr const char* triple = "x86_64-unknown-linux-gnu";

// What each instruction set may use: x86-64, x86-64-v3, x86-64-v4. Not avx512bf16 (it flushes
// denormals) and not avx512fp16 (it rounds fma once where float arithmetic rounds twice).
struct Features {
  const char* processor;
  const char* features;
};
Features features_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return {"x86-64", ""};
    case InstructionSet::avx2:
      return {"x86-64-v3", ""};
    case InstructionSet::avx512:
      break;
  }
  return {"x86-64-v4", "-prefer-256-bit"};
}

// Sets an option that LLVM has for its command line alone.
void set_option(llvm::StringRef name, llvm::StringRef value) {
  llvm::StringMap<llvm::cl::Option*>& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find(name);
  if (found == options.end() || found->second->addOccurrence(0, name, value))
    throw std::runtime_error("[jit] this LLVM has no option " + name.str());
}

const llvm::Target& target() {
  static const llvm::Target* found = [] {
    // A third of the time for large kernels, at no cost to their code: splitting of live ranges
    // across many blocks, which rarely pays, and moving chains of masks to other registers, of
    // which there are none.
    set_option("grow-region-complexity-budget", "100");
    set_option("disable-x86-domain-reassignment", "true");
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    std::string error;
    const llvm::Target* result = llvm::TargetRegistry::lookupTarget(triple, error);
    if (!result) throw std::runtime_error("[jit] this LLVM cannot generate x86-64 code: " + error);
    return result;
  }();
  return *found;
}

// Constant copies up to here are a few moves; longer ones are a loop.
constexpr uint64_t inline_bytes = 128;

void expand(llvm::MemIntrinsic& intrinsic) {
  auto* length = llvm::dyn_cast<llvm::ConstantInt>(intrinsic.getLength());
  if (length && length->getZExtValue() <= inline_bytes &&
      !llvm::isa<llvm::MemMoveInst>(intrinsic)) {
    llvm::Intrinsic::ID id = llvm::isa<llvm::MemSetInst>(intrinsic)
                                 ? llvm::Intrinsic::memset_inline
                                 : llvm::Intrinsic::memcpy_inline;
    llvm::SmallVector<llvm::Type*, 3> types{intrinsic.getRawDest()->getType()};
    if (id == llvm::Intrinsic::memcpy_inline)
      types.push_back(llvm::cast<llvm::MemCpyInst>(intrinsic).getRawSource()->getType());
    types.push_back(length->getType());
    intrinsic.setCalledFunction(llvm::Intrinsic::getDeclaration(intrinsic.getModule(), id, types));
    return;
  }
  llvm::TargetTransformInfo costs(intrinsic.getModule()->getDataLayout());
  if (auto* copy = llvm::dyn_cast<llvm::MemCpyInst>(&intrinsic)) {
    llvm::expandMemCpyAsLoop(copy, costs);
  } else if (auto* move = llvm::dyn_cast<llvm::MemMoveInst>(&intrinsic)) {
    if (!llvm::expandMemMoveAsLoop(move, costs))
      throw std::logic_error("[jit] memmove between address spaces");
  } else {
    llvm::expandMemSetAsLoop(llvm::cast<llvm::MemSetInst>(&intrinsic));
  }
  intrinsic.eraseFromParent();
}

[[noreturn]] void unreadable() {
  throw std::logic_error("[jit] LLVM emitted an object that it cannot read");
}

// The names of the symbols that the object wants from outside.
std::string undefined_symbols(const llvm::object::ObjectFile& object) {
  std::string names;
  for (const llvm::object::SymbolRef& symbol : object.symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) unreadable();
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty())
      names += (names.empty() ? "" : ", ") + name->str();
  }
  return names;
}

// The largest entry of .stack_sizes: pairs of an address and a number in LEB128.
uint32_t largest_stack(const llvm::object::ObjectFile& object) {
  uint64_t largest = 0;
  for (const llvm::object::SectionRef& section : object.sections()) {
    auto name = section.getName();
    if (!name) unreadable();
    if (*name != ".stack_sizes") continue;
    auto contents = section.getContents();
    if (!contents) unreadable();
    llvm::DataExtractor data(*contents, /*IsLittleEndian=*/true, sizeof(uint64_t));
    llvm::DataExtractor::Cursor cursor(0);
    while (cursor && !data.eof(cursor)) {
      data.getAddress(cursor);
      largest = std::max(largest, data.getULEB128(cursor));
    }
    if (!cursor) {
      llvm::consumeError(cursor.takeError());
      unreadable();
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(largest, UINT32_MAX));
}

llvm::SmallVector<char, 0> emit(llvm::Module& module, llvm::TargetMachine& machine,
                                llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true))
    throw std::logic_error("[jit] this LLVM cannot emit objects");
  passes.run(module);
  return bytes;
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_target_machine(InstructionSet set) {
  Features f = features_of(set);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.ExceptionModel = llvm::ExceptionHandling::None;
  options.EnableFastISel = false;
  options.UniqueSectionNames = false;
  options.EmitStackSizeSection = true;
  auto* machine =
      target().createTargetMachine(triple, f.processor, f.features, options, llvm::Reloc::PIC_,
                                   llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default);
  return std::unique_ptr<llvm::TargetMachine>(machine);
}

void set_target(llvm::Module& module, llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  // Data is addressed relative to the code, never through a table.
  if (module.getPICLevel() == llvm::PICLevel::NotPIC) module.setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::GlobalVariable& global : module.globals()) {
    if (!global.isDeclaration()) global.setLinkage(llvm::GlobalValue::InternalLinkage);
    global.setDSOLocal(true);
  }
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.setDSOLocal(true);
    for (const char* stale : {"tune-cpu", "frame-pointer", "probe-stack",
                              "stack-protector-buffer-size", "no-trapping-math", "unsafe-fp-math",
                              "no-nans-fp-math", "no-infs-fp-math", "no-signed-zeros-fp-math"}) {
      function.removeFnAttr(stale);
    }
    // With AVX-512, the registers that this convention keeps lack rbp, but a caller that has a
    // frame pointer takes it for kept. A function with a frame of its own does keep it.
    if (function.getCallingConv() == llvm::CallingConv::Intel_OCL_BI)
      function.addFnAttr("frame-pointer", "all");
    function.removeFnAttr(llvm::Attribute::UWTable);
    function.removeFnAttr(llvm::Attribute::OptimizeNone);
    function.removeFnAttr(llvm::Attribute::StackProtect);
    function.removeFnAttr(llvm::Attribute::StackProtectStrong);
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    std::string features = machine.getTargetFeatureString().str();
    // What it has restored must not be cleared at its end.
    if (function.hasFnAttribute(keeps_registers))
      features += std::string(features.empty() ? "" : ",") + "-vzeroupper";
    function.addFnAttr("target-features", features);
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
    function.addFnAttr("no-builtins");
    function.addFnAttr("no-jump-tables", "false");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
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

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::LoopPassManager loop_passes;
  loop_passes.addPass(llvm::LoopRotatePass());
  loop_passes.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(
      llvm::createFunctionToLoopPassAdaptor(std::move(loop_passes), /*UseMemorySSA=*/true));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::BDCEPass());
  passes.addPass(llvm::DSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

void expand_memory_intrinsics(llvm::Function& function) {
  llvm::SmallVector<llvm::MemIntrinsic*, 8> found;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      auto* intrinsic = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction);
      if (!intrinsic || llvm::isa<llvm::MemCpyInlineInst>(intrinsic) ||
          llvm::isa<llvm::MemSetInlineInst>(intrinsic)) {
        continue;
      }
      found.push_back(intrinsic);
    }
  }
  for (llvm::MemIntrinsic* intrinsic : found) expand(*intrinsic);
}

std::string assembly_of(const llvm::Module& module, llvm::TargetMachine& machine) {
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  for (llvm::Function& function : *copy) {
    if (!function.isDeclaration()) expand_memory_intrinsics(function);
  }
  llvm::SmallVector<char, 0> text = emit(*copy, machine, llvm::CodeGenFileType::AssemblyFile);
  return std::string(text.begin(), text.end());
}

ObjectCode emit_object(llvm::Module& module, llvm::TargetMachine& machine) {
  ObjectCode code;
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) expand_memory_intrinsics(function);
  }
  llvm::SmallVector<char, 0> bytes = emit(module, machine, llvm::CodeGenFileType::ObjectFile);
  auto object = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(bytes.data(), bytes.size()), "kernel"));
  if (!object) {
    llvm::consumeError(object.takeError());
    unreadable();
  }
  std::string missing = undefined_symbols(**object);
  if (!missing.empty()) {
    throw std::logic_error("[jit] the kernel's code would need " + missing +
                           " from outside: a bug of the kernel compiler");
  }
  code.stack_bytes = largest_stack(**object);
  code.bytes.assign(bytes.begin(), bytes.end());
  return code;
}

}  // namespace holdfast::jit
