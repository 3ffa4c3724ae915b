#include "msl/frontend/threadgroup_races.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "msl/frontend/thread_values.h"

namespace holdfast::msl {
namespace {

using namespace thread_values;

constexpr int most_iterations = 40;

// What orders threads of several simdgroups, or may.
bool is_order(const Instruction& instruction) {
  if (instruction.isAtomic()) return true;
  return intrinsic_of(instruction) == "threadgroup_barrier";
}

struct Access {
  Instruction* instruction;
  Value* pointer;
  Value* root;
  int64_t bytes;
  bool writes;
  bool is_atomic;
  Value* stored;  // null: not a plain store
};

std::optional<Access> access_of(Instruction& instruction, llvm::Function& function) {
  Access access{&instruction, nullptr, nullptr, 0, true, instruction.isAtomic(), nullptr};
  if (instruction.isVolatile()) return std::nullopt;
  llvm::Type* type = nullptr;
  if (auto* load = dyn_cast<llvm::LoadInst>(&instruction)) {
    access.pointer = load->getPointerOperand();
    access.writes = false;
    type = load->getType();
  } else if (auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
    access.pointer = store->getPointerOperand();
    access.stored = store->getValueOperand();
    type = access.stored->getType();
  } else if (auto* atomic = dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    access.pointer = atomic->getPointerOperand();
    type = atomic->getType();
  } else {
    return std::nullopt;
  }
  if (access.pointer->getType()->getPointerAddressSpace() != address_space::threadgroup)
    return std::nullopt;
  llvm::SmallVector<Value*, 1> roots = roots_of(access.pointer, function);
  if (roots.size() != 1) return std::nullopt;
  access.root = roots[0];
  access.bytes =
      static_cast<int64_t>(function.getDataLayout().getTypeStoreSize(type).getFixedValue());
  return access;
}

class Search {
 public:
  Search(llvm::Function& function, std::array<uint32_t, 3> shape) : threads_(function, shape) {
    for (BasicBlock& block : function) {
      for (Instruction& instruction : block) {
        if (is_order(instruction)) orders_.insert(&block);
        if (auto access = access_of(instruction, function)) accesses_.push_back(*access);
      }
    }
  }

  std::optional<ThreadgroupRace> run() {
    for (const Access& first : accesses_) {
      for (const Access& second : accesses_) {
        if (may_race(first, second) && races(first, second)) {
          return ThreadgroupRace{first.instruction, second.instruction, first.writes, second.writes,
                                 first.root};
        }
      }
    }
    return std::nullopt;
  }

 private:
  static bool may_race(const Access& first, const Access& second) {
    if (&first == &second || first.root != second.root) return false;
    if (!first.writes && !second.writes) return false;
    if (first.is_atomic && second.is_atomic) return false;
    // The same value, written twice, is the same whoever comes last.
    return !first.stored || first.stored != second.stored;
  }

  bool races(const Access& first, const Access& second) {
    const BasicBlock *from = first.instruction->getParent(), *to = second.instruction->getParent();
    std::vector<const Loop*> common, first_alone, second_alone;
    for (const Loop* loop = threads_.loops().getLoopFor(from); loop; loop = loop->getParentLoop())
      (loop->contains(to) ? common : first_alone).push_back(loop);
    for (const Loop* loop = threads_.loops().getLoopFor(to); loop; loop = loop->getParentLoop()) {
      if (!loop->contains(from)) second_alone.push_back(loop);
    }
    // With a barrier in it, only the last iteration of the first's loop meets the second; which one
    // that is, is not asked.
    if (llvm::any_of(first_alone, [&](const Loop* loop) { return has_order(*loop); })) return false;
    // All loops in their first iteration, but for one.
    auto tries_of = [](const std::vector<const Loop*>& alone) {
      std::vector<std::pair<const Loop*, int>> tries{{nullptr, 0}};
      for (const Loop* loop : alone) {
        tries.push_back({loop, 1});
        tries.push_back({loop, static_cast<int>(simdgroup_size) + 1});
      }
      return tries;
    };
    auto try_all = [&](const Loop* loop, int iteration, int later) {
      for (auto [first_loop, first_iteration] : tries_of(first_alone)) {
        for (auto [second_loop, second_iteration] : tries_of(second_alone)) {
          // In a loop with a barrier, only the first iteration meets what was before.
          if (second_loop && has_order(*second_loop)) continue;
          Iterations at_first = in_first_iterations(from), at_second = in_first_iterations(to);
          if (loop) at_first[threads_.number_of(loop)] = iteration;
          if (loop) at_second[threads_.number_of(loop)] = iteration + later;
          if (first_loop) at_first[threads_.number_of(first_loop)] = first_iteration;
          if (second_loop) at_second[threads_.number_of(second_loop)] = second_iteration;
          if (meet(first, at_first, second, at_second)) return true;
        }
      }
      return false;
    };
    const Loop* innermost = common.empty() ? nullptr : common.front();
    // Conditions that keep them apart in a loop's late iterations are rare, trees of sums are not.
    const int most = innermost ? most_iterations / 4 : 1;
    if (is_free_between(*first.instruction, *second.instruction, nullptr) ||
        is_free_from_branch(*first.instruction, *second.instruction)) {
      for (int i = 0; i < most; ++i) {
        if (try_all(innermost, i, 0)) return true;
      }
    }
    for (const Loop* loop : common) {
      if (!is_free_between(*first.instruction, *second.instruction, loop)) continue;
      for (int i = 0; i < (loop == innermost ? most : 1); ++i) {
        if (try_all(loop, i, 1)) return true;
      }
    }
    return false;
  }

