#include "devices/cpu/jit/compiler/widen/loop_facts.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {
namespace {

bool must_poll(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
  constexpr unsigned few = 4096;
  unsigned most = evolution.getSmallConstantMaxTripCount(&loop);
  bool is_short = most != 0 && most <= few;
  bool is_bounded = loop.isInnermost() && evolution.hasLoopInvariantBackedgeTakenCount(&loop);
  return !is_short && !is_bounded;
}

bool depends_on_group(const llvm::SCEV* expression) {
  return llvm::SCEVExprContains(expression, [](const llvm::SCEV* part) {
    auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part);
    return unknown &&
           is_call_of(*unknown->getValue(), msl::Intrinsic::threadgroup_position_in_grid);
  });
}

}  // namespace

LoopFacts::LoopFacts(llvm::Function& function, ControlFlow& flow) {
  llvm::TargetLibraryInfoImpl library(llvm::Triple(function.getParent()->getTargetTriple()));
  llvm::TargetLibraryInfo info(library);
  llvm::AssumptionCache assumptions(function);
  llvm::ScalarEvolution evolution(function, info, assumptions, flow.dominators, flow.loops);
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  llvm::DenseSet<std::pair<const llvm::SCEV*, const llvm::SCEV*>> walks;
  for (llvm::Loop* loop : flow.loops.getLoopsInPreorder()) {
    if (must_poll(*loop, evolution)) polled.insert(loop->getHeader());
    if (!loop->isInnermost()) continue;
    for (llvm::BasicBlock* block : loop->blocks()) {
      for (llvm::Instruction& instruction : *block) {
        const llvm::Value* pointer = llvm::getLoadStorePointerOperand(&instruction);
        if (!pointer) continue;
        auto* walk = llvm::dyn_cast<llvm::SCEVAddRecExpr>(
            evolution.getSCEV(const_cast<llvm::Value*>(pointer)));
        if (!walk || walk->getLoop() != loop || !walk->isAffine()) continue;
        const llvm::SCEV *start = walk->getStart(), *step = walk->getStepRecurrence(evolution);
        uint64_t own =
            layout.getTypeStoreSize(llvm::getLoadStoreType(&instruction)) * simdgroup_width;
        auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(step);
        if (constant && constant->getAPInt().abs().ult(2 * own)) continue;
        if (depends_on_group(start) && walks.insert({start, step}).second)
          strided.insert(&instruction);
      }
    }
  }
}

}  // namespace holdfast::jit
