#include "devices/cuda/compiler/convergence.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <optional>

#include "devices/cpu/jit/compiler/sites.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cpu/jit/compiler/widen/linearise.h"
#include "devices/cpu/jit/compiler/widen/normal_form.h"
#include "devices/cpu/jit/compiler/widen/private_memory.h"
#include "devices/cpu/jit/compiler/widen/shapes.h"

namespace holdfast::cuda {
namespace {

using llvm::BasicBlock;
using llvm::IRBuilder;
using llvm::Value;

// Calls across lanes are neither merged nor moved to other control flow.
llvm::CallInst* convergent(llvm::CallInst* call) {
  call->setConvergent();
  call->addFnAttr(llvm::Attribute::NoMerge);
  return call;
}

bool is_threadgroup_barrier(const llvm::Instruction& instruction) {
  return jit::is_call_of(instruction, msl::Intrinsic::threadgroup_barrier);
}

class StructuredMasks {
 public:
  StructuredMasks(llvm::Function& kernel, bool has_rows, Value* everyone)
      : flow_(kernel),
        memory_(kernel),
        shapes_(kernel, flow_, memory_, pool_,
                has_rows ? jit::Assumption::converged : jit::Assumption::any),
        linearisation_(kernel, flow_, shapes_),
        entry_(&kernel.getEntryBlock()),
        everyone_(everyone) {}

  // False when some mask is no value; the kernel is as it was then.
  bool find(llvm::ArrayRef<llvm::Instruction*> sites, Convergence& result) {
    llvm::DenseMap<const llvm::Instruction*, Value*> masks;
    for (llvm::Instruction* site : sites) {
      if (is_threadgroup_barrier(*site)) {
        if (!has_everyone(site->getParent())) result.partial_barriers.insert(site);
        continue;
      }
      Value* mask = mask_of(site->getParent());
      if (!mask) {
        undo();
        result.partial_barriers.clear();
        return false;
      }
      masks[site] = mask;
    }
    result.masks = std::move(masks);
    return true;
  }

 private:
  // Null: there is none.
  Value* mask_of(BasicBlock* block) {
    if (block == entry_) return everyone_;
    if (auto known = masks_.find(block); known != masks_.end()) return known->second;
    Value* mask = nullptr;
    if (BasicBlock* above = linearisation_.same_mask(block)) {
      mask = mask_of(above);
    } else if (flow_.loops.isLoopHeader(block)) {
      return mask_of_header(block);
    } else if (BasicBlock* before = block->getSinglePredecessor()) {
      mask = mask_of_edge(before, block);
    } else if (!shapes_.is_join(block)) {
      mask = merged(block);
    }
    return masks_[block] = mask;
  }

  Value* mask_of_header(BasicBlock* header) {
    const llvm::Loop* loop = flow_.loops.getLoopFor(header);
    BasicBlock *before = loop->getLoopPreheader(), *latch = loop->getLoopLatch();
    if (!before || !latch) return nullptr;
    if (!shapes_.loop_varies(loop)) return masks_[header] = mask_of_edge(before, header);
    auto* phi = llvm::PHINode::Create(llvm::Type::getInt32Ty(header->getContext()), 2, "lanes",
                                      header->begin());
    created_.push_back(phi);
    masks_[header] = phi;
    Value* first = mask_of_edge(before, header);
    Value* next = first ? mask_of_edge(latch, header) : nullptr;
    if (!next) return masks_[header] = nullptr;
    phi->addIncoming(first, before);
    phi->addIncoming(next, latch);
    return phi;
  }

  // All lanes come on the same edge.
  Value* merged(BasicBlock* block) {
    llvm::SmallVector<std::pair<Value*, BasicBlock*>, 4> incoming;
    for (BasicBlock* before : llvm::predecessors(block)) {
      Value* mask = mask_of_edge(before, block);
      if (!mask) return nullptr;
      incoming.emplace_back(mask, before);
    }
    if (llvm::all_of(incoming, [&](auto& one) { return one.first == incoming[0].first; }))
      return incoming[0].first;
    auto* phi =
        llvm::PHINode::Create(llvm::Type::getInt32Ty(block->getContext()),
                              static_cast<unsigned>(incoming.size()), "lanes", block->begin());
    created_.push_back(phi);
    for (auto& [mask, before] : incoming) phi->addIncoming(mask, before);
    return phi;
  }

