#include "kernels/cpu/instruction_set.h"

#include <atomic>
#include <stdexcept>
#include <string>

namespace holdfast::cpu {

namespace {

bool is_available(InstructionSet set) {
#if defined(HOLDFAST_SIMD_ONLY_BASELINE)
  return set == InstructionSet::baseline;
#else
  return machine::supports(set);
#endif
}

InstructionSet best() { return available_instruction_sets().back(); }

std::atomic<InstructionSet>& current() {
  static std::atomic<InstructionSet> set{best()};
  return set;
}

}  // namespace

std::vector<InstructionSet> available_instruction_sets() {
  std::vector<InstructionSet> sets;
  for (InstructionSet set :
       {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (is_available(set)) sets.push_back(set);
  }
  return sets;
}

InstructionSet instruction_set() { return current().load(std::memory_order_relaxed); }

bool has_bfloat16_dot() {
#if defined(__x86_64__)
  static const bool supported = __builtin_cpu_supports("avx512bf16");
  return supported && instruction_set() == InstructionSet::avx512;
#else
  return false;
#endif
}

void force_instruction_set(InstructionSet set) {
  if (!is_available(set)) {
    throw std::invalid_argument(std::string("[force_instruction_set] ") +
                                instruction_set_name(set) +
                                " is not available on this processor or not built in");
  }
  current().store(set, std::memory_order_relaxed);
}

void unforce_instruction_set() { current().store(best(), std::memory_order_relaxed); }

}  // namespace holdfast::cpu
