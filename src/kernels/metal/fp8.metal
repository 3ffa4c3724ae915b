// float32 to 8-bit floats (e4m3) and back. A thread converts 16 elements.
#include "support/indexing.h"

// NaN and what is too large become 448.
inline uchar to_e4m3(float value) {
  const uint bits = as_type<uint>(value), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
  // Below 2^-6: multiples of 2^-9; rounded to nearest even by the addition of 2^14.
  const uint small = as_type<uint>(fabs(value) + 16384.0f) - 0x46800000;
  const uint rounded = ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - (120 << 3);
  const uint code = magnitude >= 0x43e00000 ? 0x7e : magnitude < 0x3c800000 ? small : rounded;
  return uchar(sign | code);
}
inline float from_e4m3(uchar code) {
  const uint exponent = code >> 3 & 15, fraction = code & 7;
  const float small = float(fraction) * 0x1p-9f;
  const float usual = as_type<float>((exponent + 120) << 23 | fraction << 20);
  const float magnitude = (code & 0x7f) == 0x7f ? NAN : exponent == 0 ? small : usual;
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

template <typename From, typename To, To converted(From)>
[[kernel]] void fp8(const device From* in, device To* out, constant ulong& size,
                    constant bool& aligned, uint2 position [[thread_position_in_grid]],
                    uint2 grid [[threads_per_grid]]) {
  constexpr int per_thread = 16;
  const ulong first = thread_number(position, grid) * per_thread;
  if (first >= size) return;
  From values[per_thread];
  if (aligned && first + per_thread <= size) {
    for (int i = 0; i < per_thread; i += Block<From>::size) {
      const Block<From> block = load_block(in + first + i);
      for (int j = 0; j < Block<From>::size; ++j) values[i + j] = block.values[j];
    }
  } else {
    for (int i = 0; i < per_thread; ++i) values[i] = in[min(first + i, size - 1)];
  }
  for (int i = 0; i < per_thread; i += Block<To>::size) {
    Block<To> block;
    for (int j = 0; j < Block<To>::size; ++j) block.values[j] = converted(values[i + j]);
    store_block(out, first + i, size, true, block);
  }
}

template [[host_name("to_fp8")]] [[kernel]] decltype(fp8<float, uchar, to_e4m3>)
    fp8<float, uchar, to_e4m3>;
template [[host_name("from_fp8")]] [[kernel]] decltype(fp8<uchar, float, from_e4m3>)
    fp8<uchar, float, from_e4m3>;
