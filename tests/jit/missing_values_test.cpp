// The check of what the emitter wrote, on functions that somebody could have emitted.
#include "devices/cpu/jit/compiler/widen/missing_values.h"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <stdexcept>

namespace {

using namespace holdfast::jit;

// A variable that is stored to on the ways that are asked for, and read at the end: by a sum, or by
// a select that adds lanes to it. The left way has a loop.
struct Kernel {
  Kernel(bool stores_left, bool stores_right, bool merges) {
    auto* integer = llvm::Type::getInt32Ty(context);
    auto* type = llvm::FunctionType::get(integer, {llvm::Type::getInt1Ty(context), integer}, false);
    function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module);
    llvm::Argument *condition = function->getArg(0), *number = function->getArg(1);
    auto block = [&](const char* name) {
      return llvm::BasicBlock::Create(context, name, function);
    };
    llvm::BasicBlock *entry = block("entry"), *left = block("left"), *right = block("right"),
                     *end = block("end");
    llvm::IRBuilder<> b(entry);
    llvm::AllocaInst* variable = b.CreateAlloca(integer, nullptr, "index");
    auto* branch = b.CreateCondBr(condition, left, right);
    b.SetInsertPoint(branch);
    b.CreateStore(missing.marker_of(variable), variable);
    b.SetInsertPoint(left);
    if (stores_left) b.CreateStore(number, variable);
    b.CreateCondBr(condition, left, end);
    b.SetInsertPoint(right);
    if (stores_right) b.CreateStore(number, variable);
    b.CreateBr(end);
    b.SetInsertPoint(end);
    llvm::Value* held = b.CreateLoad(integer, variable);
    b.CreateRet(merges ? b.CreateSelect(condition, number, held) : b.CreateAdd(held, number));
    llvm::DominatorTree dominators(*function);
    llvm::PromoteMemToReg({variable}, dominators);
  }
  void check() {
    llvm::DominatorTree dominators(*function);
    missing.check_and_erase(dominators);
  }
  llvm::LLVMContext context;
  llvm::Module module{"m", context};
  llvm::Function* function = nullptr;
  MissingValues missing;
};

}  // namespace

TEST_CASE("missing values: what never arrives is found, and named") {
  CHECK_THROWS_WITH_AS(Kernel(false, false, false).check(),
                       doctest::Contains("a value is missing: index never arrives in block end"),
                       std::logic_error);
}

TEST_CASE("missing values: what arrives on some ways may be skipped on others") {
  for (auto [left, right] : {std::pair{true, false}, {false, true}, {true, true}}) {
    Kernel kernel(left, right, false);
    CHECK_NOTHROW(kernel.check());
    // No marker is left, and a phi of one value and nothing is that value.
    for (const llvm::BasicBlock& block : *kernel.function) {
      for (const llvm::Instruction& instruction : block)
        CHECK_FALSE(llvm::isa<llvm::FreezeInst, llvm::PHINode>(instruction));
    }
  }
}

TEST_CASE("missing values: lanes are added to what holds none yet") {
  CHECK_NOTHROW(Kernel(false, false, true).check());
}
