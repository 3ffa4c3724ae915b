#include "devices/cuda/compiler/polling.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <cstddef>

#include "devices/cuda/ptx_kernel.h"
#include "msl/scalar_ir.h"

namespace holdfast::cuda {
namespace {

using llvm::BasicBlock;
using llvm::IRBuilder;
using llvm::Value;

// Whether the dispatch is cancelled.
Value* is_cancelled(IRBuilder<>& b, llvm::Function& entry) {
  Value* launch = entry.getArg(static_cast<unsigned>(entry.arg_size()) - 1);
  Value* address = b.CreateLoad(
      llvm::PointerType::get(entry.getContext(), msl::address_space::device),
      b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), launch, offsetof(LaunchParameters, cancelled)));
  return b.CreateICmpNE(b.CreateLoad(b.getInt32Ty(), address, /*isVolatile=*/true), b.getInt32(0));
}

// `edge` is the only way back to the header.
void look(llvm::Function& entry, BasicBlock& header, BasicBlock& edge, BasicBlock& leave) {
  llvm::LLVMContext& context = entry.getContext();
  IRBuilder<> b(&header, header.begin());
  llvm::PHINode* turn = b.CreatePHI(b.getInt32Ty(), 2, "turn");
  BasicBlock* back = llvm::SplitBlock(&edge, edge.getTerminator());
  auto* looking = BasicBlock::Create(context, "look", &entry, back);
  edge.getTerminator()->eraseFromParent();
  b.SetInsertPoint(&edge);
  Value* next = b.CreateAdd(turn, b.getInt32(1));
  Value* is_due = b.CreateICmpEQ(b.CreateAnd(next, turns_between_looks - 1), b.getInt32(0));
  b.CreateCondBr(is_due, looking, back,
                 llvm::MDBuilder(context).createBranchWeights(1, turns_between_looks - 1));
  b.SetInsertPoint(looking);
  b.CreateCondBr(is_cancelled(b, entry), &leave, back);
  for (BasicBlock* before : llvm::predecessors(&header))
    turn->addIncoming(before == back ? next : b.getInt32(0), before);
}

}  // namespace

void poll_unbounded_loops(llvm::Function& entry) {
  llvm::DominatorTree dominators(entry);
  llvm::LoopInfo loops(dominators);
  llvm::AssumptionCache assumptions(entry);
  llvm::SmallVector<std::pair<BasicBlock*, BasicBlock*>, 4> unbounded;  // header, latch
  {
    llvm::TargetLibraryInfoImpl rows(llvm::Triple(entry.getParent()->getTargetTriple()));
    llvm::TargetLibraryInfo library(rows);
    llvm::ScalarEvolution evolution(entry, library, assumptions, dominators, loops);
    for (llvm::Loop* loop : loops)
      llvm::simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr,
                         /*PreserveLCSSA=*/false);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
      if (llvm::isa<llvm::SCEVCouldNotCompute>(evolution.getConstantMaxBackedgeTakenCount(loop)))
        unbounded.emplace_back(loop->getHeader(), loop->getLoopLatch());
    }
  }
  if (unbounded.empty()) return;
  auto* leave = BasicBlock::Create(entry.getContext(), "cancelled", &entry);
  llvm::ReturnInst::Create(entry.getContext(), leave);
  for (auto& [header, edge] : unbounded) edge = llvm::SplitEdge(edge, header, &dominators, &loops);
  for (auto [header, edge] : unbounded) look(entry, *header, *edge, *leave);
}

}  // namespace holdfast::cuda
