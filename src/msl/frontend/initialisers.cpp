#include "msl/frontend/initialisers.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <set>
#include <vector>

#include "msl/scalar_ir.h"

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

void store_elements(llvm::IRBuilder<>& builder, llvm::Constant* value, llvm::Value* target,
                    llvm::Align alignment, uint64_t offset, const llvm::DataLayout& layout) {
  auto* record = llvm::dyn_cast<llvm::StructType>(value->getType());
  auto* array = llvm::dyn_cast<llvm::ArrayType>(value->getType());
  if (record == nullptr && array == nullptr) {
    llvm::Value* place = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), target, offset);
    builder.CreateAlignedStore(value, place, llvm::commonAlignment(alignment, offset));
    return;
  }
  const uint64_t count = record != nullptr ? record->getNumElements() : array->getNumElements();
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t place =
        record != nullptr ? layout.getStructLayout(record)->getElementOffset(i).getFixedValue()
                          : i * layout.getTypeAllocSize(array->getElementType()).getFixedValue();
    store_elements(builder, value->getAggregateElement(i), target, alignment, offset + place,
                   layout);
  }
}

}  // namespace

bool holds_threadgroup_addresses(const llvm::Constant& value) {
  if (auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&value))
    return variable->getAddressSpace() == address_space::threadgroup;
  return std::any_of(value.op_begin(), value.op_end(), [](const llvm::Use& operand) {
    auto* part = llvm::dyn_cast<llvm::Constant>(operand.get());
    return part != nullptr && holds_threadgroup_addresses(*part);
  });
}

void store_threadgroup_addresses(llvm::Module& module) {
  const llvm::DataLayout& layout = module.getDataLayout();
  std::vector<std::pair<llvm::MemTransferInst*, llvm::GlobalVariable*>> copies;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&instruction);
      auto* table =
          copy != nullptr
              ? llvm::dyn_cast<llvm::GlobalVariable>(copy->getRawSource()->stripPointerCasts())
              : nullptr;
      if (table == nullptr || !table->isConstant() || !table->hasInitializer() ||
          !holds_threadgroup_addresses(*table->getInitializer()))
        continue;
      auto* length = llvm::dyn_cast<llvm::ConstantInt>(copy->getLength());
      if (length != nullptr &&
          length->getZExtValue() == layout.getTypeAllocSize(table->getValueType()))
        copies.emplace_back(copy, table);
    }
  }
  for (auto [copy, table] : copies) {
    llvm::IRBuilder<> builder(copy);
    store_elements(builder, table->getInitializer(), copy->getRawDest(),
                   copy->getDestAlign().valueOrOne(), 0, layout);
    copy->eraseFromParent();
  }
}

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
