#include "msl/frontend/scalar_pipeline.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/AttributeMask.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/IPO/GlobalOpt.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/InferAddressSpaces.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/LowerExpectIntrinsic.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "msl/frontend/define_arithmetic.h"
#include "msl/frontend/frontend.h"
#include "msl/frontend/initialisers.h"
#include "msl/frontend/inline_calls.h"
#include "msl/scalar_ir.h"

namespace holdfast::msl {
namespace {

enum class Behaviour { uniform, simdgroup, lane, value, memory, cross_lane, barrier };

struct Row {
  std::string_view name;
  Behaviour behaviour;
};
constexpr Row rows[] = {
#define X(name, result, parameters, behaviour) {"__hf_" #name, Behaviour::behaviour},
#include "msl/intrinsics.def"
#undef X
};

const Row* row_of(const llvm::Function& function) {
  for (const Row& row : rows) {
    if (function.getName() == llvm::StringRef(row.name)) return &row;
  }
  return nullptr;
}

// Layout without a target: sizes and alignments that x86-64 and AArch64 share. Lowerings set their
// own.
constexpr const char* neutral_layout = "e-i64:64-i128:128-n8:16:32:64-S128";

// Attributes of the front-end's target mean nothing to those who follow. SYCL mode marks everything
// convergent: only barriers and cross-lane calls are. `noundef` would make undefined behaviour of
// reading a variable that was never set.
void reset_attributes(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  module.setTargetTriple("");
  module.setDataLayout(neutral_layout);
  llvm::AttributeMask no_undef;
  no_undef.addAttribute(llvm::Attribute::NoUndef);
  auto without_no_undef = [&](llvm::AttributeList list, unsigned arguments) {
    list = list.removeRetAttributes(context, no_undef);
    for (unsigned i = 0; i < arguments; ++i)
      list = list.removeParamAttributes(context, i, no_undef);
    return list;
  };
  for (llvm::Function& function : module) {
    if (function.isIntrinsic()) continue;
    llvm::AttrBuilder kept(context);
    kept.addAttribute(llvm::Attribute::NoUnwind);
    const Row* row = function.isDeclaration() ? row_of(function) : nullptr;
    if (row != nullptr) {
      kept.addAttribute(llvm::Attribute::NoCallback).addAttribute(llvm::Attribute::WillReturn);
      const bool touches_memory =
          row->behaviour == Behaviour::barrier || row->behaviour == Behaviour::memory;
      if (!touches_memory) kept.addMemoryAttr(llvm::MemoryEffects::none());
      if (row->behaviour == Behaviour::cross_lane || row->behaviour == Behaviour::barrier) {
        kept.addAttribute(llvm::Attribute::Convergent).addAttribute(llvm::Attribute::NoMerge);
      } else if (!touches_memory) {
        kept.addAttribute(llvm::Attribute::Speculatable).addAttribute(llvm::Attribute::NoSync);
      }
    }
    function.setAttributes(without_no_undef(function.getAttributes().removeFnAttributes(context),
                                            static_cast<unsigned>(function.arg_size()))
                               .addFnAttributes(context, kept));
    function.setComdat(nullptr);
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call == nullptr) continue;
      call->setAttributes(
          without_no_undef(call->getAttributes().removeFnAttributes(context), call->arg_size()));
    }
  }
}

// Whether `function` can come to call itself.
bool is_recursive(const llvm::Function& function, std::set<const llvm::Function*>& open,
                  std::set<const llvm::Function*>& done, std::string& name) {
  if (done.count(&function)) return false;
  if (!open.insert(&function).second) {
    name = function.getName().str();
    return true;
  }
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const llvm::Function* callee = call != nullptr ? call->getCalledFunction() : nullptr;
    if (callee != nullptr && !callee->isDeclaration() && is_recursive(*callee, open, done, name)) {
      return true;
    }
  }
  open.erase(&function);
  done.insert(&function);
  return false;
}

