// A kernel for NVIDIA GPUs as the rest of the library sees it: what is asked of the compiler, and
// the PTX text with what its launch has to know. No LLVM and no CUDA headers here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "devices/argument_range.h"
#include "msl/kernel_source.h"

namespace holdfast::cuda {

// How threads learn their positions.
//   rows     the launch is the dispatch: the grid is divisible by the threadgroup, which is a legal
//            block (at most 1024, 1024, 64 threads and 65,535 blocks along y and z), and its width
//            is a multiple of 32: a simdgroup is 32 neighbours along x
//   exact    the launch is the dispatch, without the last condition
//   general  any grid: blocks of as many threads as a threadgroup has, in one row of as many blocks
//            as there are threadgroups; positions are computed, and threads that a partial
//            threadgroup does not have leave at once
enum class Positions : uint8_t { rows, exact, general };

struct PtxOptions {
  uint32_t target = 90;  // the GPU's architecture: 80, 86, 89, 90, …
  Positions positions = Positions::rows;
  // All simdgroups have 32 threads. True of `rows`; `general` may have it for grids that are
  // divisible.
  bool full_simdgroups = true;
  // Of a threadgroup, and no more than the kernel says: the launch must not have more.
  uint32_t max_threads = 1024;
  // No argument that is written overlaps with another one.
  bool distinct = true;
  // The alignment of each argument's address in bytes, by KernelInterface::arguments; those that
  // are missing here count on the alignment of their elements alone.
  std::vector<uint32_t> alignment;
  // Accesses by pointers that the source casts to wider types are as wide as the source says.
  // False: only accesses that are proved to be aligned by `alignment` and the index are wide. A
  // wide access that is not aligned is a fault after which the process cannot use the GPU any more.
  bool trusts_source_alignment = false;
  // Loops without a bound end their threads when LaunchParameters::cancelled says so.
  bool can_be_cancelled = false;
  // Accesses that cannot be proved to be inside of what the kernel was given are looked at
  // (GuardParameters).
  bool guarded = false;
  // Arguments in constant memory are bytes in the block of parameters (plan_inline_bytes), not
  // addresses.
  bool has_inline_constants = false;
  std::string dump_directory;  // HOLDFAST_DUMP_KERNELS; not part of a key
};

// The parameters of a launch are one block of bytes:
//   8 bytes for each of KernelInterface::arguments: an address, or the offset of a threadgroup
//   argument in the dynamic shared memory of the launch, a multiple of 16;
//   then LaunchParameters;
//   of a guarded kernel GuardParameters, and an ArgumentRange for each of the arguments;
//   then the bytes of each inline argument, from a multiple of 16 on.
// ParameterLayout says where.
struct LaunchParameters {
  uint64_t cancelled;       // address of a uint32_t that is not zero when the kernel should return
  uint32_t grid[3];         // threads_per_grid
  uint32_t threadgroup[3];  // dispatch_threads_per_threadgroup
  uint32_t groups[3];       // threadgroups_per_grid
  uint32_t unused;
};
static_assert(sizeof(LaunchParameters) == 48);

// What a guarded kernel says about an access that it did not make. Zero before the launch; the
// first thread to find one claims it.
struct OutsideReport {
  uint32_t is_claimed;
  uint32_t unused;
  int64_t offset;  // in bytes, from the first place that belongs to the object
  char site[96];   // a jit::OutsideSite
};
struct GuardReport {
  OutsideReport read, write;
};
struct GuardParameters {
  uint64_t report;  // address of a GuardReport
  uint64_t unused;
};

// The block of parameters has 4096 bytes at the most.
inline constexpr uint32_t most_inline_bytes = 3072;

inline uint32_t inline_room(const msl::KernelArgument& argument) {
  if (argument.kind != msl::KernelArgument::Kind::constant) return 0;
  // Of one structure, or of a short list.
  const uint32_t size = std::max(argument.element_size, 4u);
  return (std::max(size, std::min(32 * size, 768u)) + 15) / 16 * 16;
}

struct ParameterLayout {
  uint32_t launch = 0;  // the place of LaunchParameters
  uint32_t guard = 0;   // of GuardParameters; 0: none
  // The place of each inline argument and the room there, by KernelInterface::arguments; 0: an
  // address.
  std::vector<uint32_t> inline_places, inline_bytes;
  uint32_t bytes = 0;
};
// Inline here: both libraries need it.
inline ParameterLayout parameter_layout(const msl::KernelInterface& interface, bool is_guarded,
                                        bool has_inline_constants) {
  const size_t count = interface.arguments.size();
  ParameterLayout layout;
  layout.launch = static_cast<uint32_t>(8 * count);
  size_t at = layout.launch + sizeof(LaunchParameters);
  if (is_guarded) {
    layout.guard = static_cast<uint32_t>(at);
    at += sizeof(GuardParameters) + count * sizeof(exec::ArgumentRange);
  }
  // Fields that are loaded as wide as they are have to be aligned, counted from LaunchParameters.
  while ((at - layout.launch) % 16 != 0) at += 8;
  layout.inline_places.resize(count);
  layout.inline_bytes.resize(count);
  uint32_t sum = 0;
  for (size_t i = 0; i < count && has_inline_constants; ++i) {
    const uint32_t bytes = inline_room(interface.arguments[i]);
    if (bytes == 0 || sum + bytes > most_inline_bytes) continue;
    layout.inline_places[i] = static_cast<uint32_t>(at);
    layout.inline_bytes[i] = bytes;
    at += bytes;
    sum += bytes;
  }
  layout.bytes = static_cast<uint32_t>(at);
  return layout;
}

struct PtxKernel {
  msl::KernelInterface interface;
  std::string symbol;  // the .entry
  std::string text;
  uint32_t parameter_bytes = 0;
  // Cross-lane operations in control flow whose lanes cannot be named by masks of branches: they
  // gather, which is slow.
  bool gathers = false;
  // It uses what later architectures have and its target may lack, or the other way round: for
  // another target it is worth compiling again. (What LLVM writes otherwise for it, as conversions
  // of bfloat, takes no less time.)
  bool depends_on_target = false;
};

}  // namespace holdfast::cuda
