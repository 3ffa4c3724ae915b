// Writes the body of a kernel for 32 lanes, twice: converged and masked (see widen.h).
//
// A value of the scalar function is held
//   uniform   as one scalar
//   linear    as the scalar that lane 0 has by the formula base + lane * stride
//   varying   as a vector of 32
// by the shapes of the version. What lives longer than a block is held in a variable (an alloca
// that becomes SSA at the end); the two versions share it where the shapes agree, else a jump
// between the versions converts it.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <array>
#include <string>
#include <vector>

#include "devices/cpu/jit/compiler/outside_sites.h"
#include "devices/cpu/jit/compiler/widen/cross_lane.h"
#include "devices/cpu/jit/compiler/widen/growth.h"
#include "devices/cpu/jit/compiler/widen/linearise.h"
#include "devices/cpu/jit/compiler/widen/loop_facts.h"
#include "devices/cpu/jit/compiler/widen/private_memory.h"
#include "devices/cpu/jit/compiler/widen/shapes.h"
#include "devices/cpu/jit/compiler/widen/widen.h"
#include "msl/frontend/unproved_accesses.h"

namespace holdfast::jit {

// What the body was written into: a loop over groups, in it a loop over the simdgroups of a group.
struct GroupFunction {
  llvm::Function* function = nullptr;
  llvm::BasicBlock* group = nullptr;  // where a group begins; computes what depends on it alone
  llvm::BasicBlock* head =
      nullptr;  // of the loop; computes what each simdgroup needs, then jumps to `start`
  llvm::BasicBlock* start = nullptr;  // where a simdgroup begins
  llvm::BasicBlock* next = nullptr;   // where a simdgroup has ended
  llvm::BasicBlock* done = nullptr;   // where a group has ended, or was cancelled
  llvm::PHINode* simdgroup = nullptr;
  llvm::Value* simdgroups = nullptr;        // how many
  llvm::Instruction* frame = nullptr;       // this simdgroup's part of GroupContext::frame
  llvm::Instruction* frame_size = nullptr;  // the stride between them: a placeholder to be replaced
  llvm::Function* barrier = nullptr;        // called where the group synchronises; null: nowhere
  uint64_t frame_bytes = 0;                 // used so far
};

class Emitter {
 public:
  Emitter(llvm::Function& scalar, ControlFlow& flow, const PrivateMemory& memory,
          const Shapes& converged, const Shapes& masked, const Linearisation& linearisation,
          const LoopFacts& loops, const Growth& growth, InstructionSet set, OutsideSites* sites,
          WidenResult& result);

  GroupFunction run();

 private:
  enum Version : uint8_t { converged, masked };
  using Block = llvm::BasicBlock;
  using Value = llvm::Value;
  // What is iterated over keeps its order: the object must not depend on addresses.
  using ValueSet = llvm::SetVector<const Value*>;
  // What a lane has of the result of a matrix product.
  using MatrixElements = llvm::SmallVector<Value*, 4>;

  // emitter.cpp: what is computed once, how long values live, their variables
  void hoist_uniform();
  bool can_hoist(const llvm::Instruction& instruction) const;
  void find_escaping();
  void find_live();
  void start_variables(const llvm::AllocaInst* started);
  void count_written(const Block& block);
  llvm::AllocaInst* variable(const Value* value, Version version);
  llvm::AllocaInst* make_variable(llvm::Type* type, const llvm::Twine& name);
  llvm::AllocaInst* pending(Block* block);
  llvm::AllocaInst* mask_of(Block* block);
  llvm::AllocaInst* condition_of(Block* block);
  bool is_dual(const Value* value) const;
  Block* new_block(const llvm::Twine& name);

  // emit_frame.cpp: the function around the body, memory
  void make_function();
  void place_positions(Value* index, Value* in_one_row);
  void place_globals();
  void place_private_memory();

  // emit_control.cpp: blocks, masks, branches
  void emit_block(Version version, Block* block);
  void emit_guards(Block* block);
  void emit_mask(Block* block);
  void emit_reentry(Block* block, Value* mask);
  bool may_reenter(Block* block) const;
  void emit_end(Block* block);
  bool decide_by_ends(const llvm::BranchInst& branch, Value*& all, Value*& none);
  void emit_converged_end(llvm::BranchInst& branch);
  struct Sides {
    Block* taken = nullptr;
    Block* other = nullptr;
    Block* join = nullptr;
  };
  bool may_predicate(const Block& side) const;
  bool find_sides(const llvm::BranchInst& branch, Sides& result) const;
  void emit_predicated(Block* block, const Sides& sides, Value* lanes);
  void emit_masked_end(llvm::BranchInst& branch);
  struct Assignment {
    llvm::AllocaInst* variable;
    Value* value;
  };
  void collect_edge(Block* from, Block* to, Value* edge_mask, std::vector<Assignment>& result);
  void perform(llvm::ArrayRef<Assignment> assignments);
  bool polls(Block* from, Block* to) const;
  void poll(Block* from, Block* to);
  void jump_converged(Block* from, Block* to);
  void jump_to_first(Block* from, llvm::ArrayRef<Block*> to, Block* certain);
  Block* first_waiting(llvm::ArrayRef<Block*> to);
  void to_masked(const ValueSet& live);

