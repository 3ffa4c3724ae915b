#include "devices/cuda/compiler/address_spaces.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include "msl/scalar_ir.h"

namespace holdfast::cuda {
namespace {

class OtherForConstant : public llvm::ValueMapTypeRemapper {
 public:
  explicit OtherForConstant(unsigned space) : space_(space) {}
  llvm::Type* remapType(llvm::Type* type) override {
    llvm::LLVMContext& context = type->getContext();
    if (auto* pointer = llvm::dyn_cast<llvm::PointerType>(type)) {
      return pointer->getAddressSpace() == msl::address_space::constant
                 ? llvm::PointerType::get(context, space_)
                 : type;
    }
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type))
      return llvm::ArrayType::get(remapType(array->getElementType()), array->getNumElements());
    auto* record = llvm::dyn_cast<llvm::StructType>(type);
    if (!record) return type;
    llvm::SmallVector<llvm::Type*, 8> elements;
    for (llvm::Type* element : record->elements()) elements.push_back(remapType(element));
    if (elements == record->elements()) return type;
    return llvm::StructType::get(context, elements, record->isPacked());
  }

 private:
  const unsigned space_;
};

// The types of a copy are part of its name.
void rename(llvm::IntrinsicInst& call) {
  llvm::SmallVector<llvm::Type*, 4> types;
  if (auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&call)) {
    types = {copy->getRawDest()->getType(), copy->getRawSource()->getType(),
             copy->getLength()->getType()};
  } else if (auto* set = llvm::dyn_cast<llvm::MemSetInst>(&call)) {
    types = {set->getRawDest()->getType(), set->getLength()->getType()};
  } else {
    return;
  }
  call.setCalledFunction(
      llvm::Intrinsic::getDeclaration(call.getModule(), call.getIntrinsicID(), types));
}

}  // namespace

llvm::Function& replace_constant_memory(llvm::Function& kernel, unsigned space) {
  llvm::Module& module = *kernel.getParent();
  OtherForConstant types(space);
  llvm::ValueToValueMapTy values;
  const auto flags = llvm::RF_IgnoreMissingLocals | llvm::RF_ReuseAndMutateDistinctMDs;

  llvm::SmallVector<llvm::GlobalVariable*, 8> tables;
  for (llvm::GlobalVariable& global : module.globals()) {
    if (global.getAddressSpace() == msl::address_space::constant) tables.push_back(&global);
  }
  llvm::SmallVector<llvm::GlobalVariable*, 8> made;
  for (llvm::GlobalVariable* old : tables) {
    auto* table = new llvm::GlobalVariable(
        module, types.remapType(old->getValueType()), true, llvm::GlobalValue::InternalLinkage,
        nullptr, "", nullptr, llvm::GlobalValue::NotThreadLocal, msl::address_space::device);
    table->takeName(old);
    table->setAlignment(old->getAlign());
    made.push_back(table);
    values[old] = llvm::ConstantExpr::getPointerBitCastOrAddrSpaceCast(
        table, llvm::PointerType::get(module.getContext(), space));
  }
  for (size_t i = 0; i < tables.size(); ++i)
    made[i]->setInitializer(llvm::MapValue(tables[i]->getInitializer(), values, flags, &types));

  llvm::SmallVector<llvm::Type*, 16> parameters;
  for (llvm::Argument& argument : kernel.args())
    parameters.push_back(types.remapType(argument.getType()));
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(kernel.getReturnType(), parameters, false),
                             kernel.getLinkage(), "", module);
  function->takeName(&kernel);
  function->copyAttributesFrom(&kernel);
  function->splice(function->end(), &kernel);
  for (llvm::Argument& argument : kernel.args()) {
    llvm::Argument* replacement = function->getArg(argument.getArgNo());
    replacement->takeName(&argument);
    values[&argument] = replacement;
  }
  llvm::RemapFunction(*function, values, flags, &types);
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(*function))) {
    if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) rename(*call);
    auto* cast = llvm::dyn_cast<llvm::AddrSpaceCastInst>(&instruction);
    if (!cast || cast->getSrcAddressSpace() != cast->getDestAddressSpace()) continue;
    cast->replaceAllUsesWith(cast->getPointerOperand());
    cast->eraseFromParent();
  }
  kernel.eraseFromParent();
  for (llvm::GlobalVariable* old : tables) old->removeDeadConstantUsers();
  for (llvm::GlobalVariable* old : tables) {
    if (old->use_empty()) old->eraseFromParent();
  }
  return *function;
}

}  // namespace holdfast::cuda
