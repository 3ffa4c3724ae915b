// A stable sort of whole numbers, for kernels that need things in order (sort.metal).
#pragma once

#include <holdfast/array.h>
#include <holdfast/encoder.h>

namespace holdfast::kernels::metal {

struct SortedNumbers {
  array numbers;    // of 8 bytes
  array positions;  // uint32: where each was
};

// Of at most 2^31 - 1 dense int64 numbers from 0 to limit - 1, at least one. Other numbers come
// anywhere, all positions exactly once.
SortedNumbers sort_numbers(Encoder& encoder, const array& numbers, int64_t limit);

}  // namespace holdfast::kernels::metal