// Tables without an address space of their own (constexpr arrays, initial values of private ones)
// are globals in the device's space for SYCL; they are constants for us.
void move_tables(llvm::Module& module) {
  std::vector<llvm::GlobalVariable*> tables;
  for (llvm::GlobalVariable& global : module.globals()) {
    if (global.getAddressSpace() == address_space::device && global.isConstant() &&
        global.hasInitializer()) {
      tables.push_back(&global);
    }
  }
  for (llvm::GlobalVariable* old : tables) {
    auto* table = new llvm::GlobalVariable(
        module, old->getValueType(), true, llvm::GlobalValue::InternalLinkage,
        old->getInitializer(), "", nullptr, llvm::GlobalValue::NotThreadLocal,
        address_space::constant);
    table->takeName(old);
    table->setAlignment(old->getAlign());
    // Almost always the table is cast to the generic space at once; a use as a device pointer goes
    // through that space.
    llvm::Constant* generic = llvm::ConstantExpr::getAddrSpaceCast(
        table, llvm::PointerType::get(module.getContext(), address_space::generic));
    for (llvm::User* user : llvm::make_early_inc_range(old->users())) {
      auto* cast = llvm::dyn_cast<llvm::ConstantExpr>(user);
      if (cast != nullptr && cast->getOpcode() == llvm::Instruction::AddrSpaceCast &&
          cast->getType()->getPointerAddressSpace() == address_space::generic) {
        cast->replaceAllUsesWith(generic);
      }
    }
    old->removeDeadConstantUsers();
    for (llvm::User* user : llvm::make_early_inc_range(old->users())) {
      auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(user);
      if (copy == nullptr || copy->getRawSource() != old) continue;
      llvm::IRBuilder<> builder(copy);
      builder.CreateMemCpy(copy->getRawDest(), copy->getDestAlign(), table, copy->getSourceAlign(),
                           copy->getLength(), copy->isVolatile());
      copy->eraseFromParent();
    }
    if (!old->use_empty()) {
      old->replaceAllUsesWith(llvm::ConstantExpr::getAddrSpaceCast(generic, old->getType()));
    }
    old->eraseFromParent();
  }
}

// Gives calls of a function without parameters their value.
void answer(llvm::Module& module, const char* question, bool value) {
  llvm::Function* query = module.getFunction(question);
  if (query == nullptr) return;
  for (llvm::User* user : llvm::make_early_inc_range(query->users())) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(user);
    if (call == nullptr || call->getCalledFunction() != query) continue;
    call->replaceAllUsesWith(llvm::ConstantInt::get(call->getType(), value));
    call->eraseFromParent();
  }
}

// Everything but `entry` becomes private to the module, threadgroup memory starts undefined, and
// operations that C++ leaves undefined get Metal's meaning.
void prepare(llvm::Module& module, llvm::Function& entry, MathMode math,
             const LoweringTraits& traits) {
  answer(module, "__hf_is_fast_math", math == MathMode::fast);
  answer(module, "__hf_has_approximations", traits.has_approximations);
  answer(module, "__hf_has_tile_instructions", traits.has_tile_instructions);
  answer(module, "__hf_has_tile_memory", traits.has_tile_memory);
  answer(module, "__hf_has_log", !traits.drops_messages);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.setLinkage(&function == &entry ? llvm::GlobalValue::ExternalLinkage
                                            : llvm::GlobalValue::InternalLinkage);
  }
  for (llvm::GlobalVariable& global : module.globals()) {
    if (global.isDeclaration() || global.getName().starts_with("llvm.")) continue;
    global.setComdat(nullptr);
    global.setLinkage(llvm::GlobalValue::InternalLinkage);
    if (global.getAddressSpace() == address_space::threadgroup) {
      global.setInitializer(llvm::UndefValue::get(global.getValueType()));
    }
  }
  for (llvm::Function& function : module) {
    define_arithmetic(function);
    for (llvm::Instruction& instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      llvm::IRBuilder<> builder(&instruction);
      if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
          call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::fmuladd) {
        // Products are fused only where the source says fma.
        llvm::Value* product = builder.CreateFMul(call->getArgOperand(0), call->getArgOperand(1));
        call->replaceAllUsesWith(builder.CreateFAdd(product, call->getArgOperand(2)));
        call->eraseFromParent();
      }
    }
  }
}

