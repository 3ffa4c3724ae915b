#include "kernels/cpu/instruction_set.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace holdfast::kernels::cpu {

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

std::atomic<BFloat16Products>& most_products() {
  static std::atomic<BFloat16Products> most{BFloat16Products::in_tiles};
  return most;
}

std::atomic<bool>& byte_dot_allowed() {
  static std::atomic<bool> allowed{true};
  return allowed;
}

#if defined(__x86_64__)
// Tiles are state that Linux saves for the threads of a process only once it has asked for that.
bool may_use_tiles() {
  constexpr unsigned bfloat16_tiles = 1u << 22, tiles = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & bfloat16_tiles) == 0 || (d & tiles) == 0) return false;
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#endif

BFloat16Products best_products() {
#if defined(__x86_64__)
  // A virtual machine may show tiles without pairs. Who may use tiles uses pairs, too.
  if (__builtin_cpu_supports("avx512bf16"))
    return may_use_tiles() ? BFloat16Products::in_tiles : BFloat16Products::in_pairs;
#endif
  return BFloat16Products::in_float32;
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

BFloat16Products bfloat16_products() {
  static const BFloat16Products available = best_products();
  if (instruction_set() != InstructionSet::avx512) return BFloat16Products::in_float32;
  return std::min(available, most_products().load(std::memory_order_relaxed));
}

void limit_bfloat16_products(BFloat16Products most) {
  most_products().store(most, std::memory_order_relaxed);
}

bool has_byte_dot() {
#if defined(__x86_64__)
  static const bool available = __builtin_cpu_supports("avx512vnni") != 0;
  return available && byte_dot_allowed().load(std::memory_order_relaxed);
#else
  return false;
#endif
}

void limit_byte_dot(bool allowed) { byte_dot_allowed().store(allowed, std::memory_order_relaxed); }

void force_instruction_set(InstructionSet set) {
  if (!is_available(set)) {
    throw std::invalid_argument(std::string("[force_instruction_set] ") +
                                instruction_set_name(set) +
                                " is not available on this processor or not built in");
  }
  current().store(set, std::memory_order_relaxed);
}

void unforce_instruction_set() { current().store(best(), std::memory_order_relaxed); }

}  // namespace holdfast::kernels::cpu
