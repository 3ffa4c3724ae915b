// metal::os_log: messages of threads, which the device prints on stderr with the kernel's name.
// Where it shows none (LoweringTraits::drops_messages), their values are not even computed.
#pragma once

#include <holdfast/vec.h>

namespace metal {

// The levels are LogMessage::Level (devices/cpu/jit/kernel_abi.h).
enum os_log_type : uint {
  os_log_type_default = 0,
  os_log_type_debug = 1,
  os_log_type_info = 2,
  os_log_type_error = 3,
  os_log_type_fault = 4,
};

}  // namespace metal

namespace __hf {

// The values of one message, and their kinds.
struct LogValues {
  ulong value[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  uint kinds = 0, count = 0;

  HF_INLINE void add(ulong bits, uint kind) {
    value[count] = bits;
    kinds |= kind << (2 * count);
    ++count;
  }
  template <class T>
  HF_INLINE void add(T x) {
    if constexpr (is_float<T>)
      add(static_cast<ulong>(__builtin_bit_cast(uint, static_cast<float>(x))), 2);
    else if constexpr (__is_pointer(T))
      add((ulong)x, 3);
    else if constexpr (__is_signed(T) && !__is_enum(T))
      add(static_cast<ulong>(static_cast<long>(x)), 1);
    else
      add(static_cast<ulong>(x), 0);
  }
  template <class T, int n>
  HF_INLINE void add(metal::vec<T, n> x) {
    add(x.x);
    add(x.y);
    if constexpr (n > 2) add(x.z);
    if constexpr (n > 3) add(x.w);
  }
};
template <class T>
inline constexpr int logged_values = 1;
template <class T, int n>
inline constexpr int logged_values<metal::vec<T, n>> = n;

template <class... T>
HF_INLINE void log(uint level, const char* format, T... values) {
  static_assert((0 + ... + logged_values<T>) <= 8, "a message has at most 8 values");
  if (!__hf_has_log()) return;
  LogValues all;
  (all.add(values), ...);
  __hf_log((const constant char*)format, level << 8 | all.count, all.kinds, all.value[0],
           all.value[1], all.value[2], all.value[3], all.value[4], all.value[5], all.value[6],
           all.value[7]);
}

}  // namespace __hf

namespace metal {

struct os_log {
  // The subsystem and the category are not shown.
  os_log() = default;
  template <class Subsystem, class Category>
  HF_INLINE constexpr os_log(Subsystem, Category) {}

#define HF_LOG(name, level)                                    \
  template <class... T>                                        \
  HF_INLINE void name(const char* format, T... values) const { \
    __hf::log(level, format, values...);                       \
  }
  HF_LOG(log, os_log_type_default)
  HF_LOG(log_default, os_log_type_default)
  HF_LOG(log_debug, os_log_type_debug)
  HF_LOG(log_info, os_log_type_info)
  HF_LOG(log_error, os_log_type_error)
  HF_LOG(log_fault, os_log_type_fault)
#undef HF_LOG
  template <class... T>
  HF_INLINE void log_with_type(os_log_type type, const char* format, T... values) const {
    __hf::log(type, format, values...);
  }
};

inline constant os_log os_log_default = os_log();

}  // namespace metal
