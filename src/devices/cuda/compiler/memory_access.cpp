#include "devices/cuda/compiler/memory_access.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

#include <algorithm>

#include "msl/scalar_ir.h"

namespace holdfast::cuda {
namespace {

// Instructions of an unrolled loop: with private arrays indexed in it, and without.
constexpr uint64_t most_for_arrays = 8192, most_otherwise = 1024;
constexpr unsigned most_turns = 128, widest_access = 16;
// Loops over private arrays that leave earlier than after a known number of turns.
constexpr unsigned most_bound = 16;
// Loops of so many instructions are unrolled so many times where the number of turns is not known.
constexpr size_t most_in_flight = 64;
constexpr unsigned turns_at_once = 4;
// The same of loops that only compute, where the number of turns has a known bound.
constexpr size_t most_computing = 32;
constexpr unsigned computing_turns = 8;
// And of loops with operations across lanes, if there are so few that a turn waits for them.
constexpr size_t most_around_lanes = 192, most_across_lanes = 24;
constexpr unsigned turns_across_lanes = 2;

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

bool has_convergent_calls(const llvm::Loop& loop) {
  return llvm::any_of(loop.blocks(), [](llvm::BasicBlock* block) {
    return llvm::any_of(*block, [](llvm::Instruction& instruction) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      return call && call->isConvergent();
    });
  });
}

// Several turns at once have several reads of device memory in flight, or less to do for the loop
// itself; lanes that work together stay together. One: the loop stays as it is.
unsigned useful_turns(llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
  if (has_convergent_calls(loop)) return 1;
  size_t size = 0;
  bool reads = false;
  for (llvm::BasicBlock* block : loop.blocks()) {
    size += block->size();
    for (llvm::Instruction& instruction : *block) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      reads |= load && load->getPointerAddressSpace() == msl::address_space::device;
    }
  }
  if (!loop.isInnermost()) return 1;
  if (reads) return size <= most_in_flight ? turns_at_once : 1;
  const bool is_bounded = evolution.getSmallConstantMaxTripCount(&loop) != 0;
  return is_bounded && size <= most_computing ? computing_turns : 1;
}

bool takes_all_lanes(const llvm::Instruction& instruction) {
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!call) return false;
  using namespace llvm::Intrinsic;
  switch (call->getIntrinsicID()) {
    case nvvm_shfl_sync_bfly_i32:
    case nvvm_shfl_sync_idx_i32:
    case nvvm_shfl_sync_up_i32:
    case nvvm_vote_ballot_sync:
    case nvvm_bar_warp_sync:
      return llvm::PatternMatch::match(call->getArgOperand(0), llvm::PatternMatch::m_AllOnes());
    default:
      return false;
  }
}

// Whether all lanes of a simdgroup make the same number of turns, at whose end alone they may
// leave, because each turn has an operation across all of them.
bool turns_together(const llvm::Loop& loop, const llvm::DominatorTree& dominators) {
  llvm::BasicBlock* latch = loop.getLoopLatch();
  if (!latch || loop.getExitingBlock() != latch) return false;
  return llvm::any_of(loop.blocks(), [&](llvm::BasicBlock* block) {
    return dominators.dominates(block, latch) && llvm::any_of(*block, takes_all_lanes);
  });
}

}  // namespace

bool unroll_across_lanes(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  // Lanes that gather leave a loop one by one, though each turn waits for all of them.
  if (function.getCallingConv() != llvm::CallingConv::PTX_Kernel) return false;
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  auto& assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
  auto& costs = analyses.getResult<llvm::TargetIRAnalysis>(function);
  auto& remarks = analyses.getResult<llvm::OptimizationRemarkEmitterAnalysis>(function);
  llvm::SmallVector<llvm::Loop*, 8> chosen;
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    size_t size = 0, across = 0;
    for (llvm::BasicBlock* block : loop->blocks()) {
      size += block->size();
      across += static_cast<size_t>(llvm::count_if(*block, takes_all_lanes));
    }
    if (loop->isInnermost() && size <= most_around_lanes && across <= most_across_lanes &&
        turns_together(*loop, dominators))
      chosen.push_back(loop);
  }
  bool changed = false;
  for (llvm::Loop* loop : chosen) {
    llvm::simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr,
                       /*PreserveLCSSA=*/false);
    llvm::formLCSSARecursively(*loop, dominators, &loops, &evolution);
    llvm::UnrollLoopOptions options{};
    options.Count = turns_across_lanes;
    options.Runtime = true;
    changed |=
        llvm::UnrollLoop(loop, options, &loops, &evolution, &dominators, &assumptions, &costs,
                         &remarks, /*PreserveLCSSA=*/true) != llvm::LoopUnrollResult::Unmodified;
  }
  return changed;
}

void unroll_bounded_loops(llvm::Function& function) {
  LoopAnalyses analyses(function);
  llvm::TargetTransformInfo costs(function.getParent()->getDataLayout());
  llvm::OptimizationRemarkEmitter remarks(&function);
  llvm::SmallVector<std::pair<llvm::Loop*, unsigned>, 8> chosen;
  // Inner loops come first, and with them gone those around them.
  const auto loops = analyses.loops.getLoopsInPreorder();
  for (llvm::Loop* loop : llvm::reverse(loops)) {
    const unsigned most = analyses.evolution.getSmallConstantMaxTripCount(loop);
    if (analyses.evolution.getSmallConstantTripCount(loop) != 0 || most == 0 || most > most_bound)
      continue;
    if (indexes_private_array(*loop) && !has_convergent_calls(*loop) &&
        most * unrolled_size(*loop, analyses.evolution) <= most_for_arrays)
      chosen.emplace_back(loop, most);
  }
  for (auto [loop, most] : chosen) {
    llvm::simplifyLoop(loop, &analyses.dominators, &analyses.loops, &analyses.evolution,
                       &analyses.assumptions, nullptr, /*PreserveLCSSA=*/false);
    llvm::formLCSSARecursively(*loop, analyses.dominators, &analyses.loops, &analyses.evolution);
    llvm::UnrollLoopOptions options{};
    options.Count = most;
    llvm::UnrollLoop(loop, options, &analyses.loops, &analyses.evolution, &analyses.dominators,
                     &analyses.assumptions, &costs, &remarks, /*PreserveLCSSA=*/false);
  }
}

void ask_for_unrolling(llvm::Function& function) {
  LoopAnalyses analyses(function);
  for (llvm::Loop* loop : analyses.loops.getLoopsInPreorder()) {
    const unsigned turns = analyses.evolution.getSmallConstantTripCount(loop);
    if (turns < 2 || turns > most_turns) {
      const unsigned at_once = useful_turns(*loop, analyses.evolution);
      if (at_once > 1) llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.count", at_once);
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
