// Arrays from nothing. A thread writes 16 bytes; outputs begin at multiples of 16.
#include "support/indexing.h"
// The host computes positions of a range in double precision, and so do we.
#undef double

template <typename Unit>
[[kernel]] void fill(const device Unit* value, device Unit* out, constant ulong& size, IN_GRID) {
  const ulong first = thread_number(position, grid) * Block<Unit>::size;
  if (first >= size) return;
  Block<Unit> block;
  for (int i = 0; i < Block<Unit>::size; ++i) block.values[i] = value[0];
  store_block(out, first, size, true, block);
}

#define FILL(bytes, Unit) ENTRY("fill_" #bytes, fill<Unit>)
FOR_SIZES(FILL)

struct Range {
  double start, step;
  ulong size;
};

// Integers saturate.
template <typename T>
inline T converted(double value) {
  if constexpr (is_integral_v<T>) {
    constexpr int digits = 8 * sizeof(T) - (is_signed_v<T> ? 1 : 0);
    const double above = 2.0 * double(ulong(1) << (digits - 1));
    if (value >= above) return numeric_limits<T>::max();
    if (is_signed_v<T> ? value < -above : value <= -1.0) return numeric_limits<T>::lowest();
    return T(value);
  } else if constexpr (sizeof(T) == 8) {
    return T(float(value), 0.0f);
  } else {
    return T(float(value));
  }
}

template <typename T>
[[kernel]] void arange(device T* out, constant Range& range, IN_GRID) {
  const ulong first = thread_number(position, grid) * Block<T>::size;
  if (first >= range.size) return;
  Block<T> block;
  for (int i = 0; i < Block<T>::size; ++i) {
    // The first one may not be computed: the step may be infinite.
    const double distance = first + i == 0 ? 0.0 : double(first + i) * range.step;
    block.values[i] = converted<T>(range.start + distance);
  }
  store_block(out, first, range.size, true, block);
}

#define ARANGE(name, T) ENTRY("arange_" #name, arange<T>)
FOR_NUMBERS(ARANGE)