// Nothing writes to constant memory while a kernel runs: its loads move past stores, out of loops.
void mark_constant_loads(llvm::Function& entry) {
  llvm::MDNode* nothing = llvm::MDNode::get(entry.getContext(), {});
  for (llvm::Instruction& instruction : llvm::instructions(entry)) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (load != nullptr && load->getPointerAddressSpace() == address_space::constant) {
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
    }
  }
}
struct ConstantLoadsPass : llvm::PassInfoMixin<ConstantLoadsPass> {
  static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    mark_constant_loads(function);
    return llvm::PreservedAnalyses::all();
  }
};

void add_optimising_passes(llvm::FunctionPassManager& passes,
                           const llvm::SimplifyCFGOptions& options) {
  auto clean = [&] {
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::EarlyCSEPass(true));
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::SimplifyCFGPass(options));
  };
  clean();
  passes.addPass(llvm::InferAddressSpacesPass(address_space::generic));
  passes.addPass(ConstantLoadsPass());
  clean();
  {
    llvm::LoopPassManager rotation;
    rotation.addPass(llvm::LoopRotatePass());
    rotation.addPass(llvm::LICMPass(llvm::LICMOptions()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(rotation), true));
  }
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass(options));
  {
    llvm::LoopPassManager unrolling;
    unrolling.addPass(llvm::IndVarSimplifyPass());
    unrolling.addPass(llvm::LoopDeletionPass());
    unrolling.addPass(llvm::LoopFullUnrollPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(unrolling)));
  }
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InferAddressSpacesPass(address_space::generic));
  passes.addPass(ConstantLoadsPass());
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::DSEPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::SimplifyCFGPass(options));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass(options));
}

// Values in registers, address spaces known, nothing unreachable; memory as ScalarForm::as_written
// has it.
void add_passes_as_written(llvm::FunctionPassManager& passes,
                           const llvm::SimplifyCFGOptions& options) {
  for (int round = 0; round < 2; ++round) {
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    passes.addPass(llvm::EarlyCSEPass());
    passes.addPass(llvm::SimplifyCFGPass(options));
    passes.addPass(llvm::InferAddressSpacesPass(address_space::generic));
  }
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
}

// Streaming loads of vectors, element by element: the scalarizer would forget what they are.
void split_streaming_loads(llvm::Function& entry) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(entry))) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (load == nullptr || !load->hasMetadata(llvm::LLVMContext::MD_nontemporal)) continue;
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(load->getType());
    if (type == nullptr) continue;
    llvm::IRBuilder<> builder(load);
    llvm::Type* element = type->getElementType();
    const uint64_t size = element->getPrimitiveSizeInBits() / 8;
    llvm::Value* value = llvm::PoisonValue::get(type);
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
      llvm::LoadInst* part =
          builder.CreateAlignedLoad(element,
                                    builder.CreateConstInBoundsGEP1_64(
                                        builder.getInt8Ty(), load->getPointerOperand(), i * size),
                                    llvm::commonAlignment(load->getAlign(), i * size));
      part->copyMetadata(*load);
      value = builder.CreateInsertElement(value, part, i);
    }
    load->replaceAllUsesWith(value);
    load->eraseFromParent();
  }
}

