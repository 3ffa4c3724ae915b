// A kernel for NVIDIA GPUs as the rest of the library sees it: what is asked of the compiler, and
// the PTX text with what its launch has to know. No LLVM and no CUDA headers here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  uint32_t max_threads = 1024;  // of a threadgroup: the launch must not have more
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
  std::string dump_directory;  // HOLDFAST_DUMP_KERNELS; not part of a key
};

// The parameters of a launch are one block of bytes:
//   8 bytes for each of KernelInterface::arguments: an address, or the offset of a threadgroup
//   argument in the dynamic shared memory of the launch, a multiple of 16;
//   then LaunchParameters.
struct LaunchParameters {
  uint64_t cancelled;       // address of a uint32_t that is not zero when the kernel should return
  uint32_t grid[3];         // threads_per_grid
  uint32_t threadgroup[3];  // dispatch_threads_per_threadgroup
  uint32_t groups[3];       // threadgroups_per_grid
  uint32_t unused;
};
static_assert(sizeof(LaunchParameters) == 48);

struct PtxKernel {
  msl::KernelInterface interface;
  std::string symbol;  // the .entry
  std::string text;
  uint32_t parameter_bytes = 0;
  // Cross-lane operations in control flow whose lanes cannot be named by masks of branches: they
  // gather, which is slow.
  bool gathers = false;
};

// The images that the library has of its own kernels (devices/image_writer.h): for architecture 80
// and later ones, or those from 90 on where their code differs; arguments are aligned to 16 bytes
// and distinct, and accesses are as wide as the source says.
inline std::string image_name(uint32_t target, Positions positions) {
  const char* name = positions == Positions::rows    ? "-rows"
                     : positions == Positions::exact ? "-exact"
                                                     : "-general";
  return "sm_" + std::to_string(target) + name;
}

}  // namespace holdfast::cuda
