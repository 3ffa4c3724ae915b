// What loops over memory share.
#pragma once

#include <cstdint>

// Before a loop whose iterations touch different elements (an output may be an input, in place, and
// overlaps nothing else).
#if defined(__clang__)
#define HOLDFAST_VECTORISE _Pragma("clang loop vectorize(assume_safety)")
// Some loops have no vector form (64-bit division), and none has without optimisation.
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define HOLDFAST_VECTORISE _Pragma("GCC ivdep")
#endif

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

// Asks for the memory so far ahead of `at` that it is there when a loop that does little with each
// line comes to it: alone, a processor's own prefetching reaches two thirds of what memory gives.
template <int64_t bytes>
inline void fetch_far(const void* at) {
  constexpr int64_t distance = 8192;
#pragma GCC unroll 8
  for (int64_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(static_cast<const char*>(at) + distance + i);
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