  // Whether lanes that leave loops on this edge may do so in different turns.
  bool leaves_one_by_one(BasicBlock* from, BasicBlock* to) const {
    for (const llvm::Loop* loop = flow_.loops.getLoopFor(from); loop && !loop->contains(to);
         loop = loop->getParentLoop()) {
      if (shapes_.loop_varies(loop)) return true;
    }
    return false;
  }

  Value* mask_of_edge(BasicBlock* from, BasicBlock* to) {
    if (leaves_one_by_one(from, to)) return nullptr;
    Value* mask = mask_of(from);
    auto* branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
    if (!mask || !branch || !branch->isConditional() || !shapes_.branch_varies(from) ||
        branch->getSuccessor(0) == branch->getSuccessor(1))
      return mask;
    auto [votes, fresh] = votes_.try_emplace(from);
    if (fresh) {
      IRBuilder<> b(branch);
      Value* taken = convergent(b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {},
                                                  {mask, branch->getCondition()}));
      Value* other = b.CreateXor(mask, taken);  // a part of the mask
      created_.push_back(llvm::cast<llvm::Instruction>(taken));
      if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(other))
        created_.push_back(instruction);
      votes_[from] = {taken, other};
      return branch->getSuccessor(0) == to ? taken : other;
    }
    return branch->getSuccessor(0) == to ? votes->second.first : votes->second.second;
  }

  bool has_everyone(BasicBlock* block) {
    if (block == entry_) return true;
    auto [known, fresh] = whole_.try_emplace(block, true);
    if (!fresh) return known->second;
    bool whole = false;
    if (BasicBlock* above = linearisation_.same_mask(block)) {
      whole = has_everyone(above);
    } else if (flow_.loops.isLoopHeader(block)) {
      const llvm::Loop* loop = flow_.loops.getLoopFor(block);
      whole = !shapes_.loop_varies(loop) && loop->getLoopPreheader() &&
              has_everyone(loop->getLoopPreheader());
    } else if (!shapes_.is_join(block)) {
      whole = llvm::all_of(llvm::predecessors(block), [&](BasicBlock* before) {
        return !leaves_one_by_one(before, block) && !shapes_.branch_varies(before) &&
               has_everyone(before);
      });
    }
    return whole_[block] = whole;
  }

  void undo() {
    for (llvm::Instruction* instruction : llvm::reverse(created_)) {
      instruction->replaceAllUsesWith(llvm::PoisonValue::get(instruction->getType()));
      instruction->eraseFromParent();
    }
  }

  jit::ControlFlow flow_;
  jit::PrivateMemory memory_;
  jit::OffsetPool pool_;
  jit::Shapes shapes_;
  jit::Linearisation linearisation_;
  BasicBlock* entry_;
  Value* everyone_;
  llvm::DenseMap<BasicBlock*, Value*> masks_;
  llvm::DenseMap<BasicBlock*, std::pair<Value*, Value*>> votes_;  // by block that ends in a branch
  llvm::DenseMap<BasicBlock*, bool> whole_;
  llvm::SmallVector<llvm::Instruction*, 16> created_;
};

// i32 (i32 site, i32 everyone): waits for the turn of the site; the lanes whose turn it is.
llvm::Function& gather_function(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* i32 = llvm::Type::getInt32Ty(context);
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(i32, {i32, i32}, false),
                             llvm::GlobalValue::InternalLinkage, "holdfast_gather", module);
  for (auto attribute :
       {llvm::Attribute::Convergent, llvm::Attribute::NoInline, llvm::Attribute::NoUnwind})
    function->addFnAttr(attribute);
  auto* entry = BasicBlock::Create(context, "entry", function);
  auto* turn = BasicBlock::Create(context, "turn", function);
  auto* end = BasicBlock::Create(context, "end", function);
  llvm::Argument *site = function->getArg(0), *everyone = function->getArg(1);
  IRBuilder<>(entry).CreateBr(turn);
  IRBuilder<> b(turn);
  Value* first =
      convergent(b.CreateIntrinsic(llvm::Intrinsic::nvvm_redux_sync_umin, {}, {site, everyone}));
  Value* is_mine = b.CreateICmpEQ(first, site);
  Value* lanes = convergent(
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {}, {everyone, is_mine}));
  b.CreateCondBr(is_mine, end, turn);
  IRBuilder<>(end).CreateRet(lanes);
  return *function;
}

