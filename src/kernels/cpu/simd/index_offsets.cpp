// Index arrays turned into offsets, compiled once per instruction set (HOLDFAST_SIMD_TARGET).
#include "kernels/cpu/simd/index_kernels.h"
#include "kernels/cpu/simd/vectorise.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

// Values below 0 or beyond `room` may not be followed. A uint64 beyond int64 comes out negative: it
// does not count from the end.
template <typename Index>
inline int64_t wrap(Index value, int64_t size) {
  constexpr bool is_signed = static_cast<Index>(-1) < static_cast<Index>(0);
  int64_t index = static_cast<int64_t>(value);
  return is_signed && index < 0 ? index + size : index;
}

template <typename Index>
inline int64_t find(const Index* values, int64_t step, int64_t count, const IndexedAxis& axis,
                    int64_t first, int64_t slope, int64_t* offsets) {
  // Unsigned: what is not followed may overflow.
  const auto room = static_cast<uint64_t>(axis.room), stride = static_cast<uint64_t>(axis.stride);
  const int64_t size = axis.size;
  uint64_t wrong = 0;
  HOLDFAST_VECTORISE
  for (int64_t i = 0; i < count; ++i) {
    auto index = static_cast<uint64_t>(wrap(values[i * step], size));
    wrong |= index | (room - index);  // sign bits
    offsets[i] = static_cast<int64_t>(static_cast<uint64_t>(first + i * slope) + index * stride);
  }
  if (static_cast<int64_t>(wrong) >= 0) return count;
  int64_t i = 0;
  for (int64_t index = wrap(values[0], size); index >= 0 && index <= axis.room;) {
    index = wrap(values[++i * step], size);
  }
  return i;
}

template <typename Index>
int64_t find_typed(const void* values, int64_t step, int64_t count, const IndexedAxis& axis,
                   int64_t first, int64_t slope, int64_t* offsets) {
  const auto* from = static_cast<const Index*>(values);
  // A copy of the loop for neighbours, which the compiler loads as vectors.
  if (step == 1) return find(from, 1, count, axis, first, slope, offsets);
  return find(from, step, count, axis, first, slope, offsets);
}

int64_t find_offsets(Dtype::Val type, const void* values, int64_t step, int64_t count,
                     const IndexedAxis& axis, int64_t first, int64_t slope, int64_t* offsets) {
  auto with = [&](auto find_them) {
    return find_them(values, step, count, axis, first, slope, offsets);
  };
  using Val = Dtype::Val;
  switch (type) {
    case Val::bool_:
    case Val::uint8:
      return with(find_typed<uint8_t>);
    case Val::uint16:
      return with(find_typed<uint16_t>);
    case Val::uint32:
      return with(find_typed<uint32_t>);
    case Val::uint64:
      return with(find_typed<uint64_t>);
    case Val::int8:
      return with(find_typed<int8_t>);
    case Val::int16:
      return with(find_typed<int16_t>);
    case Val::int32:
      return with(find_typed<int32_t>);
    default:
      return with(find_typed<int64_t>);
  }
}

}  // namespace

extern const simd::IndexKernels index_kernels;
const simd::IndexKernels index_kernels{find_offsets};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