  Iterations in_first_iterations(const BasicBlock* block) {
    Iterations at = threads_.nowhere();
    for (const Loop* loop = threads_.loops().getLoopFor(block); loop; loop = loop->getParentLoop())
      at[threads_.number_of(loop)] = 0;
    return at;
  }

  bool has_order(const Loop& loop) const {
    return llvm::any_of(loop.blocks(), [&](BasicBlock* b) { return orders_.count(b) != 0; });
  }

  // Blocks on the ways from one to another without going round a loop, both included.
  std::set<const BasicBlock*> between(const BasicBlock* from, const BasicBlock* to) {
    auto reach = [&](const BasicBlock* start, bool forward) {
      std::set<const BasicBlock*> seen{start};
      std::vector<const BasicBlock*> open{start};
      while (!open.empty()) {
        const BasicBlock* block = open.back();
        open.pop_back();
        auto visit = [&](const BasicBlock* next, bool is_back) {
          if (!is_back && seen.insert(next).second) open.push_back(next);
        };
        if (forward) {
          for (const BasicBlock* next : llvm::successors(block))
            visit(next, threads_.is_back_edge(block, next));
        } else {
          for (const BasicBlock* next : llvm::predecessors(block))
            visit(next, threads_.is_back_edge(next, block));
        }
      }
      return seen;
    };
    std::set<const BasicBlock*> ahead = reach(from, true), behind = reach(to, false), both;
    std::set_intersection(ahead.begin(), ahead.end(), behind.begin(), behind.end(),
                          std::inserter(both, both.end()));
    return both;
  }

  static bool is_free(const Instruction* begin, const Instruction* end) {
    for (; begin && begin != end; begin = begin->getNextNode()) {
      if (is_order(*begin)) return false;
    }
    return true;
  }

  // There is a way, and none has a barrier. `begin` null: from the start of `from`; `end` null: to
  // the end of `to`.
  bool is_way_free(const BasicBlock* from, const Instruction* begin, const BasicBlock* to,
                   const Instruction* end) {
    const Instruction* after = begin ? begin->getNextNode() : &from->front();
    if (from == to) {
      if (begin && end && !begin->comesBefore(end)) return false;
      return is_free(after, end);
    }
    std::set<const BasicBlock*> blocks = between(from, to);
    if (blocks.empty()) return false;
    blocks.erase(from);
    blocks.erase(to);
    return is_free(after, nullptr) && is_free(&to->front(), end) &&
           llvm::none_of(blocks, [&](const BasicBlock* b) { return orders_.count(b) != 0; });
  }

  // From one to the other in one iteration, or on to the next of `round`.
  bool is_free_between(const Instruction& first, const Instruction& second, const Loop* round) {
    const BasicBlock *from = first.getParent(), *to = second.getParent();
    if (!round) return is_way_free(from, &first, to, &second);
    const BasicBlock* latch = round->getLoopLatch();
    return latch && is_way_free(from, &first, latch, nullptr) &&
           is_way_free(round->getHeader(), nullptr, to, &second);
  }