// Returns what keeps the kernel from being compiled, as make_scalar does.
std::string run_passes(llvm::Module& module, llvm::Function& entry, ScalarForm form) {
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

  const bool as_written = form == ScalarForm::as_written;
  const auto options = llvm::SimplifyCFGOptions()
                           .convertSwitchToLookupTable(false)
                           .hoistCommonInsts(false)
                           .sinkCommonInsts(false)
                           .speculateBlocks(!as_written)
                           .setSimplifyCondBranch(!as_written);
  {
    if (module.getNamedGlobal("llvm.global_ctors") != nullptr) {
      llvm::ModulePassManager initialising;
      initialising.addPass(llvm::GlobalOptPass());
      initialising.run(module, modules);
      drop_initialisers(module);
    }
    llvm::FunctionPassManager small;
    small.addPass(llvm::LowerExpectIntrinsicPass());
    small.addPass(
        llvm::SROAPass(as_written ? llvm::SROAOptions::PreserveCFG : llvm::SROAOptions::ModifyCFG));
    small.addPass(llvm::EarlyCSEPass());
    small.addPass(llvm::SimplifyCFGPass(options));
    if (std::string problem = inline_calls(entry, small, functions); !problem.empty())
      return problem;
    llvm::ModulePassManager unused;
    unused.addPass(llvm::GlobalDCEPass());
    unused.run(module, modules);
  }

  llvm::FunctionPassManager passes;
  if (as_written) {
    add_passes_as_written(passes, options);
  } else {
    add_optimising_passes(passes, options);
  }
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }

  const bool has_vectors =
      std::any_of(llvm::inst_begin(entry), llvm::inst_end(entry), [](const llvm::Instruction& i) {
        return i.getType()->isVectorTy() ||
               std::any_of(i.op_begin(), i.op_end(),
                           [](const llvm::Use& use) { return use->getType()->isVectorTy(); });
      });
  if (has_vectors) {
    split_streaming_loads(entry);
    llvm::ScalarizerPassOptions every;
    every.ScalarizeLoadStore = true;
    llvm::FunctionPassManager scalars;
    scalars.addPass(llvm::ScalarizerPass(every));
    if (!as_written) scalars.addPass(llvm::InstCombinePass());
    scalars.run(entry, functions);
  }
  llvm::ModulePassManager last;
  last.addPass(llvm::GlobalDCEPass());
  last.run(module, modules);
  return {};
}

// Formats of messages become the strings themselves. Returns what is wrong, as make_scalar does.
std::string find_formats(llvm::Module& module) {
  llvm::Function* log = module.getFunction("__hf_log");
  if (log == nullptr) return {};
  for (llvm::User* user : log->users()) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(user);
    if (call == nullptr || call->getCalledFunction() != log) continue;
    auto* text = llvm::dyn_cast<llvm::GlobalVariable>(call->getArgOperand(0)->stripPointerCasts());
    auto* bytes = text != nullptr && text->hasDefinitiveInitializer()
                      ? llvm::dyn_cast<llvm::ConstantDataSequential>(text->getInitializer())
                      : nullptr;
    const bool is_empty = text != nullptr && text->hasDefinitiveInitializer() &&
                          text->getInitializer()->isNullValue();
    if (!is_empty && (bytes == nullptr || !bytes->isCString())) {
      return "the format of a message (os_log) must be a string literal";
    }
    if (text->getAddressSpace() == address_space::constant) call->setArgOperand(0, text);
  }
  return {};
}

// Flags of fast modes have done their work: what is left must compute the same in every lowering.
// A path that C++ says is never taken ends the thread instead of running into what follows.
void finish(llvm::Function& function, const LoweringTraits& traits) {
  llvm::LLVMContext& context = function.getContext();
  mark_constant_loads(function);
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (llvm::isa<llvm::FPMathOperator>(instruction)) {
      instruction.copyFastMathFlags(llvm::FastMathFlags());
    }
    const bool is_bounded = !traits.keeps_source_alignment;
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && is_bounded) {
      load->setAlignment(std::min(load->getAlign(), layout.getABITypeAlign(load->getType())));
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction); store && is_bounded) {
      store->setAlignment(
          std::min(store->getAlign(), layout.getABITypeAlign(store->getValueOperand()->getType())));
    }
    if (llvm::isa<llvm::UnreachableInst>(instruction)) {
      llvm::Type* type = function.getReturnType();
      llvm::Value* result = type->isVoidTy() ? nullptr : llvm::Constant::getNullValue(type);
      llvm::ReturnInst::Create(context, result, &instruction);
      instruction.eraseFromParent();
    }
  }
}

