// Accesses that may lie outside of what the kernel was given (msl/frontend/unproved_accesses.h).
//
// A quick look covers all 32 lanes, those that are off too, and all accesses of a cluster: one
// comparison, but where addresses vary. When it cannot tell and some lanes are off, the others are
// looked at. What then is not inside is accessed by the runtime (atomic operations: by the lanes
// that the runtime says), which looks at each access of each lane.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <cstddef>

#include "devices/cpu/jit/compiler/codegen.h"
#include "devices/cpu/jit/compiler/widen/emitter.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

void Emitter::find_guarded() {
  if (!sites_) return;
  unproved_ = msl::find_unproved_accesses(scalar_);
  for (const msl::UnprovedAccess& access : unproved_) guarded_[access.instruction] = &access;
}

// In the block that computes what does not depend on the group.
llvm::Value* Emitter::range_field(const llvm::Argument& argument, size_t offset,
                                  const llvm::Twine& name) {
  llvm::IRBuilder<> at(entry_->getTerminator());
  auto load_field = [&](llvm::Type* type, Value* base, size_t place, const llvm::Twine& called) {
    llvm::LoadInst* load =
        at.CreateLoad(type, at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), base, place), called);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return load;
  };
  Value* ranges =
      load_field(at.getPtrTy(), context_pointer_, offsetof(GroupContext, ranges), "ranges");
  return load_field(at.getInt64Ty(), ranges, argument.getArgNo() * sizeof(ArgumentRange) + offset,
                    name);
}

const Emitter::Extent& Emitter::extent_of(const Value* root) {
  auto [found, is_new] = extents_.try_emplace(root);
  Extent& extent = found->second;
  if (!is_new) return extent;
  if (auto* argument = dyn_cast<llvm::Argument>(root)) {
    extent.before = range_field(*argument, offsetof(ArgumentRange, before), "before");
    extent.bytes = range_field(*argument, offsetof(ArgumentRange, bytes), "bytes");
  } else {
    uint64_t bytes = 0;
    if (auto* place = dyn_cast<llvm::AllocaInst>(root)) {
      bytes = memory_.blocks.find(place)->second.lane_bytes * simdgroup_width;
    } else {
      bytes = msl::bytes_of_root(*root, layout_);
    }
    extent.before = b_.getInt64(0);
    extent.bytes = b_.getInt64(bytes);
  }
  return extent;
}

// How many places a range of `span` bytes may begin at.
llvm::Value* Emitter::beginnings(const Value* root, uint64_t span) {
  Value*& made = beginnings_[{root, span}];
  if (!made) {
    Value* bytes = extent_of(root).bytes;
    llvm::IRBuilder<> at(entry_->getTerminator());
    made = at.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, bytes, at.getInt64(span - 1));
  }
  return made;
}

// Whether all accesses of the cluster are inside, as one bit: of all 32 lanes where a base and
// offsets tell the addresses, else of those that are on.
llvm::Value* Emitter::all_inside(const msl::UnprovedAccess& access) {
  Value*& known = inside_[access.cluster];
  if (known) return known;
  Shape s = shape(access.pointer);
  if (s.kind == Shape::varying) return known = active_inside(access);
  int64_t lowest = 0, highest = 0;
  if (s.has_base()) {
    for (int64_t lane = 0; lane < simdgroup_width; ++lane) {
      lowest = std::min(lowest, s.offset(lane));
      highest = std::max(highest, s.offset(lane));
    }
  }
  lowest += access.lowest;
  const auto span = static_cast<uint64_t>(highest + access.end - lowest);
  llvm::Type* i64 = b_.getInt64Ty();
  Value* place = b_.CreatePtrToInt(scalar_of(access.pointer), i64);
  Value* inside = b_.getFalse();
  for (const Value* root : access.roots) {
    Value* base = b_.CreatePtrToInt(scalar_of(root), i64);
    Value* before =
        b_.CreateAdd(extent_of(root).before, b_.getInt64(static_cast<uint64_t>(lowest)));
    Value* offset = b_.CreateAdd(b_.CreateSub(place, base), before);
    Value* one = b_.CreateICmpULT(offset, beginnings(root, span));
    inside = b_.CreateOr(inside, one);
  }
  return known = b_.CreateFreeze(inside);
}

