// The values that instructions of a kernel have in each thread of one threadgroup, and which
// threads come to a block, as far as both follow from the positions of threads.
#pragma once

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "msl/frontend/unproved_accesses.h"
#include "msl/scalar_ir.h"

namespace holdfast::msl::thread_values {

using llvm::BasicBlock;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Loop;
using llvm::Value;

inline constexpr uint32_t simdgroup_size = 32;
// Where the look ends: this much work is some hundredths of a second.
inline constexpr size_t most_work = size_t{1} << 24;

// What is known of an integer: for every thread a number, plus a sum of values that are unknown but
// the same for all threads.
struct Sum {
  std::vector<int64_t> numbers;                        // one for all threads, or one for each
  std::vector<std::pair<unsigned, int64_t>> unknowns;  // which, and how often; sorted

  bool is_uniform() const { return numbers.size() == 1; }
  bool is_number() const { return unknowns.empty(); }
  int64_t of(size_t thread) const { return numbers[is_uniform() ? 0 : thread]; }
};
using Known = std::optional<Sum>;

enum class Truth : uint8_t { no, yes, maybe };
using Truths = std::vector<Truth>;  // one for all threads, or one for each
using Mask = std::vector<uint8_t>;  // threads that may come somewhere

// In which iteration of each loop (by number) we are; -1: in none.
using Iterations = std::vector<int>;

struct OutOfWork {};

inline std::optional<llvm::StringRef> intrinsic_of(const Instruction& instruction) {
  auto* call = dyn_cast<llvm::CallInst>(&instruction);
  if (!call || !call->getCalledFunction()) return std::nullopt;
  llvm::StringRef name = call->getCalledFunction()->getName();
  if (!name.consume_front(intrinsic_prefix)) return std::nullopt;
  return name;
}

// As LLVM has it: sign-extended, truth values 0 and 1.
inline int64_t wrap(int64_t number, unsigned bits) {
  if (bits >= 64) return number;
  if (bits == 1) return number & 1;
  return static_cast<int64_t>(static_cast<uint64_t>(number) << (64 - bits)) >> (64 - bits);
}
inline uint64_t without_sign(int64_t number, unsigned bits) {
  return bits >= 64 ? static_cast<uint64_t>(number)
                    : static_cast<uint64_t>(number) & ((uint64_t{1} << bits) - 1);
}

inline std::optional<int64_t> compute(unsigned opcode, int64_t a, int64_t b, unsigned bits) {
  const uint64_t ua = without_sign(a, bits), ub = without_sign(b, bits);
  auto unsigned_result = [&](uint64_t value) { return wrap(static_cast<int64_t>(value), bits); };
  switch (opcode) {
    case Instruction::Add:
      return unsigned_result(ua + ub);
    case Instruction::Sub:
      return unsigned_result(ua - ub);
    case Instruction::Mul:
      return unsigned_result(ua * ub);
    case Instruction::And:
      return a & b;
    case Instruction::Or:
      return a | b;
    case Instruction::Xor:
      return wrap(a ^ b, bits);
    case Instruction::UDiv:
      return ub == 0 ? std::nullopt : std::optional(unsigned_result(ua / ub));
    case Instruction::URem:
      return ub == 0 ? std::nullopt : std::optional(unsigned_result(ua % ub));
    case Instruction::Shl:
      return ub >= bits ? std::nullopt : std::optional(unsigned_result(ua << ub));
    case Instruction::LShr:
      return ub >= bits ? std::nullopt : std::optional(unsigned_result(ua >> ub));
    case Instruction::AShr:
      return ub >= bits ? std::nullopt : std::optional(a >> ub);
    case Instruction::SDiv:
    case Instruction::SRem:
      if (b == 0 || b == -1) return std::nullopt;
      return wrap(opcode == Instruction::SDiv ? a / b : a % b, bits);
    default:
      return std::nullopt;
  }
}

inline std::optional<int64_t> compute_minimum(llvm::Intrinsic::ID id, int64_t a, int64_t b,
                                              unsigned bits) {
  const bool is_less_without_sign = without_sign(a, bits) < without_sign(b, bits);
  switch (id) {
    case llvm::Intrinsic::smin:
      return std::min(a, b);
    case llvm::Intrinsic::smax:
      return std::max(a, b);
    case llvm::Intrinsic::umin:
      return is_less_without_sign ? a : b;
    case llvm::Intrinsic::umax:
      return is_less_without_sign ? b : a;
    default:
      return std::nullopt;
  }
}

// The values that instructions have, and where threads go, in one threadgroup.
class Threads {
 public:
  Threads(llvm::Function& function, std::array<uint32_t, 3> shape)
      : function_(function),
        layout_(function.getDataLayout()),
        shape_(shape),
        count_(size_t{shape[0]} * shape[1] * shape[2]),
        dominators_(function),
        loops_(dominators_) {
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      const auto number = static_cast<unsigned>(numbers_.size());
      numbers_[loop] = number;
    }
    for (BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function))
      order_.push_back(block);
    for (Instruction& instruction : llvm::instructions(function)) {
      Value* written = nullptr;
      if (auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
        written = store->getPointerOperand();
      } else if (isa<llvm::AtomicRMWInst, llvm::AtomicCmpXchgInst>(instruction)) {
        written = instruction.getOperand(0);
      } else if (auto* copy = dyn_cast<llvm::MemIntrinsic>(&instruction)) {
        written = copy->getRawDest();
      }
      if (!written) continue;
      for (Value* root : roots_of(written, function)) written_.insert(root);
    }
  }

  size_t count() const { return count_; }
  const llvm::LoopInfo& loops() const { return loops_; }
  const llvm::DominatorTree& dominators() const { return dominators_; }
  Iterations nowhere() const { return Iterations(numbers_.size(), -1); }
  unsigned number_of(const Loop* loop) const { return numbers_.at(loop); }
  bool is_back_edge(const BasicBlock* from, const BasicBlock* to) const {
    const Loop* loop = loops_.getLoopFor(to);
    return loop && loop->getHeader() == to && loop->contains(from);
  }

  // The bytes between `root` and where `pointer` points.
  Known distance(Value* pointer, const Value* root, const Iterations& at) {
    Sum sum{{0}, {}};
    while (pointer != root) {
      if (auto* cast = dyn_cast<llvm::AddrSpaceCastOperator>(pointer)) {
        pointer = cast->getPointerOperand();
        continue;
      }
      auto* element = dyn_cast<llvm::GEPOperator>(pointer);
      llvm::MapVector<Value*, llvm::APInt> parts;
      llvm::APInt constant(64, 0);
      if (!element || !element->collectOffset(layout_, 64, parts, constant)) return std::nullopt;
      for (int64_t& number : sum.numbers) number += constant.getSExtValue();
      for (auto& [index, scale] : parts) {
        const Known& part = value(index, at);
        if (!part) return std::nullopt;
        sum = add(sum, *part, scale.getSExtValue());
      }
      pointer = element->getPointerOperand();
    }
    return sum;
  }

  const Known& value(Value* value, Iterations at) {
    restrict(at, value);
    auto [place, is_new] = values_.try_emplace({value, at});
    // One that is asked for while it is being computed depends on itself: not known.
    if (is_new) {
      Known known = compute_value(value, at);
      values_[{value, at}] = std::move(known);
    }
    return values_[{value, at}];
  }

  const Truths& truths(Value* condition, Iterations at) {
    restrict(at, condition);
    auto [place, is_new] = truths_.try_emplace({condition, at}, Truths{Truth::maybe});
    if (is_new) {
      Truths truths = compute_truths(condition, at);
      truths_[{condition, at}] = std::move(truths);
    }
    return truths_[{condition, at}];
  }

  // Which threads may come to a block, in these iterations of the loops around it.
  const Mask& mask(const BasicBlock* block, const Iterations& at) {
    auto [place, is_new] = masks_.try_emplace(at);
    if (is_new) {
      std::map<const BasicBlock*, Mask> masks;
      for (BasicBlock* one : order_) {
        Mask& mask = masks[one] = Mask(count_, one == &function_.getEntryBlock());
        const Loop* loop = loops_.getLoopFor(one);
        const bool is_header = loop && loop->getHeader() == one;
        const int iteration = is_header ? at[number_of(loop)] : -1;
        if (iteration > 0) {
          Iterations before = at;
          --before[number_of(loop)];
          for (BasicBlock* latch : llvm::predecessors(one)) {
            if (loop->contains(latch)) go(this->mask(latch, before), latch, one, before, mask);
          }
          continue;
        }
        for (BasicBlock* from : llvm::predecessors(one)) {
          if (!is_back_edge(from, one)) go(masks[from], from, one, at, mask);
        }
      }
      masks_[at] = std::move(masks);
    }
    return masks_[at][block];
  }

 private:
  using Key = std::pair<const Value*, Iterations>;

  // Only loops around a value make a difference to it.
  void restrict(Iterations& at, const Value* value) const {
    auto* instruction = dyn_cast<Instruction>(value);
    for (auto& [loop, number] : numbers_) {
      if (!instruction || !loop->contains(instruction)) at[number] = -1;
    }
  }

  void work(size_t amount) {
    work_ += amount;
    if (work_ > most_work) throw OutOfWork();
  }

  Sum unknown(const Value* value, const Iterations& at) {
    const auto number = static_cast<unsigned>(unknowns_.size());
    return {{0}, {{unknowns_.try_emplace({value, at}, number).first->second, 1}}};
  }

  template <typename Number>
  Sum each(Number number) {
    work(count_);
    Sum sum{std::vector<int64_t>(count_), {}};
    for (size_t i = 0; i < count_; ++i) sum.numbers[i] = static_cast<int64_t>(number(i));
    return sum;
  }

  Sum add(const Sum& a, const Sum& b, int64_t factor) {
    Sum sum = a;
    if (sum.is_uniform() && !b.is_uniform()) sum.numbers.resize(b.numbers.size(), a.numbers[0]);
    work(sum.numbers.size());
    for (size_t i = 0; i < sum.numbers.size(); ++i) sum.numbers[i] += b.of(i) * factor;
    for (auto [which, often] : b.unknowns) {
      auto place = llvm::lower_bound(sum.unknowns, std::pair(which, INT64_MIN));
      if (place == sum.unknowns.end() || place->first != which)
        place = sum.unknowns.insert(place, {which, 0});
      place->second += often * factor;
      if (place->second == 0) sum.unknowns.erase(place);
    }
    return sum;
  }

  template <typename Compute>
  Known each_of(const Sum& a, const Sum& b, Compute compute) {
    Sum result{std::vector<int64_t>(std::max(a.numbers.size(), b.numbers.size())), {}};
    work(result.numbers.size());
    for (size_t i = 0; i < result.numbers.size(); ++i) {
      std::optional<int64_t> number = compute(a.of(i), b.of(i));
      if (!number) return std::nullopt;
      result.numbers[i] = *number;
    }
    return result;
  }

  Known position(llvm::StringRef name, const llvm::CallInst& call) {
    unsigned axis = 0;
    if (call.arg_size() == 1) {
      auto* constant = dyn_cast<llvm::ConstantInt>(call.getArgOperand(0));
      if (!constant || constant->getZExtValue() > 2) return std::nullopt;
      axis = static_cast<unsigned>(constant->getZExtValue());
    }
    if (name == "thread_position_in_threadgroup") {
      const uint32_t below = axis == 0 ? 1 : axis == 1 ? shape_[0] : shape_[0] * shape_[1];
      return each([&](size_t i) { return i / below % shape_[axis]; });
    }
    if (name == "thread_index_in_simdgroup")
      return each([](size_t i) { return i % simdgroup_size; });
    if (name == "simdgroup_index_in_threadgroup")
      return each([](size_t i) { return i / simdgroup_size; });
    if (name == "threads_per_threadgroup" || name == "dispatch_threads_per_threadgroup")
      return Sum{{shape_[axis]}, {}};
    if (name == "simdgroups_per_threadgroup")
      return Sum{{static_cast<int64_t>((count_ + simdgroup_size - 1) / simdgroup_size)}, {}};
    if (name == "threadgroup_position_in_grid" || name == "threadgroups_per_grid" ||
        name == "threads_per_grid")
      return unknown(call.getCalledFunction(), {static_cast<int>(axis)});
    return std::nullopt;
  }

  // The header's: what comes from before the loop, or from the iteration before.
  Known value_of_phi(llvm::PHINode& phi, const Iterations& at) {
    const Loop* loop = loops_.getLoopFor(phi.getParent());
    const bool is_header = loop && loop->getHeader() == phi.getParent();
    const int iteration = is_header ? at[number_of(loop)] : 0;
    if (iteration < 0) return std::nullopt;
    Iterations there = at;
    if (iteration > 0) --there[number_of(loop)];
    Known result;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      const bool is_from_inside = is_header && loop->contains(phi.getIncomingBlock(i));
      if (is_header && is_from_inside != (iteration > 0)) continue;
      const Known& one = value(phi.getIncomingValue(i), there);
      if (!one) return std::nullopt;
      if (result && (result->numbers != one->numbers || result->unknowns != one->unknowns))
        return std::nullopt;
      result = one;
    }
    return result;
  }

  Known value_of_load(llvm::LoadInst& load, const Iterations& at) {
    if (!load.isSimple()) return std::nullopt;
    llvm::SmallVector<Value*, 1> roots = roots_of(load.getPointerOperand(), function_);
    if (roots.size() != 1 || isa<llvm::AllocaInst>(roots[0]) || written_.count(roots[0]))
      return std::nullopt;
    Known where = distance(load.getPointerOperand(), roots[0], at);
    if (!where || !where->is_uniform()) return std::nullopt;
    return unknown(&load, at);
  }

  Known value_of_operation(Instruction& operation, const Iterations& at) {
    const Known& a = value(operation.getOperand(0), at);
    const Known& b = value(operation.getOperand(1), at);
    if (!a || !b) return std::nullopt;
    const unsigned opcode = operation.getOpcode();
    const unsigned bits = operation.getType()->getIntegerBitWidth();
    if (a->is_number() && b->is_number()) {
      return each_of(*a, *b, [&](int64_t x, int64_t y) { return compute(opcode, x, y, bits); });
    }
    auto* disjoint = dyn_cast<llvm::PossiblyDisjointInst>(&operation);
    // Sums do not wrap around here: where they do, the kernel is outside of its memory.
    if (opcode == Instruction::Add || (disjoint && disjoint->isDisjoint())) return add(*a, *b, 1);
    if (opcode == Instruction::Sub) return add(*a, *b, -1);
    const bool is_scaled = b->is_number() && b->is_uniform();
    if (opcode == Instruction::Mul && is_scaled) return add({{0}, {}}, *a, b->of(0));
    if (opcode == Instruction::Shl && is_scaled && b->of(0) >= 0 && b->of(0) < 32)
      return add({{0}, {}}, *a, int64_t{1} << b->of(0));
    if (a->is_uniform() && b->is_uniform()) return unknown(&operation, at);
    return std::nullopt;
  }

  Known value_of_cast(llvm::CastInst& cast, const Iterations& at) {
    const Known& operand = value(cast.getOperand(0), at);
    if (!operand || !operand->is_number()) return operand;
    const unsigned from = cast.getSrcTy()->getIntegerBitWidth();
    const unsigned to = cast.getDestTy()->getIntegerBitWidth();
    Sum result = *operand;
    work(result.numbers.size());
    for (int64_t& number : result.numbers) {
      if (isa<llvm::ZExtInst>(cast)) number = static_cast<int64_t>(without_sign(number, from));
      if (isa<llvm::SExtInst>(cast) && from == 1) number = -number;
      number = wrap(number, to);
    }
    return result;
  }

  Known value_of_truths(Instruction& instruction, const Iterations& at) {
    const Truths& known = truths(&instruction, at);
    if (llvm::is_contained(known, Truth::maybe)) return std::nullopt;
    Sum result;
    for (Truth truth : known) result.numbers.push_back(truth == Truth::yes);
    return result;
  }

  Known value_of_select(llvm::SelectInst& select, const Iterations& at) {
    const Truths& condition = truths(select.getCondition(), at);
    if (llvm::is_contained(condition, Truth::maybe)) return std::nullopt;
    const Known& yes = value(select.getTrueValue(), at);
    const Known& no = value(select.getFalseValue(), at);
    if (condition.size() == 1) return condition[0] == Truth::yes ? yes : no;
    if (!yes || !no || yes->unknowns != no->unknowns) return std::nullopt;
    Sum result = each([&](size_t i) { return (condition[i] == Truth::yes ? yes : no)->of(i); });
    result.unknowns = yes->unknowns;
    return result;
  }

  Known compute_value(Value* value, const Iterations& at) {
    if (auto* constant = dyn_cast<llvm::ConstantInt>(value)) {
      if (constant->getBitWidth() > 64) return std::nullopt;
      return Sum{{wrap(constant->getSExtValue(), constant->getBitWidth())}, {}};
    }
    if (isa<llvm::UndefValue>(value)) return std::nullopt;
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction) return isa<llvm::Constant>(value) ? Known(unknown(value, {})) : Known();
    if (auto* call = dyn_cast<llvm::CallInst>(instruction)) {
      if (auto name = intrinsic_of(*call)) return position(*name, *call);
    }
    if (auto* load = dyn_cast<llvm::LoadInst>(instruction)) return value_of_load(*load, at);
    if (auto* phi = dyn_cast<llvm::PHINode>(instruction)) return value_of_phi(*phi, at);
    if (isa<llvm::FreezeInst>(instruction)) return this->value(instruction->getOperand(0), at);
    auto* type = dyn_cast<llvm::IntegerType>(instruction->getType());
    if (type && type->getBitWidth() <= 64) {
      if (auto* select = dyn_cast<llvm::SelectInst>(instruction); select && type->getBitWidth() > 1)
        return value_of_select(*select, at);
      if (type->getBitWidth() == 1 && is_logic(*instruction))
        return value_of_truths(*instruction, at);
      if (isa<llvm::BinaryOperator>(instruction)) return value_of_operation(*instruction, at);
      if (isa<llvm::ZExtInst, llvm::SExtInst, llvm::TruncInst>(instruction))
        return value_of_cast(*llvm::cast<llvm::CastInst>(instruction), at);
      if (auto* minimum = dyn_cast<llvm::MinMaxIntrinsic>(instruction)) {
        const Known& a = this->value(minimum->getLHS(), at);
        const Known& b = this->value(minimum->getRHS(), at);
        if (!a || !b) return std::nullopt;
        if (a->is_number() && b->is_number()) {
          return each_of(*a, *b, [&](int64_t x, int64_t y) {
            return compute_minimum(minimum->getIntrinsicID(), x, y, type->getBitWidth());
          });
        }
      }
    }
    return value_of_uniform(*instruction, at);
  }

  // The same for all threads when all that it is made of is.
  Known value_of_uniform(Instruction& instruction, const Iterations& at) {
    if (instruction.mayReadOrWriteMemory() || instruction.isTerminator()) return std::nullopt;
    for (Value* operand : instruction.operands()) {
      if (isa<llvm::Function>(operand)) continue;
      const Known& known = value(operand, at);
      if (!known || !known->is_uniform()) return std::nullopt;
    }
    return unknown(&instruction, at);
  }

  static bool is_logic(const Instruction& instruction) {
    switch (instruction.getOpcode()) {
      case Instruction::ICmp:
      case Instruction::And:
      case Instruction::Or:
      case Instruction::Xor:
      case Instruction::Select:
        return true;
      default:
        return false;
    }
  }

  Truths compute_truths(Value* condition, const Iterations& at) {
    auto* instruction = dyn_cast<Instruction>(condition);
    if (instruction && is_logic(*instruction)) {
      if (auto* comparison = dyn_cast<llvm::ICmpInst>(instruction)) return compare(*comparison, at);
      const bool is_select = isa<llvm::SelectInst>(instruction);
      const Truths& a = truths(instruction->getOperand(0), at);
      const Truths& b = truths(instruction->getOperand(1), at);
      const Truths& c = is_select ? truths(instruction->getOperand(2), at) : b;
      Truths result(std::max({a.size(), b.size(), c.size()}));
      work(result.size());
      for (size_t i = 0; i < result.size(); ++i) {
        auto of = [i](const Truths& truths) { return truths[truths.size() == 1 ? 0 : i]; };
        result[i] = combine(instruction->getOpcode(), of(a), of(b), of(c));
      }
      return result;
    }
    const Known& known = value(condition, at);
    if (!known || !known->is_number()) return {Truth::maybe};
    Truths result;
    for (int64_t number : known->numbers) result.push_back(number & 1 ? Truth::yes : Truth::no);
    return result;
  }

  static Truth combine(unsigned opcode, Truth a, Truth b, Truth c) {
    switch (opcode) {
      case Instruction::And:
        if (a == Truth::no || b == Truth::no) return Truth::no;
        return a == Truth::yes && b == Truth::yes ? Truth::yes : Truth::maybe;
      case Instruction::Or:
        if (a == Truth::yes || b == Truth::yes) return Truth::yes;
        return a == Truth::no && b == Truth::no ? Truth::no : Truth::maybe;
      case Instruction::Xor:
        if (a == Truth::maybe || b == Truth::maybe) return Truth::maybe;
        return a != b ? Truth::yes : Truth::no;
      default:
        if (a == Truth::maybe) return b == c ? b : Truth::maybe;
        return a == Truth::yes ? b : c;
    }
  }

  Truths compare(llvm::ICmpInst& comparison, const Iterations& at) {
    auto* type = dyn_cast<llvm::IntegerType>(comparison.getOperand(0)->getType());
    if (!type || type->getBitWidth() > 64) return {Truth::maybe};
    const Known& a = value(comparison.getOperand(0), at);
    const Known& b = value(comparison.getOperand(1), at);
    if (!a || !b || a->unknowns != b->unknowns) return {Truth::maybe};
    const unsigned bits = type->getBitWidth();
    Truths result(std::max(a->numbers.size(), b->numbers.size()));
    work(result.size());
    for (size_t i = 0; i < result.size(); ++i) {
      const llvm::APInt x(bits, without_sign(a->of(i), bits)),
          y(bits, without_sign(b->of(i), bits));
      result[i] = llvm::ICmpInst::compare(x, y, comparison.getPredicate()) ? Truth::yes : Truth::no;
    }
    return result;
  }

  // Adds to `mask` which of the threads at the end of `from` go on to `to`.
  void go(const Mask& threads, BasicBlock* from, BasicBlock* to, const Iterations& at, Mask& mask) {
    work(count_);
    auto* branch = dyn_cast<llvm::BranchInst>(from->getTerminator());
    if (!branch || branch->isUnconditional() ||
        branch->getSuccessor(0) == branch->getSuccessor(1)) {
      for (size_t i = 0; i < count_; ++i) mask[i] |= threads[i];
      return;
    }
    const Truth other = branch->getSuccessor(0) == to ? Truth::no : Truth::yes;
    const Truths& known = truths(branch->getCondition(), at);
    for (size_t i = 0; i < count_; ++i)
      mask[i] |= threads[i] && known[known.size() == 1 ? 0 : i] != other;
  }

  llvm::Function& function_;
  const llvm::DataLayout& layout_;
  const std::array<uint32_t, 3> shape_;
  const size_t count_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  std::map<const Loop*, unsigned> numbers_;
  std::vector<BasicBlock*> order_;
  std::set<const Value*> written_;
  std::map<Key, Known> values_;
  std::map<Key, Truths> truths_;
  std::map<Key, unsigned> unknowns_;
  std::map<Iterations, std::map<const BasicBlock*, Mask>> masks_;
  size_t work_ = 0;
};

}  // namespace holdfast::msl::thread_values
