// What this process may use of the machine: affinity, cgroup quota and limits count.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holdfast::machine {

int threads();          // at least 1
size_t memory_bytes();  // the cgroup's limit where it is lower than the machine's

// What code is generated for, from plain to wide: x86-64 as such (or whatever the machine is), -v3,
// -v4.
enum class InstructionSet : uint8_t { baseline, avx2, avx512 };

bool supports(InstructionSet set);

constexpr const char* instruction_set_name(InstructionSet set) {
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

}  // namespace holdfast::machine