// The same of the lanes that are on, each by its address.
llvm::Value* Emitter::active_inside(const msl::UnprovedAccess& access) {
  llvm::Type* i64 = b_.getInt64Ty();
  Value* places = b_.CreatePtrToInt(vector_of(access.pointer), wide(i64));
  Value* inside = lanes_.splat(b_.getFalse());
  for (const Value* root : access.roots) {
    Value* before =
        b_.CreateAdd(extent_of(root).before, b_.getInt64(static_cast<uint64_t>(access.lowest)));
    Value* first = b_.CreateSub(b_.CreatePtrToInt(scalar_of(root), i64), before);
    Value* limit = beginnings(root, static_cast<uint64_t>(access.end - access.lowest));
    Value* one = b_.CreateICmpULT(b_.CreateSub(places, lanes_.splat(first)), lanes_.splat(limit));
    inside = b_.CreateOr(inside, one);
  }
  inside = b_.CreateFreeze(inside);
  return lanes_.all(all_on() ? inside : b_.CreateOr(inside, b_.CreateNot(mask())));
}

// A function of the module that calls one of GuardRuntime and keeps all registers, so that the code
// around the call does not suffer from it.
llvm::Function* Emitter::guard_call(size_t function, llvm::FunctionType* type) {
  llvm::Function*& made = guard_calls_[function];
  if (made) return made;
  made = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                group_->getName() + ".guard", module_);
  made->addFnAttr(keeps_registers);
  for (auto attribute :
       {llvm::Attribute::NoInline, llvm::Attribute::Cold, llvm::Attribute::NoUnwind})
    made->addFnAttr(attribute);
  for (llvm::Argument& argument : made->args()) argument.addAttr(llvm::Attribute::NoCapture);
  // A load reads what it wants, and writes what it was given.
  using llvm::MemoryEffects;
  if (function == offsetof(GuardRuntime, load))
    made->setMemoryEffects(MemoryEffects::readOnly() | MemoryEffects::argMemOnly());
  if (function == offsetof(GuardRuntime, inside))
    made->setMemoryEffects(MemoryEffects::argMemOnly());
  llvm::IRBuilder<> b(Block::Create(context_, "entry", made));
  auto field = [&](Value* base, size_t offset) {
    return b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset));
  };
  Value* callee = field(field(made->getArg(0), offsetof(GroupContext, guards)), function);
  llvm::SmallVector<Value*, 3> arguments;
  for (llvm::Argument& argument : made->args()) arguments.push_back(&argument);
  if (set_ != InstructionSet::baseline)
    b.CreateIntrinsic(llvm::Intrinsic::x86_avx_vzeroupper, {}, {});
  llvm::CallInst* call = b.CreateCall(type, callee, arguments);
  call->setDoesNotThrow();
  if (type->getReturnType()->isVoidTy()) {
    b.CreateRetVoid();
  } else {
    b.CreateRet(call);
  }
  return made;
}

llvm::AllocaInst* Emitter::guard_memory(uint64_t bytes, uint64_t alignment) {
  llvm::IRBuilder<> at_start(entry_, entry_->begin());
  llvm::AllocaInst* made =
      at_start.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes), nullptr, "guarded");
  made->setAlignment(llvm::Align(alignment));
  return made;
}

