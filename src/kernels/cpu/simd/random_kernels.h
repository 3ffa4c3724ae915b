// The random bit kernels that exist once per instruction set.
#pragma once

#include <cstdint>

namespace holdfast::kernels::cpu::simd {

struct RandomKernels {
  // first[i], second[i] = threefry(key, {counter0 + i, counter1 + i}) for i < count, counters
  // modulo 2^32. Either output may be null.
  void (*threefry)(uint32_t key0, uint32_t key1, uint32_t counter0, uint32_t counter1,
                   int64_t count, uint32_t* first, uint32_t* second);
};

// Of the instruction set in use.
const RandomKernels& random_kernels();

}  // namespace holdfast::kernels::cpu::simd
