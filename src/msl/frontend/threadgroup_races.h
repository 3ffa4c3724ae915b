// A cheap look for what a kernel's author forgets most: a barrier between what some threads of a
// threadgroup write to its memory and what others do there. It proves nothing: what it is silent
// about may race, and the validator looks at every access (kernels.race). What it finds does race,
// as far as addresses and conditions can be computed from the positions of threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace llvm {
class Function;
class Instruction;
class Value;
}  // namespace llvm

namespace holdfast::msl {

struct ThreadgroupRace {
  const llvm::Instruction *first, *second;  // one after the other in a thread's order
  bool first_writes, second_writes;
  const llvm::Value* variable;  // what both touch
};

// `function` is scalar IR. For threadgroups of this size, since both addresses and simdgroups
// depend on it: threads of one simdgroup, which go in step on most devices, are not distinguished.
std::optional<ThreadgroupRace> find_threadgroup_race(llvm::Function& function,
                                                     std::array<uint32_t, 3> threadgroup);

}  // namespace holdfast::msl
