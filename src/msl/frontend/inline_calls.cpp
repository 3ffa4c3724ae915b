#include "msl/frontend/inline_calls.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace holdfast::msl {
namespace {

// A function of so many instructions may be called, and it is when that saves so many of copies:
// a few exponentials in an inner loop stay where they are.
constexpr uint64_t worth_a_call = 24, worth_sharing = 200;
// The largest function with its calls inlined, in instructions. The time to compile one grows
// faster than its size: half as many take 20 s, as many a minute.
constexpr uint64_t most_instructions = 100'000;

bool is_plain_scalar(const llvm::Type* type) {
  return type->isFloatTy() || type->isIntegerTy(32) || type->isIntegerTy(64);
}

// A function of scalars that gives a scalar.
bool has_plain_signature(const llvm::Function& function) {
  if (function.isVarArg() || function.arg_empty() || !is_plain_scalar(function.getReturnType()))
    return false;
  return llvm::all_of(function.args(), [](const llvm::Argument& argument) {
    return is_plain_scalar(argument.getType());
  });
}

// Neither memory, nor other lanes, nor loops: the result depends on the arguments alone.
bool is_arithmetic(const llvm::Function& function) {
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    if (instruction.mayReadOrWriteMemory() || instruction.getType()->isVectorTy()) return false;
    if (llvm::isa<llvm::AllocaInst, llvm::UnreachableInst>(instruction)) return false;
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call != nullptr && !llvm::isa<llvm::IntrinsicInst>(call)) return false;
  }
  llvm::SmallVector<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>, 4> back_edges;
  llvm::FindFunctionBackedges(function, back_edges);
  return back_edges.empty();
}

llvm::Function* defined_callee(const llvm::CallBase& call) {
  llvm::Function* callee = call.getCalledFunction();
  return callee != nullptr && !callee->isDeclaration() ? callee : nullptr;
}

llvm::SmallVector<llvm::CallBase*, 16> calls_of_defined(llvm::Function& function) {
  llvm::SmallVector<llvm::CallBase*, 16> calls;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call != nullptr && defined_callee(*call) != nullptr) calls.push_back(call);
  }
  return calls;
}

bool is_constant_call(const llvm::CallBase& call) {
  return llvm::all_of(call.args(),
                      [](const llvm::Use& use) { return llvm::isa<llvm::Constant>(use); });
}

// False where it cannot be (variable arguments): check_scalar_ir says so.
bool inline_call(llvm::CallBase& call) {
  llvm::InlineFunctionInfo info;
  return llvm::InlineFunction(call, info, false, nullptr, false).isSuccess();
}

class Inliner {
 public:
  Inliner(llvm::FunctionPassManager& simplify, llvm::FunctionAnalysisManager& analyses)
      : simplify_(simplify), analyses_(analyses) {}

  std::string run(llvm::Function& entry) {
    visit(entry);
    // How often each would stand in the kernel, if everything were inlined: callers first.
    copies_[&entry] = 1;
    for (llvm::Function* function : llvm::reverse(order_)) {
      for (llvm::CallBase* call : calls_of_defined(*function)) {
        uint64_t& copies = copies_[defined_callee(*call)];
        if (!is_constant_call(*call))
          copies = llvm::SaturatingAdd(copies, copies_.lookup(function));
      }
    }
    for (llvm::Function* function : order_) {
      if (size_with_calls(*function) > most_instructions) {
        return "with the functions that it calls copied to where they are called, the kernel has "
               "more "
               "than " +
               std::to_string(most_instructions) + " instructions";
      }
      bring_together(*function, function == &entry);
    }
    return {};
  }

 private:
  // Those that it calls, then itself.
  void visit(llvm::Function& function) {
    if (!copies_.try_emplace(&function, 0).second) return;
    for (llvm::CallBase* call : calls_of_defined(function)) visit(*defined_callee(*call));
    order_.push_back(&function);
  }

  // What it will have, those that it calls having all of theirs.
  static uint64_t size_with_calls(llvm::Function& function) {
    uint64_t size = function.getInstructionCount();
    for (llvm::CallBase* call : calls_of_defined(function))
      size += defined_callee(*call)->getInstructionCount();
    return size;
  }

  void bring_together(llvm::Function& function, bool is_entry) {
    // Arithmetic is shared as a whole: nothing is shared inside it.
    const bool may_be_shared = !is_entry && has_plain_signature(function);
    for (bool is_done = false; !is_done;) {
      is_done = true;
      for (llvm::CallBase* call : calls_of_defined(function)) {
        const bool is_shared = is_shared_function(*defined_callee(*call));
        if (is_shared && !may_be_shared && !is_constant_call(*call)) continue;
        if (inline_call(*call)) is_done = false;
      }
    }
    // What is known of it is from before its calls were inlined (GlobalOpt leaves its analyses).
    analyses_.invalidate(function, llvm::PreservedAnalyses::none());
    simplify_.run(function, analyses_);
    analyses_.invalidate(function, llvm::PreservedAnalyses::none());
    if (!may_be_shared || !is_arithmetic(function)) return;
    const uint64_t copies = copies_.lookup(&function), size = function.getInstructionCount();
    if (copies < 2 || size < worth_a_call) return;
    if (llvm::SaturatingMultiply(copies - 1, size) < worth_sharing) return;
    function.setMemoryEffects(llvm::MemoryEffects::none());
    for (auto attribute :
         {llvm::Attribute::NoInline, llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn,
          llvm::Attribute::Speculatable, llvm::Attribute::NoSync, llvm::Attribute::NoFree}) {
      function.addFnAttr(attribute);
    }
  }

  llvm::FunctionPassManager& simplify_;
  llvm::FunctionAnalysisManager& analyses_;
  std::vector<llvm::Function*> order_;
  llvm::DenseMap<const llvm::Function*, uint64_t> copies_;
};

}  // namespace

std::string inline_calls(llvm::Function& entry, llvm::FunctionPassManager& simplify,
                         llvm::FunctionAnalysisManager& analyses) {
  return Inliner(simplify, analyses).run(entry);
}

bool is_shared_function(const llvm::Function& function) {
  return !function.isDeclaration() && function.hasInternalLinkage() &&
         function.hasFnAttribute(llvm::Attribute::NoInline) && function.doesNotAccessMemory() &&
         has_plain_signature(function);
}

void inline_shared_functions(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || is_shared_function(function)) continue;
    for (llvm::CallBase* call : calls_of_defined(function)) inline_call(*call);
  }
  for (llvm::Function& function : llvm::make_early_inc_range(module)) {
    if (is_shared_function(function) && function.use_empty()) function.eraseFromParent();
  }
}

}  // namespace holdfast::msl
