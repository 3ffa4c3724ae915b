#include "kernels/metal/radix_sort.h"

#include <bit>

#include "kernels/metal/launch.h"

namespace holdfast::kernels::metal {
namespace {

// As in radix.metal.
struct RadixPass {
  uint32_t size, chunks, shift, is_first;
};
constexpr uint32_t digit_bits = 8, digits = 1 << digit_bits, chunk_of_digits = 4096;

array make_numbers(Encoder& encoder, int64_t size, Dtype dtype) {
  array numbers(Shape{static_cast<ShapeElem>(size)}, dtype, nullptr, {});
  encoder.allocate(numbers);
  return numbers;
}

}  // namespace

SortedNumbers sort_numbers(Encoder& encoder, const array& numbers, int64_t limit) {
  const auto size = static_cast<int64_t>(numbers.size());
  const auto chunks = static_cast<uint32_t>(divide_up(size, chunk_of_digits));
  array counts = make_numbers(encoder, int64_t{digits} * chunks, uint32);
  array totals = make_numbers(encoder, digits, uint32);
  const auto bits = static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(limit - 1)));
  SortedNumbers from{numbers, counts};
  for (uint32_t shift = 0; shift == 0 || shift < bits; shift += digit_bits) {
    const RadixPass pass{static_cast<uint32_t>(size), chunks, shift, shift == 0};
    SortedNumbers to{make_numbers(encoder, size, int64), make_numbers(encoder, size, uint32)};
    Launch(encoder, "radix", "radix_counts")
        .input(from.numbers)
        .output(counts)
        .value(pass)
        .over(int64_t{chunks} * 256);
    Launch(encoder, "radix", "radix_sums")
        .output(counts)
        .output(totals)
        .value(pass)
        .over(int64_t{digits} * 256);
    Launch(encoder, "radix", "radix_place")
        .input(from.numbers)
        .input(from.positions)
        .output(to.numbers)
        .output(to.positions)
        .input(counts)
        .input(totals)
        .value(pass)
        .over(int64_t{chunks} * 256);
    from = std::move(to);
  }
  return from;
}

}  // namespace holdfast::kernels::metal
