#include "kernels/cpu/instruction_set.h"

#include <atomic>
#include <stdexcept>
#include <string>

namespace holdfast::cpu {

namespace {

bool is_available(InstructionSet set) {
  if (set == InstructionSet::baseline) return true;
#if defined(__x86_64__) && !defined(HOLDFAST_SIMD_ONLY_BASELINE)
  // The features of x86-64-v3 and x86-64-v4 that the compiler may use in those builds.
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
              __builtin_cpu_supports("movbe");
  if (set == InstructionSet::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
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

const char* instruction_set_name(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return "baseline";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      break;
  }
  return "avx512";
}

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