// Calls a function of GuardRuntime for one access, so many bytes from `pointer` on. Of addresses
// that are the same in all lanes, one is looked at. `memory`: values or results; may be null.
llvm::CallInst* Emitter::call_guard(size_t function, const msl::UnprovedAccess& access,
                                    const Value* pointer, int64_t distance, llvm::Type* result,
                                    Value* memory) {
  if (!guarded_access_)
    guarded_access_ = guard_memory(sizeof(GuardedAccess), alignof(GuardedAccess));
  const auto count = static_cast<uint32_t>(access.roots.size());
  llvm::AllocaInst*& ranges = range_memory_[count];
  if (!ranges) ranges = guard_memory(count * sizeof(MemoryRange), alignof(MemoryRange));
  auto set = [&](Value* object, size_t offset, Value* value) {
    b_.CreateStore(value, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), object, offset));
  };
  for (uint32_t i = 0; i < count; ++i) {
    const Extent extent = extent_of(access.roots[i]);
    Value* begin =
        b_.CreateGEP(b_.getInt8Ty(), scalar_of(access.roots[i]), b_.CreateNeg(extent.before));
    set(ranges, i * sizeof(MemoryRange) + offsetof(MemoryRange, begin), begin);
    set(ranges, i * sizeof(MemoryRange) + offsetof(MemoryRange, bytes), extent.bytes);
  }
  const Shape s = shape(pointer);
  const bool is_one = s.kind == Shape::uniform;
  auto moved = [&](Value* from) {
    return distance == 0
               ? from
               : b_.CreateGEP(b_.getInt8Ty(), from, b_.getInt64(static_cast<uint64_t>(distance)));
  };
  Value* addresses = llvm::ConstantPointerNull::get(b_.getPtrTy());
  Value* base = addresses;
  if (is_one || s.kind == Shape::linear) {
    base = moved(scalar_of(pointer));
  } else {
    addresses = scratch(b_.getPtrTy(), guard_slot);
    b_.CreateAlignedStore(moved(vector_of(pointer)), addresses, llvm::Align(64));
  }
  const bool is_update = isa<llvm::AtomicRMWInst, llvm::AtomicCmpXchgInst>(access.instruction);
  set(guarded_access_, offsetof(GuardedAccess, site),
      sites_->site_of(*access.instruction, access.roots, access.writes));
  set(guarded_access_, offsetof(GuardedAccess, addresses), addresses);
  set(guarded_access_, offsetof(GuardedAccess, base), base);
  set(guarded_access_, offsetof(GuardedAccess, stride),
      b_.getInt64(static_cast<uint64_t>(is_one ? 0 : s.stride)));
  set(guarded_access_, offsetof(GuardedAccess, ranges), ranges);
  set(guarded_access_, offsetof(GuardedAccess, range_count), b_.getInt32(count));
  set(guarded_access_, offsetof(GuardedAccess, bytes),
      b_.getInt32(static_cast<uint32_t>(access.bytes)));
  set(guarded_access_, offsetof(GuardedAccess, lanes),
      is_one && !is_update ? b_.getInt32(1) : mask_bits());
  llvm::SmallVector<Value*, 3> arguments{context_pointer_, guarded_access_};
  if (memory) arguments.push_back(memory);
  llvm::SmallVector<llvm::Type*, 3> types(arguments.size(), b_.getPtrTy());
  llvm::Function* callee = guard_call(function, llvm::FunctionType::get(result, types, false));
  llvm::CallInst* call = b_.CreateCall(callee, arguments);
  call->addFnAttr(callee->getFnAttribute(keeps_registers));
  return call;
}

// An access in two ways; `join` makes one of what they gave.
void Emitter::guard(const msl::UnprovedAccess& access, llvm::function_ref<void()> when_inside,
                    llvm::function_ref<void()> otherwise,
                    llvm::function_ref<void(Block*, Block*)> join) {
  Value* inside = all_inside(access);
  Block* in = new_block("inside");
  Block* out = new_block("outside");
  Block* after = new_block("guarded");
  llvm::MDNode* likely = llvm::MDBuilder(context_).createBranchWeights(2000, 1);
  const bool may_be_of_lanes_off = !all_on() && shape(access.pointer).has_base();
  Block* not_all = may_be_of_lanes_off ? new_block("not_all_inside") : out;
  b_.CreateCondBr(inside, in, not_all, likely);
  auto held = held_;
  auto vectors = vectors_;
  if (may_be_of_lanes_off) {
    b_.SetInsertPoint(not_all);
    b_.CreateCondBr(active_inside(access), in, out, likely);
    held_ = held;
    vectors_ = vectors;
  }
  b_.SetInsertPoint(in);
  when_inside();
  Block* in_end = b_.GetInsertBlock();
  b_.CreateBr(after);
  held_ = held;
  vectors_ = vectors;
  b_.SetInsertPoint(out);
  otherwise();
  Block* out_end = b_.GetInsertBlock();
  b_.CreateBr(after);
  held_ = std::move(held);
  vectors_ = std::move(vectors);
  b_.SetInsertPoint(after);
  join(in_end, out_end);
}

llvm::Value* Emitter::either(Value* inside, Block* in, Value* outside, Block* out) {
  llvm::PHINode* phi = b_.CreatePHI(inside->getType(), 2);
  phi->addIncoming(inside, in);
  phi->addIncoming(outside, out);
  return phi;
}

// Loads that are read together are guarded together.
bool Emitter::are_guarded_alike(const llvm::Instruction& one,
                                const llvm::Instruction& other) const {
  const msl::UnprovedAccess *a = guarded_.lookup(&one), *b = guarded_.lookup(&other);
  return a && b ? a->cluster == b->cluster : a == b;
}

