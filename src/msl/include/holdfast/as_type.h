// as_type<To>(value): the same bits, between scalars and vecs of one size.
#pragma once

#include <holdfast/packed.h>

template <class To, class From>
HF_INLINE To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "as_type: the two types must have the same size");
  if constexpr (__is_trivially_copyable(To) && __is_trivially_copyable(From)) {
    return __builtin_bit_cast(To, value);
  } else {
    To result;
    __builtin_memcpy(static_cast<void*>(&result), &value, sizeof(To));
    return result;
  }
}

namespace metal {
using ::as_type;
}