  // emit_values.cpp: values of the block being written, arithmetic
  Shape shape(const Value* value) const { return shapes_[version_]->of(value); }
  Value* scalar_of(const Value* value);
  bool is_carried(const Value* value) const;
  Value* vector_of(const Value* value);
  Value* as_vector(Value* held, Shape shape);
  Value* constant_of(const llvm::Constant* constant);
  void define(const llvm::Instruction& instruction, Value* held);
  llvm::Type* plain(llvm::Type* type) const;
  llvm::Type* wide(llvm::Type* type) const;
  void emit_instruction(llvm::Instruction& instruction);
  Value* emit_scalar(llvm::Instruction& instruction);
  Value* emit_vector(llvm::Instruction& instruction);
  Value* emit_vector_call(llvm::CallInst& call);
  Value* emit_shared_call(llvm::CallInst& call);
  Value* extend_base(const llvm::CastInst& extension, const Value* value);
  Value* emit_pointer(llvm::GetElementPtrInst& gep);
  Value* emit_kernel_call(llvm::CallInst& call);
  Value* emit_position(uint64_t axis);
  Value* emit_matrix_product(llvm::CallInst& call);
  MatrixElements multiply_tiles(llvm::CallInst& call);
  // The mask of the block being written; all ones when converged, but for predicated sides.
  Value* mask();
  bool all_on() const { return version_ == converged && !predicate_; }
  Value* mask_bits() { return lanes_.bits(mask()); }

  // emit_atomics.cpp
  void emit_atomic(llvm::Instruction& atomic);
  Value* update_lanes(llvm::AtomicRMWInst& atomic);
  std::array<Value*, 2> compare_exchange_lanes(llvm::AtomicCmpXchgInst& atomic);
  void set_updated(llvm::Instruction& atomic, const std::array<Value*, 2>& results);
  void update_own(Value* pointers, const Value& operand,
                  llvm::function_ref<Value*(Value* at, Value* value)> perform_one);

  // emit_messages.cpp
  void emit_message(llvm::CallInst& call);

  // emit_memory.cpp
  // A load's value; and how many bytes its address is beyond that of the load that was asked for.
  struct Loaded {
    llvm::LoadInst* load;
    Value* value;
    int64_t distance = 0;
  };
  using LoadedTogether = llvm::SmallVector<Loaded, 4>;
  void emit_load(llvm::LoadInst& load);
  LoadedTogether load_lanes(llvm::LoadInst& load);
  void emit_store(llvm::StoreInst& store);
  void store_lanes(llvm::StoreInst& store);
  Value* load_consecutive(llvm::Type* type, Value* base, llvm::Align align);
  LoadedTogether load_group(llvm::LoadInst& load);
  Value* step_of_groups(const Value* pointer);
  void prefetch(const llvm::Instruction& access, llvm::Type* type, Value* base);
  Value* gather(llvm::Type* type, Value* pointers, llvm::Align align);
  Value* gather_narrow(llvm::Type* type, Value* pointers);
  void scatter(Value* value, Value* pointers, llvm::Align align);
  void for_each_lane(llvm::function_ref<void(Value* lane)> body);
  Value* scratch(llvm::Type* type, uint64_t slot);
  Value* lane_element(Value* in_memory, llvm::Type* type, Value* lane);
  // Operands and results of for_each_lane: elements of vectors when all lanes are on (then the
  // lanes are written out one by one), else in memory.
  struct Staged {
    Value* vector;
    Value* memory;
  };
  bool loops_over_lanes_ = false;  // also when all are on
  bool writes_out_lanes() const { return all_on() && !loops_over_lanes_; }
  Staged stage(Value* vector, uint64_t slot);
  Value* take(const Staged& from, Value* lane);
  Staged stage_result(llvm::Type* type, uint64_t slot);
  void put(Staged& to, Value* lane, Value* value);
  Value* collect(const Staged& from);
  Value* last_active(Value* vector);
  bool is_group_private(const Value* pointer) const;
  void remark(const llvm::Instruction& instruction, const std::string& text,
              const Value* cause = nullptr);

