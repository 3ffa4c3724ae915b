// Which shape each value of a kernel has, and where lanes part.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "devices/cpu/jit/compiler/widen/shape.h"

namespace holdfast::jit {

struct PrivateMemory;

// What is known about the control flow of the normal form.
struct ControlFlow {
  explicit ControlFlow(llvm::Function& function);
  llvm::DominatorTree dominators;
  llvm::PostDominatorTree post_dominators;
  llvm::LoopInfo loops;
};

// What may be taken for granted about the lanes.
//   converged  all 32 threads exist; thread_position_in_threadgroup.x is a multiple of 32 plus the
//              lane, y and z are the same in all lanes; a dispatch has less than 2^31 threads along
//              each axis
//   any        nothing: positions vary
enum class Assumption : uint8_t { converged, any };

class Shapes {
 public:
  Shapes(llvm::Function& function, ControlFlow& flow, const PrivateMemory& memory, OffsetPool& pool,
         Assumption assumption);

  Shape of(const llvm::Value* value) const;
  // Whether lanes may part at the end of this block.
  bool branch_varies(const llvm::BasicBlock* block) const {
    return varying_branches_.contains(block);
  }
  // Whether lanes that diverged may come to this block on different edges.
  bool is_join(const llvm::BasicBlock* block) const { return joins_.contains(block); }
  // Whether lanes may leave the loop in different iterations.
  bool loop_varies(const llvm::Loop* loop) const { return varying_loops_.contains(loop); }

  // Extensions of a linear value that are linear only if no lane wraps around: the converged
  // version looks at run time. (Assumption::any: they vary.)
  const llvm::DenseSet<const llvm::Instruction*>& guarded() const { return guarded_; }
  // Whether thread_position_in_grid.x (group * size + position) was taken to be a multiple of 32 in
  // lane 0: a condition of the converged version.
  bool needs_aligned_grid() const { return needs_aligned_grid_; }

  // Whether `extension` (sext or zext of a linear value) is the sum of the extended operands of its
  // operand, because that sum cannot wrap.
  static bool distributes(const llvm::CastInst& extension, const llvm::Value* operand);
  // How the base of an extended linear value is computed, from `value`: the operand of `extension`,
  // or a part of it that an earlier `parts` led to.
  enum class BaseForm : uint8_t {
    extended,  // as the instruction says
    sign_extended,
    parts,  // `value` is a sum or a product: its operands are extended, since the base itself may
            // be of a lane that is off, and wrap
  };
  BaseForm base_form(const llvm::CastInst& extension, const llvm::Value* value) const;
  // The values that the emitter reads to write `instruction`: its operands, but where the base of
  // an extension is computed from parts, these. What is not visited here must not be read: it need
  // not be carried to the instruction's block.
  void for_each_read(const llvm::Instruction& instruction,
                     llvm::function_ref<void(const llvm::Value*)> visit) const;
  // Whether every lane's value, and the base, is at least 0 and less than 2^(width-1), by bounds on
  // its leaves alone: true also for lanes that are off.
  bool is_small(const llvm::Value* value) const;

  // Where a varying value begins to vary: the instruction, and why. Null: not known.
  struct Origin {
    const llvm::Instruction* instruction = nullptr;
    const char* reason = nullptr;
  };
  Origin origin_of(const llvm::Value* value) const;
  // All places where values begin to vary, in order of the function.
  std::vector<Origin> origins() const;

 private:
  Shape evaluate(const llvm::Instruction& instruction);
  Shape shape_of(LaneOffsets offsets, const llvm::Type* type, uint64_t alignment) const;
  std::optional<Shape> evaluate_fixed(const llvm::Instruction& instruction) const;
  std::optional<LaneOffsets> lane_values(const llvm::Value* value) const;
  Shape evaluate_call(const llvm::CallInst& call);
  Shape evaluate_phi(const llvm::PHINode& phi);
  Shape evaluate_extension(const llvm::CastInst& extension);
  Shape extended(const llvm::CastInst& extension, const llvm::Value* operand, int depth);
  Shape operand(const llvm::Instruction& instruction, unsigned i) const {
    return of(instruction.getOperand(i));
  }
  uint64_t upper_bound(const llvm::Value* value, int depth) const;
  bool propagate_control();
  using Labels = llvm::DenseMap<const llvm::BasicBlock*, const llvm::BasicBlock*>;
  void part_to(llvm::ArrayRef<const llvm::BasicBlock*> starts, const llvm::Loop* inside);
  bool parts_in(const llvm::Loop& loop, llvm::ArrayRef<const llvm::BasicBlock*> starts,
                const Labels& labels) const;
  Labels mark_joins(llvm::ArrayRef<const llvm::BasicBlock*> starts);

  llvm::Function& function_;
  ControlFlow& flow_;
  const PrivateMemory& memory_;
  OffsetPool& pool_;
  Assumption assumption_;
  std::vector<llvm::BasicBlock*> order_;
  llvm::DenseMap<const llvm::Value*, Shape> shapes_;
  llvm::DenseSet<const llvm::BasicBlock*> varying_branches_;
  llvm::DenseSet<const llvm::BasicBlock*> joins_;  // reached by lanes that parted before
  llvm::DenseSet<const llvm::Loop*> varying_loops_;
  llvm::DenseSet<const llvm::Instruction*> guarded_;
  // Why a value varies. Kept short: putting it into words takes longer than all the rest.
  struct Cause {
    const char* reason = nullptr;          // or
    const llvm::Value* operand = nullptr;  // which varies itself
  };
  llvm::DenseMap<const llvm::Value*, Cause> because_;
  bool needs_aligned_grid_ = false;
};

}  // namespace holdfast::jit
