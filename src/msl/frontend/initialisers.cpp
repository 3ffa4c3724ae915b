#include "msl/frontend/initialisers.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>

#include <set>

namespace holdfast::msl {
namespace {

constexpr const char* note = "holdfast.missing_function_constant";

void set_missing_function_constant(llvm::GlobalVariable& variable, uint64_t index) {
  llvm::LLVMContext& context = variable.getContext();
  llvm::Constant* number = llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), index);
  variable.setMetadata(note, llvm::MDNode::get(context, {llvm::ConstantAsMetadata::get(number)}));
}

// Takes their values from the variables that `initialiser` sets, and notes on them which function
// constant is to blame, the result: its index, where one was not given.
std::optional<uint64_t> drop_initialiser(llvm::Function& initialiser,
                                         std::set<const llvm::Function*>& done) {
  std::optional<uint64_t> missing;
  if (!done.insert(&initialiser).second) return missing;
  std::set<llvm::GlobalVariable*> variables;
  for (llvm::Instruction& instruction : llvm::instructions(initialiser)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (llvm::Function* callee = call != nullptr ? call->getCalledFunction() : nullptr) {
      std::optional<uint64_t> inner = drop_initialiser(*callee, done);
      auto* index = call->arg_size() == 1
                        ? llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(0))
                        : nullptr;
      if (callee->getName() == "__hf_undefined_function_constant" && index != nullptr)
        inner = index->getZExtValue();
      if (!missing) missing = inner;
    }
    for (llvm::Use& operand : instruction.operands()) {
      auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(operand->stripPointerCasts());
      if (variable == nullptr || variable->isConstant()) continue;
      variables.insert(variable);
      if (!missing) missing = missing_function_constant(*variable);
    }
  }
  for (llvm::GlobalVariable* variable : variables) {
    if (variable->isDeclaration()) continue;
    variable->setInitializer(nullptr);
    variable->setLinkage(llvm::GlobalValue::ExternalLinkage);
    if (missing) set_missing_function_constant(*variable, *missing);
  }
  return missing;
}

}  // namespace

void drop_initialisers(llvm::Module& module) {
  llvm::GlobalVariable* list = module.getNamedGlobal("llvm.global_ctors");
  if (list == nullptr) return;
  std::set<const llvm::Function*> done;
  if (auto* table = llvm::dyn_cast<llvm::ConstantArray>(list->getInitializer())) {
    for (const llvm::Use& row : table->operands()) {
      auto* fields = llvm::cast<llvm::ConstantStruct>(row);
      auto* function = llvm::dyn_cast<llvm::Function>(fields->getOperand(1)->stripPointerCasts());
      if (function != nullptr) drop_initialiser(*function, done);
    }
  }
  list->eraseFromParent();
}

std::optional<uint64_t> missing_function_constant(const llvm::GlobalVariable& variable) {
  const llvm::MDNode* node = variable.getMetadata(note);
  if (node == nullptr) return std::nullopt;
  return llvm::mdconst::extract<llvm::ConstantInt>(node->getOperand(0))->getZExtValue();
}

}  // namespace holdfast::msl