  // emit_guarded.cpp
  // Memory of an argument or a variable: `bytes` from `before` bytes before its address on, as i64.
  struct Extent {
    Value *before = nullptr, *bytes = nullptr;
  };
  static constexpr uint64_t guard_slot = 6;  // of scratch memory, and the next
  void find_guarded();
  Value* range_field(const llvm::Argument& argument, size_t offset, const llvm::Twine& name);
  const Extent& extent_of(const Value* root);
  Value* beginnings(const Value* root, uint64_t span);
  Value* all_inside(const msl::UnprovedAccess& access);
  Value* active_inside(const msl::UnprovedAccess& access);
  llvm::Function* guard_call(size_t function, llvm::FunctionType* type);
  llvm::AllocaInst* guard_memory(uint64_t bytes, uint64_t alignment);
  llvm::CallInst* call_guard(size_t function, const msl::UnprovedAccess& access,
                             const Value* pointer, int64_t distance, llvm::Type* result,
                             Value* memory);
  void guard(const msl::UnprovedAccess& access, llvm::function_ref<void()> when_inside,
             llvm::function_ref<void()> otherwise, llvm::function_ref<void(Block*, Block*)> join);
  Value* either(Value* inside, Block* in, Value* outside, Block* out);
  bool are_guarded_alike(const llvm::Instruction& one, const llvm::Instruction& other) const;
  LoadedTogether load_guarded(llvm::LoadInst& load, const msl::UnprovedAccess& access);
  void store_guarded(llvm::StoreInst& store, const msl::UnprovedAccess& access);
  void update_guarded(llvm::Instruction& atomic, const msl::UnprovedAccess& access);

  llvm::Function& scalar_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const llvm::DataLayout& layout_;
  ControlFlow& flow_;
  const PrivateMemory& memory_;
  const Shapes* shapes_[2];
  const Linearisation& linearisation_;
  const LoopFacts& loops_;
  const Growth& growth_;
  InstructionSet set_;
  OutsideSites* const sites_;  // null: accesses are not guarded
  WidenResult& result_;

  llvm::IRBuilder<> b_;
  Lanes lanes_;
  GroupFunction out_;
  llvm::Function* group_ = nullptr;
  Block* entry_ = nullptr;
  Value* context_pointer_ = nullptr;
  Value* cancelled_ = nullptr;
  Value* threadgroup_memory_ = nullptr;
  Value* eligible_ = nullptr;   // whether this simdgroup may run converged
  Value* remaining_ = nullptr;  // threads of the group from this simdgroup's first on
  Value* position_[3] = {};     // of lane 0, converged
  Value* size_[3] = {};
  bool uses_barrier_ = false;
  bool uses_position_ = false;

  llvm::DenseMap<const Value*, Value*>
      known_;  // the same in both versions, defined in the entry or the head
  llvm::DenseMap<const Value*, Value*> known_converged_;
  llvm::DenseSet<const Value*> escaping_;                      // live longer than their block
  llvm::DenseMap<const Block*, ValueSet> live_in_, live_out_;  // dual values only
  llvm::DenseMap<const Block*, Block*> blocks_[2];
  llvm::DenseMap<const Block*, Block*> end_blocks_;  // masked: after the condition is known
  llvm::DenseMap<const Value*, llvm::AllocaInst*> variables_[2];
  llvm::DenseMap<const Block*, llvm::AllocaInst*> pending_, masks_, conditions_;
  llvm::DenseMap<std::pair<Block*, Block*>, Block*> tests_;  // see first_waiting
  std::vector<llvm::AllocaInst*> all_variables_;
  uint64_t written_ = 0;           // instructions
  Block* last_counted_ = nullptr;  // of the blocks that are made while others are written
  llvm::DenseMap<uint64_t, llvm::AllocaInst*> scratch_;
  llvm::DenseMap<const llvm::Instruction*, Value*> steps_of_groups_;
  llvm::DenseMap<const llvm::Function*, llvm::Function*> shared_;  // their wide forms
  llvm::Function* tile_products_[2] = {};                          // of half, of bfloat
  llvm::AllocaInst* tile_operands_ = nullptr;
  llvm::AllocaInst* message_ = nullptr;
  std::vector<msl::UnprovedAccess> unproved_;
  llvm::DenseMap<const llvm::Instruction*, const msl::UnprovedAccess*> guarded_;
  llvm::DenseMap<const Value*, Extent> extents_;
  llvm::DenseMap<std::pair<const Value*, uint64_t>, Value*> beginnings_;
  llvm::DenseMap<uint32_t, llvm::AllocaInst*> range_memory_;  // by the number of ranges
  llvm::AllocaInst* guarded_access_ = nullptr;
  llvm::DenseMap<size_t, llvm::Function*> guard_calls_;  // by their place in GuardRuntime

  // Of the block being written.
  Version version_ = converged;
  const Block* block_ = nullptr;  // or the side of its branch that emit_predicated writes
  llvm::DenseMap<const Value*, Value*> held_;
  llvm::DenseMap<const Value*, Value*> vectors_;
  llvm::DenseMap<unsigned, Value*> inside_;  // by cluster
  Value* current_mask_ = nullptr;
  Value* predicate_ = nullptr;  // the lanes of a side that emit_predicated writes
  struct Exchange {
    Value* old_value;
    Value* success;
  };
  llvm::DenseMap<const Value*, Exchange> exchanges_;
  llvm::MapVector<const llvm::CallInst*, MatrixElements> products_;
};

}  // namespace holdfast::jit