void gather(llvm::Function& kernel, Convergence& result) {
  llvm::DominatorTree dominators(kernel);
  llvm::LoopInfo loops(dominators);
  llvm::AssumptionCache assumptions(kernel);
  for (llvm::Loop* loop : loops) {
    llvm::simplifyLoop(loop, &dominators, &loops, nullptr, &assumptions, nullptr,
                       /*PreserveLCSSA=*/false);
  }
  const jit::Sites sites(kernel, loops, dominators);
  llvm::Function& function = gather_function(*kernel.getParent());
  auto wait = [&](llvm::Instruction* before, uint32_t site) {
    IRBuilder<> b(before);
    return convergent(b.CreateCall(&function, {b.getInt32(site), result.everyone}));
  };
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(kernel))) {
    if (!jit::is_site(instruction)) continue;
    result.masks[&instruction] = wait(&instruction, sites.of(instruction));
    if (is_threadgroup_barrier(instruction)) result.partial_barriers.insert(&instruction);
  }
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    std::optional<uint32_t> site = sites.end_of(loop->getHeader());
    if (!site) continue;
    llvm::SmallVector<BasicBlock*, 4> latches;
    loop->getLoopLatches(latches);
    for (BasicBlock* latch : latches) {
      BasicBlock* edge = llvm::SplitEdge(latch, loop->getHeader(), &dominators, &loops);
      wait(edge->getTerminator(), *site);
    }
  }
  result.gathers = true;
}

Value* call_of(IRBuilder<>& b, const char* name, std::optional<uint32_t> axis) {
  llvm::Module* module = b.GetInsertBlock()->getModule();
  llvm::SmallVector<llvm::Type*, 1> types;
  llvm::SmallVector<Value*, 1> arguments;
  if (axis) {
    types.push_back(b.getInt32Ty());
    arguments.push_back(b.getInt32(*axis));
  }
  return b.CreateCall(
      module->getOrInsertFunction(name, llvm::FunctionType::get(b.getInt32Ty(), types, false)),
      arguments);
}

// The lanes of a simdgroup that may be the last of its threadgroup.
Value* lanes_at_start(llvm::Function& kernel) {
  BasicBlock& entry = kernel.getEntryBlock();
  IRBuilder<> b(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
  Value* threads = nullptr;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    Value* side = call_of(b, "__hf_threads_per_threadgroup", axis);
    threads = threads ? b.CreateMul(threads, side) : side;
  }
  Value* first = b.CreateShl(call_of(b, "__hf_simdgroup_index_in_threadgroup", std::nullopt), 5);
  Value* count = b.CreateSub(threads, first);
  Value* some = b.CreateSub(b.CreateShl(b.getInt32(1), b.CreateAnd(count, 31)), b.getInt32(1));
  return b.CreateSelect(b.CreateICmpUGE(count, b.getInt32(32)), b.getInt32(~0u), some);
}

}  // namespace

Convergence find_convergence(llvm::Function& kernel, bool has_rows, bool is_full) {
  Convergence result;
  auto has_sites = [&] {
    return llvm::any_of(llvm::instructions(kernel),
                        [](const llvm::Instruction& i) { return jit::is_site(i); });
  };
  if (!has_sites()) return result;
  const bool is_normal = jit::make_normal_form(kernel).empty();
  llvm::SmallVector<llvm::Instruction*, 16> sites;
  for (llvm::Instruction& instruction : llvm::instructions(kernel)) {
    if (jit::is_site(instruction)) sites.push_back(&instruction);
  }
  if (sites.empty()) return result;
  if (is_full) {
    result.everyone = llvm::ConstantInt::get(llvm::Type::getInt32Ty(kernel.getContext()), ~0u);
  } else {
    result.everyone = lanes_at_start(kernel);
  }
  if (is_normal && StructuredMasks(kernel, has_rows, result.everyone).find(sites, result))
    return result;
  gather(kernel, result);
  return result;
}

}  // namespace holdfast::cuda
