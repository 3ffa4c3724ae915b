#include "msl/frontend/unproved_accesses.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LazyValueInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <optional>

#include "msl/scalar_ir.h"

namespace holdfast::msl {
namespace {

using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;

constexpr uint64_t most_threads = 1024, simdgroup_lanes = 32;

// Values below the given one.
std::optional<uint64_t> bound_of(llvm::StringRef intrinsic) {
  if (!intrinsic.consume_front(intrinsic_prefix)) return std::nullopt;
  if (intrinsic == "thread_index_in_simdgroup") return simdgroup_lanes;
  if (intrinsic == "simdgroup_index_in_threadgroup") return most_threads / simdgroup_lanes;
  if (intrinsic == "simdgroups_per_threadgroup") return most_threads / simdgroup_lanes + 1;
  if (intrinsic == "thread_position_in_threadgroup") return most_threads;
  if (intrinsic == "threads_per_threadgroup") return most_threads + 1;
  if (intrinsic == "dispatch_threads_per_threadgroup") return most_threads + 1;
  return std::nullopt;
}

void tell_ranges(llvm::Function& function) {
  llvm::MDBuilder metadata(function.getContext());
  for (Instruction& instruction : llvm::instructions(function)) {
    auto* call = dyn_cast<llvm::CallInst>(&instruction);
    if (!call || !call->getCalledFunction() || !call->getType()->isIntegerTy(32)) continue;
    if (std::optional<uint64_t> bound = bound_of(call->getCalledFunction()->getName()))
      call->setMetadata(llvm::LLVMContext::MD_range,
                        metadata.createRange(llvm::APInt(32, 0), llvm::APInt(32, *bound)));
  }
}

bool is_root(const Value* value) {
  if (auto* global = dyn_cast<llvm::GlobalVariable>(value)) return !global->isDeclaration();
  return isa<llvm::Argument, llvm::AllocaInst>(value);
}

// Arrays whose size is known.
class Bounds {
 public:
  explicit Bounds(llvm::Function& function)
      : layout_(function.getDataLayout()),
        names_(llvm::Triple(function.getParent()->getTargetTriple())),
        library_(names_, &function),
        dominators_(function),
        loops_(dominators_),
        assumptions_(function),
        values_(&assumptions_, &layout_),
        evolution_(function, library_, assumptions_, dominators_, loops_) {}

  bool prove(Instruction& access, Value* pointer, uint64_t bytes, const Value& root) {
    const uint64_t size = bytes_of_root(root, layout_);
    if (size < bytes) return false;
    // By constants alone, which is cheap and often enough.
    llvm::APInt offset(layout_.getIndexTypeSizeInBits(pointer->getType()), 0);
    if (pointer->stripAndAccumulateConstantOffsets(layout_, offset, true) == &root)
      return offset.ule(size - bytes);
    if (prove_by_values(access, pointer, size - bytes, root)) return true;
    const llvm::SCEV* distance = evolution_.getMinusSCEV(
        evolution_.getSCEV(pointer), evolution_.getSCEV(const_cast<Value*>(&root)));
    if (isa<llvm::SCEVCouldNotCompute>(distance)) return false;
    const llvm::SCEV* most = evolution_.getConstant(distance->getType(), size - bytes);
    return evolution_.isKnownPredicateAt(llvm::CmpInst::ICMP_ULE, distance, most, &access);
  }

 private:
  // By what is known of the indices where the access is, conditions around it included.
  bool prove_by_values(Instruction& access, Value* pointer, uint64_t most, const Value& root) {
    llvm::ConstantRange sum(llvm::APInt(64, 0));
    while (pointer != &root) {
      auto* operation = dyn_cast<llvm::GEPOperator>(pointer);
      if (!operation) {
        auto* cast = dyn_cast<llvm::AddrSpaceCastOperator>(pointer);
        if (!cast) return false;
        pointer = cast->getPointerOperand();
        continue;
      }
      llvm::MapVector<Value*, llvm::APInt> parts;
      llvm::APInt constant(64, 0);
      if (!operation->collectOffset(layout_, 64, parts, constant)) return false;
      sum = sum.add(llvm::ConstantRange(constant));
      for (auto& [index, scale] : parts) {
        llvm::ConstantRange range = values_.getConstantRange(index, &access, false);
        range = range.sextOrTrunc(64);
        if (range.isFullSet()) return false;
        sum = sum.add(range.multiply(llvm::ConstantRange(scale)));
      }
      pointer = operation->getPointerOperand();
    }
    return !sum.isFullSet() && sum.getUnsignedMax().ule(most);
  }

