#include "devices/cpu/jit/compiler/widen/widen.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <optional>

#include "devices/cpu/jit/compiler/outside_sites.h"
#include "devices/cpu/jit/compiler/widen/describe.h"
#include "devices/cpu/jit/compiler/widen/emitter.h"
#include "devices/cpu/jit/compiler/widen/expand_math.h"
#include "devices/cpu/jit/compiler/widen/if_convert.h"
#include "devices/cpu/jit/compiler/widen/normal_form.h"
#include "devices/cpu/jit/compiler/widen/regions.h"
#include "devices/cpu/jit/compiler/widen/wide_function.h"

namespace holdfast::jit {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;

// Each block begins with the extensions that the converged version has to look at: there it can
// leave.
void split_at_guards(const Shapes& shapes, llvm::Function& function) {
  std::vector<BasicBlock*> blocks;
  for (BasicBlock& block : function) blocks.push_back(&block);
  for (BasicBlock* block : blocks) {
    llvm::SmallVector<Instruction*, 8> guards;
    for (Instruction& instruction : *block) {
      if (shapes.guarded().contains(&instruction)) guards.push_back(&instruction);
    }
    BasicBlock* rest = block;
    Instruction* previous = nullptr;
    for (Instruction* guard : guards) {
      auto* operand = llvm::dyn_cast<Instruction>(guard->getOperand(0));
      // Together with the one before, if it can stand there.
      if (previous && (!operand || operand->getParent() != rest)) {
        guard->moveAfter(previous);
      } else {
        rest = rest->splitBasicBlock(guard, block->getName());
      }
      previous = guard;
    }
  }
}

llvm::Function* emit(llvm::Function& normal, InstructionSet set, OutsideSites* sites,
                     WidenResult& result) {
  OffsetPool pool;
  Growth growth(normal);
  growth.check_least(normal);
  {
    ControlFlow flow(normal);
    PrivateMemory memory(normal);
    split_at_guards(Shapes(normal, flow, memory, pool, Assumption::converged), normal);
  }
  ControlFlow flow(normal);
  PrivateMemory memory(normal);
  Shapes converged(normal, flow, memory, pool, Assumption::converged);
  Shapes masked(normal, flow, memory, pool, Assumption::any);
  Linearisation linearisation(normal, flow, masked);
  LoopFacts loops(normal, flow);
  GroupFunction group = Emitter(normal, flow, memory, converged, masked, linearisation, loops,
                                growth, set, sites, result)
                            .run();
  cut_at_barriers(group, growth);
  result.frame_bytes = static_cast<uint32_t>(group.frame_bytes);
  if (result.wants_remarks) {
    for (const Shapes::Origin& origin : converged.origins()) {
      result.remarks.push_back({line_of(*origin.instruction),
                                noun_of(*origin.instruction) + " varies: " + origin.reason});
    }
  }
  return group.function;
}

// Those that have no wide form are inlined.
void prepare_shared_functions(llvm::Function& normal) {
  llvm::SmallVector<llvm::CallInst*, 8> calls;
  for (Instruction& instruction : llvm::instructions(normal)) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    if (call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration())
      calls.push_back(call);
  }
  for (llvm::CallInst* call : calls) {
    if_convert(*call->getCalledFunction());
    if (can_widen_function(*call->getCalledFunction())) continue;
    llvm::InlineFunctionInfo info;
    llvm::InlineFunction(*call, info);
  }
}

}  // namespace

WidenResult widen(llvm::Function& scalar, InstructionSet set, bool wants_remarks,
                  const GuardedKernel* guarded) {
  WidenResult result;
  std::optional<OutsideSites> sites;
  if (guarded) sites.emplace(*scalar.getParent(), *guarded);
  result.wants_remarks = wants_remarks;
  llvm::ValueToValueMapTy copies;
  llvm::Function* normal = llvm::CloneFunction(&scalar, copies);
  normal->setName(scalar.getName() + ".normal");
  normal->setLinkage(llvm::GlobalValue::InternalLinkage);
  prepare_shared_functions(*normal);
  result.declined = make_normal_form(*normal);
  if (result.declined.empty()) {
    try {
      result.group = emit(*normal, set, sites ? &*sites : nullptr, result);
      for (llvm::Function& function : *scalar.getParent()) {
        if (function.getName().starts_with(result.group->getName())) expand_math(function, set);
      }
    } catch (const Declined& declined) {
      result.declined = declined.reason;
      llvm::SmallVector<llvm::Function*, 2> partial;
      for (llvm::Function& function : *scalar.getParent()) {
        if (function.getName().starts_with((scalar.getName() + ".group").str()) ||
            function.getName() == "holdfast.barrier")
          partial.push_back(&function);
      }
      for (llvm::Function* function : partial) function->dropAllReferences();
      for (llvm::Function* function : partial) function->eraseFromParent();
    }
  }
  normal->eraseFromParent();
  return result;
}

}  // namespace holdfast::jit
