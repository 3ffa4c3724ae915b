// The widening compiler: a scalar kernel (one function = one thread, msl/scalar_ir.h) becomes
// `void <entry>.group(GroupContext*)` (kernel_abi.h), which runs threadgroups, 32 lanes of a
// simdgroup at a time as vectors.
//
// How the parts fit together:
//   normal_form   the scalar function in the shape that the rest expects
//   shapes        which values are the same in all lanes, which rise with the lane, which vary
//   linearise     the order in which blocks run when lanes part, and what may wait meanwhile
//   loop_facts    which loops may run for ever, which loads walk through memory in long steps
//   emitter       writes the body twice, block by block, with one set of variables:
//                   converged  all 32 lanes are on and in one place, thread positions rise with the
//                              lane: branches are jumps, no masks. Leaves for the other version
//                              where lanes part;
//                   masked     any lanes, any positions: both sides of a branch, under masks. Goes
//                              back as soon as all lanes are in one place again
//   regions       barriers: each simdgroup runs up to its next barrier, then the next simdgroup
//   missing_values
//                 finds values that are read where they never arrive
//   growth        when a kernel becomes too large to be widened
//   emit_guarded  looks before accesses that may leave what they may touch (GuardedKernel)
//   wide_function functions that several places of the kernel share, for all lanes at once
// Results are bit-equal to the reference lowering.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "devices/cpu/jit/compiler.h"

namespace llvm {
class Function;
}

namespace holdfast::jit {

struct GuardedKernel;

// What a kernel's author tunes with: which values vary, where lanes part, which accesses are
// gathers, and why.
struct Remark {
  unsigned line = 0;  // of the source; 0: not known
  std::string text;
  unsigned cause_line = 0;
};

struct WidenResult {
  llvm::Function* group = nullptr;
  uint32_t frame_bytes = 0;        // per simdgroup, a multiple of 128
  uint32_t threadgroup_bytes = 0;  // of threadgroup variables
  std::string declined;            // why not, in one line; then `group` is null
  std::vector<Remark> remarks;
  bool wants_remarks = false;
};

// `scalar` has been through define_arithmetic (reference.h) and expand_math, like every kernel
// before it is lowered. Leaves it as it was; the new function is in the same module. The scalar
// function and its threadgroup variables are dead then: whoever emits the object erases them.
// `guarded`: null for a kernel whose accesses are not guarded.
WidenResult widen(llvm::Function& scalar, InstructionSet set, bool wants_remarks = false,
                  const GuardedKernel* guarded = nullptr);

}  // namespace holdfast::jit