Emitter::LoadedTogether Emitter::load_guarded(llvm::LoadInst& load,
                                              const msl::UnprovedAccess& access) {
  LoadedTogether loaded;
  llvm::SmallVector<Value*, 4> outside;
  auto by_runtime = [&](const Loaded& one) -> Value* {
    const msl::UnprovedAccess& own = *guarded_.lookup(one.load);
    llvm::Type* type = plain(one.load->getType());
    llvm::Type* stored = type->isIntegerTy(1) ? b_.getInt8Ty() : type;
    Value* memory = scratch(stored, guard_slot + 1);
    call_guard(offsetof(GuardRuntime, load), own, access.pointer, one.distance, b_.getVoidTy(),
               memory);
    const bool is_one = shape(access.pointer).kind == Shape::uniform;
    llvm::Type* loaded_type = is_one ? stored : wide(stored);
    Value* value = b_.CreateAlignedLoad(loaded_type, memory, llvm::Align(64));
    return stored == type ? value : b_.CreateTrunc(value, is_one ? type : wide(type));
  };
  guard(
      access, [&] { loaded = load_lanes(load); },
      [&] {
        for (const Loaded& one : loaded) outside.push_back(by_runtime(one));
      },
      [&](Block* in, Block* out) {
        for (size_t i = 0; i < loaded.size(); ++i)
          loaded[i].value = either(loaded[i].value, in, outside[i], out);
      });
  return loaded;
}

void Emitter::store_guarded(llvm::StoreInst& store, const msl::UnprovedAccess& access) {
  guard(
      access, [&] { store_lanes(store); },
      [&] {
        const Value* value = store.getValueOperand();
        Value* values = nullptr;
        if (shape(store.getPointerOperand()).kind == Shape::uniform) {
          // The highest lane that is on has the last word.
          values =
              lanes_.splat(shape(value).kind == Shape::uniform ? scalar_of(value)
                                                               : last_active(vector_of(value)));
        } else {
          values = vector_of(value);
        }
        if (values->getType()->getScalarType()->isIntegerTy(1))
          values = b_.CreateZExt(values, wide(b_.getInt8Ty()));
        Value* memory = scratch(values->getType()->getScalarType(), guard_slot + 1);
        b_.CreateAlignedStore(values, memory, llvm::Align(64));
        call_guard(offsetof(GuardRuntime, store), access, access.pointer, 0, b_.getVoidTy(),
                   memory);
      },
      [](Block*, Block*) {});
}

// Of an atomic operation: the lanes that are inside go on as if the others were off.
void Emitter::update_guarded(llvm::Instruction& atomic, const msl::UnprovedAccess& access) {
  auto update = [&]() -> std::array<Value*, 2> {
    if (auto* exchange = dyn_cast<llvm::AtomicCmpXchgInst>(&atomic))
      return compare_exchange_lanes(*exchange);
    return {update_lanes(cast<llvm::AtomicRMWInst>(atomic)), nullptr};
  };
  std::array<Value*, 2> inside{}, outside{};
  auto none = [](Value* like) -> Value* {
    return like ? llvm::Constant::getNullValue(like->getType()) : nullptr;
  };
  guard(
      access, [&] { inside = update(); },
      [&] {
        llvm::CallInst* bits = call_guard(offsetof(GuardRuntime, inside), access, access.pointer, 0,
                                          b_.getInt32Ty(), nullptr);
        Block* before = b_.GetInsertBlock();
        Block* some = new_block("some.inside");
        Block* done = new_block("updated");
        b_.CreateCondBr(b_.CreateICmpNE(bits, b_.getInt32(0)), some, done);
        b_.SetInsertPoint(some);
        Value*& narrowed = version_ == converged ? predicate_ : current_mask_;
        Value* whole =
            std::exchange(narrowed, b_.CreateBitCast(bits, lanes_.all_ones()->getType()));
        std::array<Value*, 2> updated = update();
        narrowed = whole;
        Block* some_end = b_.GetInsertBlock();
        b_.CreateBr(done);
        b_.SetInsertPoint(done);
        for (size_t i = 0; i < updated.size(); ++i) {
          if (updated[i]) outside[i] = either(updated[i], some_end, none(updated[i]), before);
        }
      },
      [&](Block* in, Block* out) {
        for (size_t i = 0; i < inside.size(); ++i) {
          if (inside[i]) inside[i] = either(inside[i], in, outside[i], out);
        }
      });
  set_updated(atomic, inside);
}

}  // namespace holdfast::jit