void finish(llvm::Module& module, llvm::Function& entry, const LoweringTraits& traits) {
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) finish(function, traits);
  }
  llvm::LLVMContext& context = module.getContext();
  llvm::AttributeList attributes;
  llvm::AttrBuilder kept(context);
  kept.addAttribute(llvm::Attribute::NoUnwind);
  entry.setAttributes(attributes.addFnAttributes(context, kept));
  for (const char* name : {"opencl.ocl.version", "opencl.spir.version", "llvm.ident",
                           "llvm.module.flags", "opencl.cxx.version"}) {
    if (llvm::NamedMDNode* node = module.getNamedMetadata(name)) module.eraseNamedMetadata(node);
  }
}

// Whether something is stored through `pointer`; `if_unknown` where it gets out of sight.
bool is_written(const llvm::Value& pointer, bool if_unknown, std::set<const llvm::Value*>& seen) {
  if (!seen.insert(&pointer).second) return false;
  for (const llvm::Use& use : pointer.uses()) {
    const auto* user = llvm::cast<llvm::Instruction>(use.getUser());
    switch (user->getOpcode()) {
      case llvm::Instruction::Load:
      case llvm::Instruction::ICmp:
        break;
      case llvm::Instruction::Store:
        if (use.getOperandNo() == 1 || if_unknown) return true;
        break;
      case llvm::Instruction::AtomicRMW:
      case llvm::Instruction::AtomicCmpXchg:
        return true;
      case llvm::Instruction::GetElementPtr:
      case llvm::Instruction::AddrSpaceCast:
      case llvm::Instruction::BitCast:
      case llvm::Instruction::PHI:
      case llvm::Instruction::Select:
      case llvm::Instruction::Freeze:
        if (is_written(*user, if_unknown, seen)) return true;
        break;
      default:
        if (const auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(user)) {
          if (copy->getRawDest() == &pointer) return true;
        } else if (llvm::isa<llvm::MemSetInst>(user) || if_unknown) {
          return true;
        }
    }
  }
  return false;
}

void describe(const llvm::Module& module, const llvm::Function& entry, KernelInterface& interface) {
  for (const llvm::Argument& argument : entry.args()) {
    KernelArgument& described = interface.arguments[argument.getArgNo()];
    std::set<const llvm::Value*> seen;
    // Declared const, it is written only where IR shows it (a cast away of const).
    described.written = is_written(argument, described.written, seen);
  }
  uint64_t bytes = 0;
  const llvm::DataLayout& layout = module.getDataLayout();
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (global.getAddressSpace() != address_space::threadgroup) continue;
    const llvm::Align align = global.getAlign().value_or(llvm::Align(16));
    bytes = llvm::alignTo(bytes, align) + layout.getTypeAllocSize(global.getValueType());
  }
  interface.threadgroup_bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
}

}  // namespace

std::string make_scalar(llvm::Module& module, const char* symbol, MathMode math, ScalarForm form,
                        const LoweringTraits& traits, KernelInterface& interface) {
  llvm::Function* entry = module.getFunction(symbol);
  if (entry == nullptr || entry->isDeclaration()) return "the kernel has no code";
  if (!module.getModuleInlineAsm().empty()) return "inline assembly is not part of the language";
  reset_attributes(module);
  std::set<const llvm::Function*> open, done;
  std::string name;
  if (is_recursive(*entry, open, done, name)) {
    return "recursion is not part of the language: " + name + " calls itself";
  }
  move_tables(module);
  store_threadgroup_addresses(module);
  prepare(module, *entry, math, traits);
  if (std::string problem = run_passes(module, *entry, form); !problem.empty()) return problem;
  if (std::string problem = find_formats(module); !problem.empty()) return problem;
  finish(module, *entry, traits);
  entry->setName(interface.entry);
  describe(module, *entry, interface);
  return check_scalar_ir(module, interface);
}

}  // namespace holdfast::msl
