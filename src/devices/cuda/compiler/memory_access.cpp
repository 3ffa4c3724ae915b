#include "devices/cuda/compiler/memory_access.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>

#include "msl/scalar_ir.h"

namespace holdfast::cuda {
namespace {

// Instructions of an unrolled loop: with private arrays indexed in it, and without.
constexpr uint64_t most_for_arrays = 8192, most_otherwise = 1024;
constexpr unsigned most_turns = 128, widest_access = 16;
// Loops of so many instructions are unrolled so many times where the number of turns is not known.
constexpr size_t most_in_flight = 64;
constexpr unsigned turns_at_once = 4;

struct LoopAnalyses {
  explicit LoopAnalyses(llvm::Function& function)
      : dominators(function),
        loops(dominators),
        assumptions(function),
        library_rows(llvm::Triple(function.getParent()->getTargetTriple())),
        library(library_rows),
        evolution(function, library, assumptions, dominators, loops) {}
  llvm::DominatorTree dominators;
  llvm::LoopInfo loops;
  llvm::AssumptionCache assumptions;
  llvm::TargetLibraryInfoImpl library_rows;
  llvm::TargetLibraryInfo library;
  llvm::ScalarEvolution evolution;
};

// What the loop's body becomes when all loops in it are unrolled.
uint64_t unrolled_size(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
  uint64_t size = 0;
  for (llvm::BasicBlock* block : loop.blocks()) {
    uint64_t copies = 1;
    for (const llvm::Loop* inner : loop.getLoopsInPreorder()) {
      if (inner == &loop || !inner->contains(block)) continue;
      copies *= std::max(1u, evolution.getSmallConstantTripCount(inner));
    }
    size += copies * block->size();
  }
  return size;
}

bool indexes_private_array(const llvm::Loop& loop) {
  for (llvm::BasicBlock* block : loop.blocks()) {
    for (llvm::Instruction& instruction : *block) {
      auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction);
      if (gep && !gep->hasAllConstantIndices() &&
          llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(gep)))
        return true;
    }
  }
  return false;
}

// Whether several turns at once have several reads of device memory in flight, and lanes that work
// together stay together.
bool gains_by_several_turns(const llvm::Loop& loop) {
  size_t size = 0;
  bool reads = false;
  for (llvm::BasicBlock* block : loop.blocks()) {
    size += block->size();
    for (llvm::Instruction& instruction : *block) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call && call->isConvergent()) return false;
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      reads |= load && load->getPointerAddressSpace() == msl::address_space::device;
    }
  }
  return loop.isInnermost() && reads && size <= most_in_flight;
}

}  // namespace

void ask_for_unrolling(llvm::Function& function) {
  LoopAnalyses analyses(function);
  for (llvm::Loop* loop : analyses.loops.getLoopsInPreorder()) {
    const unsigned turns = analyses.evolution.getSmallConstantTripCount(loop);
    if (turns < 2 || turns > most_turns) {
      if (gains_by_several_turns(*loop))
        llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.count", turns_at_once);
      continue;
    }
    const uint64_t size = turns * unrolled_size(*loop, analyses.evolution);
    if (size > (indexes_private_array(*loop) ? most_for_arrays : most_otherwise)) continue;
    llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.full");
  }
}

void raise_alignments(llvm::Function& function) {
  LoopAnalyses analyses(function);
  auto proved = [&](llvm::Value* pointer) {
    const uint32_t zeros =
        analyses.evolution.getMinTrailingZeros(analyses.evolution.getSCEV(pointer));
    return llvm::Align(uint64_t{1} << std::min(zeros, llvm::Log2_32(widest_access)));
  };
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      load->setAlignment(std::max(load->getAlign(), proved(load->getPointerOperand())));
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      store->setAlignment(std::max(store->getAlign(), proved(store->getPointerOperand())));
    }
  }
}

}  // namespace holdfast::cuda
