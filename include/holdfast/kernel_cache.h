// The kernel library, as far as programs see it: what it found, what it compiled, what it dropped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holdfast {

// Since the start, or the last reset. Every look-up is a hit, a wait or a miss; every miss is a
// disk hit, a compilation or a failure.
struct KernelCacheStats {
  uint64_t hits = 0;       // found in memory
  uint64_t waits = 0;      // found while another thread was compiling it
  uint64_t misses = 0;     // not in memory
  uint64_t disk_hits = 0;  // loaded without a compiler: from disk, or from the library itself
  uint64_t compiles = 0;   // compiled from source
  uint64_t failures = 0;   // did not compile
  uint64_t evictions = 0;  // dropped from memory to keep the bound
  double compile_milliseconds = 0;
  double disk_milliseconds = 0;  // loading disk hits

  size_t entries = 0;   // in memory now
  size_t capacity = 0;  // the bound, HOLDFAST_KERNEL_CACHE_ENTRIES
};

KernelCacheStats kernel_cache_stats();
void reset_kernel_cache_stats();
// Drops every kernel from memory that no work in flight uses. The disk is not touched.
void clear_kernel_cache();

}  // namespace holdfast