  // Some threads go to one, others to the other.
  bool is_free_from_branch(const Instruction& first, const Instruction& second) {
    const BasicBlock *from = first.getParent(), *to = second.getParent();
    const BasicBlock* fork = threads_.dominators().findNearestCommonDominator(from, to);
    if (!fork || fork == from || fork == to) return false;
    auto* branch = dyn_cast<llvm::BranchInst>(fork->getTerminator());
    if (!branch || branch->isUnconditional()) return false;
    if (threads_.loops().getLoopFor(fork) && (!threads_.loops().getLoopFor(fork)->contains(from) ||
                                              !threads_.loops().getLoopFor(fork)->contains(to)))
      return false;
    const Truths& known = threads_.truths(branch->getCondition(), in_first_iterations(fork));
    return known.size() > 1 && is_way_free(fork, branch, from, &first) &&
           is_way_free(fork, branch, to, &second);
  }

  // The optimiser makes loads before it asks whether they are wanted.
  Mask users_of(const Access& access, const Iterations& at) {
    Mask mask = threads_.mask(access.instruction->getParent(), at);
    if (access.writes || access.instruction->use_empty()) return mask;
    Mask wanted(mask.size(), 0);
    for (llvm::User* user : access.instruction->users()) {
      auto* select = dyn_cast<llvm::SelectInst>(user);
      if (!select || select->getCondition() == access.instruction ||
          select->getTrueValue() == select->getFalseValue())
        return mask;
      const Truth other = select->getTrueValue() == access.instruction ? Truth::no : Truth::yes;
      const Truths& known = threads_.truths(select->getCondition(), at);
      for (size_t i = 0; i < mask.size(); ++i)
        wanted[i] |= known[known.size() == 1 ? 0 : i] != other;
    }
    for (size_t i = 0; i < mask.size(); ++i) mask[i] &= wanted[i];
    return mask;
  }

  // Whether threads of two simdgroups touch one byte.
  bool meet(const Access& first, const Iterations& at_first, const Access& second,
            const Iterations& at_second) {
    const Known a = threads_.distance(first.pointer, first.root, at_first);
    const Known b = threads_.distance(second.pointer, second.root, at_second);
    if (!a || !b || a->unknowns != b->unknowns) return false;
    const Mask first_mask = users_of(first, at_first), second_mask = users_of(second, at_second);
    auto [lowest, highest] = std::minmax_element(a->numbers.begin(), a->numbers.end());
    const int64_t base = *lowest, span = *highest - base + first.bytes;
    if (span > 64 * 1024) return false;
    std::vector<uint32_t> touched(static_cast<size_t>(span), 0);  // by which simdgroups
    for (size_t i = 0; i < first_mask.size(); ++i) {
      if (!first_mask[i]) continue;
      const size_t place = static_cast<size_t>(a->of(i) - base);
      for (size_t byte = 0; byte < static_cast<size_t>(first.bytes); ++byte)
        touched[place + byte] |= 1u << (i / simdgroup_size);
    }
    for (size_t i = 0; i < second_mask.size(); ++i) {
      if (!second_mask[i]) continue;
      for (int64_t place = b->of(i) - base; place < b->of(i) - base + second.bytes; ++place) {
        if (place >= 0 && place < span &&
            (touched[static_cast<size_t>(place)] & ~(1u << (i / simdgroup_size))) != 0)
          return true;
      }
    }
    return false;
  }

  Threads threads_;
  std::vector<Access> accesses_;
  std::set<const BasicBlock*> orders_;
};

}  // namespace

std::optional<ThreadgroupRace> find_threadgroup_race(llvm::Function& function,
                                                     std::array<uint32_t, 3> threadgroup) {
  const uint64_t threads = uint64_t{threadgroup[0]} * threadgroup[1] * threadgroup[2];
  if (threads <= simdgroup_size || threads > 1024) return std::nullopt;
  auto is_of_threadgroup = [](const llvm::Value& value) {
    return value.getType()->isPointerTy() &&
           value.getType()->getPointerAddressSpace() == address_space::threadgroup;
  };
  if (llvm::none_of(function.args(), is_of_threadgroup) &&
      llvm::none_of(function.getParent()->globals(), is_of_threadgroup))
    return std::nullopt;
  try {
    return Search(function, threadgroup).run();
  } catch (const OutOfWork&) {
    return std::nullopt;
  }
}

}  // namespace holdfast::msl
