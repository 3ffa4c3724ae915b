#include "devices/cpu/jit/compiler/widen/missing_values.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <stdexcept>

#include "devices/cpu/jit/compiler/widen/describe.h"

namespace holdfast::jit {
namespace {

using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// The phis that markers come to, some or all ways, each with the marker that came first.
using Reached = llvm::MapVector<PHINode*, const Instruction*>;

void follow(const Instruction& marker, Reached& reached) {
  llvm::SmallVector<Value*, 16> rest{const_cast<Instruction*>(&marker)};
  while (!rest.empty()) {
    for (llvm::User* user : rest.pop_back_val()->users()) {
      auto* phi = llvm::dyn_cast<PHINode>(user);
      if (phi && reached.insert({phi, &marker}).second) rest.push_back(phi);
    }
  }
}

// Leaves the phis that nothing but markers comes to.
void keep_empty(Reached& reached, const llvm::DenseMap<const Value*, std::string>& names) {
  llvm::SmallVector<PHINode*, 32> full;
  auto has_value = [&](PHINode* phi) {
    return llvm::any_of(phi->incoming_values(), [&](Value* incoming) {
      if (names.contains(incoming)) return false;
      auto* other = llvm::dyn_cast<PHINode>(incoming);
      return !other || !reached.contains(other);
    });
  };
  for (auto& [phi, marker] : reached) {
    if (has_value(phi)) full.push_back(phi);
  }
  llvm::DenseSet<PHINode*> gone(full.begin(), full.end());
  while (!full.empty()) {
    for (llvm::User* user : full.pop_back_val()->users()) {
      auto* phi = llvm::dyn_cast<PHINode>(user);
      if (phi && reached.contains(phi) && gone.insert(phi).second) full.push_back(phi);
    }
  }
  reached.remove_if([&](const auto& entry) { return gone.contains(entry.first); });
}

void check_readers(const Value& empty, const std::string& name) {
  for (const llvm::Use& use : empty.uses()) {
    const llvm::User* user = use.getUser();
    bool merges = llvm::isa<llvm::SelectInst>(user) && use.getOperandNo() == 2;
    if (llvm::isa<PHINode>(user) || merges) continue;
    auto* reader = llvm::cast<Instruction>(user);
    throw std::logic_error("a value is missing: " + name + " never arrives in block " +
                           reader->getParent()->getName().str() + ", where " + describe(*reader) +
                           " reads it");
  }
}

}  // namespace

Instruction* MissingValues::marker_of(llvm::AllocaInst* variable) {
  llvm::IRBuilder<> at(variable->getParent()->getTerminator());
  llvm::Type* type = variable->getAllocatedType();
  auto* marker = new llvm::FreezeInst(llvm::PoisonValue::get(type));
  at.Insert(marker, "missing");
  markers_.emplace_back(marker, variable->getName().str());
  return marker;
}

void MissingValues::check_and_erase(llvm::DominatorTree& dominators) {
  llvm::DenseMap<const Value*, std::string> names;
  Reached reached;
  for (auto& [marker, name] : markers_) {
    names[marker] = name;
    follow(*marker, reached);
  }
  llvm::SetVector<PHINode*> kept_apart;
  for (auto& [phi, marker] : reached) kept_apart.insert(phi);
  keep_empty(reached, names);
  for (auto& [marker, name] : markers_) check_readers(*marker, name);
  for (auto& [phi, marker] : reached) check_readers(*phi, names.lookup(marker));

  for (auto& [marker, name] : markers_) {
    marker->replaceAllUsesWith(llvm::PoisonValue::get(marker->getType()));
    marker->eraseFromParent();
  }
  markers_.clear();
  llvm::SimplifyQuery query(dominators.getRoot()->getModule()->getDataLayout(), nullptr,
                            &dominators);
  while (!kept_apart.empty()) {
    PHINode* phi = kept_apart.pop_back_val();
    Value* same = llvm::simplifyInstruction(phi, query);
    if (!same) continue;
    for (llvm::User* user : phi->users()) {
      auto* other = llvm::dyn_cast<PHINode>(user);
      if (other && other != phi) kept_apart.insert(other);
    }
    phi->replaceAllUsesWith(same);
    phi->eraseFromParent();
  }
}

}  // namespace holdfast::jit