  const llvm::DataLayout& layout_;
  llvm::TargetLibraryInfoImpl names_;
  llvm::TargetLibraryInfo library_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  llvm::AssumptionCache assumptions_;
  llvm::LazyValueInfo values_;
  llvm::ScalarEvolution evolution_;
};

struct Described {
  Value* pointer = nullptr;  // null: touches no memory
  llvm::Type* type = nullptr;
  bool writes = false;
};

Described describe(Instruction& instruction) {
  if (auto* load = dyn_cast<llvm::LoadInst>(&instruction))
    return {load->getPointerOperand(), load->getType(), false};
  if (auto* store = dyn_cast<llvm::StoreInst>(&instruction))
    return {store->getPointerOperand(), store->getValueOperand()->getType(), true};
  if (auto* atomic = dyn_cast<llvm::AtomicRMWInst>(&instruction))
    return {atomic->getPointerOperand(), atomic->getType(), true};
  if (auto* exchange = dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
    return {exchange->getPointerOperand(), exchange->getCompareOperand()->getType(), true};
  return {};
}

}  // namespace

uint64_t bytes_of_root(const Value& root, const llvm::DataLayout& layout) {
  llvm::Type* type = nullptr;
  if (auto* global = dyn_cast<llvm::GlobalVariable>(&root)) {
    type = global->getValueType();
  } else {
    type = llvm::cast<llvm::AllocaInst>(root).getAllocatedType();
  }
  return layout.getTypeAllocSize(type).getFixedValue();
}

llvm::SmallVector<Value*, 1> roots_of(Value* pointer, llvm::Function& function) {
  llvm::SmallVector<const Value*, 4> found;
  llvm::getUnderlyingObjects(pointer, found, nullptr, /*MaxLookup=*/0);
  llvm::SmallVector<Value*, 1> roots;
  bool is_known = true;
  for (const Value* one : found) {
    if (isa<llvm::UndefValue>(one)) continue;
    is_known &= is_root(one);
    roots.push_back(const_cast<Value*>(one));
  }
  if (is_known && !roots.empty()) return roots;
  // Out of memory, or made of a number: anything of its address space.
  roots.clear();
  const unsigned space = pointer->getType()->getPointerAddressSpace();
  auto add = [&](Value& root) {
    const unsigned other = root.getType()->getPointerAddressSpace();
    if (space == address_space::generic || other == space) roots.push_back(&root);
  };
  for (llvm::Argument& argument : function.args()) add(argument);
  for (llvm::GlobalVariable& global : function.getParent()->globals()) {
    if (is_root(&global)) add(global);
  }
  for (Instruction& instruction : function.getEntryBlock()) {
    if (isa<llvm::AllocaInst>(instruction)) add(instruction);
  }
  return roots;
}

std::vector<UnprovedAccess> find_unproved_accesses(llvm::Function& function) {
  const llvm::DataLayout& layout = function.getDataLayout();
  tell_ranges(function);
  std::optional<Bounds> bounds;
  std::vector<UnprovedAccess> result;
  unsigned clusters = 0;
  for (llvm::BasicBlock& block : function) {
    struct Cluster {
      unsigned number;
      int64_t lowest, end;
    };
    llvm::MapVector<const Value*, Cluster> of_block;
    llvm::SmallVector<std::pair<const Value*, int64_t>, 16> places;
    const size_t first = result.size();
    for (Instruction& instruction : block) {
      const Described access = describe(instruction);
      if (!access.pointer) continue;
      const uint64_t bytes = layout.getTypeStoreSize(access.type).getFixedValue();
      llvm::SmallVector<Value*, 1> roots = roots_of(access.pointer, function);
      if (roots.size() == 1 && !isa<llvm::Argument>(roots[0])) {
        if (!bounds) bounds.emplace(function);
        if (bounds->prove(instruction, access.pointer, bytes, *roots[0])) continue;
      }
      llvm::APInt offset(layout.getIndexTypeSizeInBits(access.pointer->getType()), 0);
      const Value* base = access.pointer;
      // How a private array is laid out is up to the target: distances in it mean nothing here.
      if (llvm::none_of(roots, [](const Value* root) { return isa<llvm::AllocaInst>(root); }))
        base = base->stripAndAccumulateConstantOffsets(layout, offset, true);
      const int64_t at = offset.getSExtValue(), end = at + static_cast<int64_t>(bytes);
      auto [place, is_new] = of_block.insert({base, Cluster{clusters, at, end}});
      if (is_new) ++clusters;
      place->second.lowest = std::min(place->second.lowest, at);
      place->second.end = std::max(place->second.end, end);
      places.push_back({base, at});
      result.push_back({&instruction, access.pointer, bytes, access.writes, std::move(roots),
                        place->second.number, 0, 0});
    }
    for (size_t i = first; i < result.size(); ++i) {
      const auto& [base, at] = places[i - first];
      const Cluster& cluster = of_block.find(base)->second;
      result[i].lowest = cluster.lowest - at;
      result[i].end = cluster.end - at;
    }
  }
  return result;
}

}  // namespace holdfast::msl
