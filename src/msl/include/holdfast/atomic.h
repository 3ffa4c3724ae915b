// metal::atomic<T> and the atomic_*_explicit functions, on device and threadgroup memory. An atomic
// is no more than its value, so that a pointer to T may be cast to one to atomic<T>.
#pragma once

#include <holdfast/map.h>
#include <holdfast/synchronization.h>

namespace metal {

enum memory_order {
  memory_order_relaxed = __ATOMIC_RELAXED,
  memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE,
  memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST,
};

template <class T>
struct atomic {
  static_assert(__is_same(T, int) || __is_same(T, uint) || __is_same(T, bool) ||
                    __is_same(T, float) || __is_same(T, long) || __is_same(T, ulong),
                "atomic<T>: T must be int, uint, bool, float, long or ulong");
  T __value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<long> atomic_long;
typedef atomic<ulong> atomic_ulong;

}  // namespace metal

namespace __hf {

// The integer that has the bits of a T.
template <class T>
using bits_t =
    metal::conditional_t<sizeof(T) == 1, uchar, metal::conditional_t<sizeof(T) == 4, uint, ulong>>;

}  // namespace __hf

// The functions for one address space. Values are moved as integers; float adds are LLVM's own,
// other operations on float do not exist in the language.
#define HF_ATOMIC_FETCH(space, name, builtin)                                \
  template <class T>                                                         \
  HF_INLINE __hf::if_integer<T> atomic_fetch_##name##_explicit(              \
      volatile space atomic<T>* object, __hf::same<T> value, memory_order) { \
    return builtin((space T*)&object->__value, value, __ATOMIC_RELAXED);     \
  }
#define HF_ATOMICS(space)                                                                         \
  HF_ATOMIC_FETCH(space, and, __atomic_fetch_and)                                                 \
  HF_ATOMIC_FETCH(space, or, __atomic_fetch_or)                                                   \
  HF_ATOMIC_FETCH(space, xor, __atomic_fetch_xor)                                                 \
  HF_ATOMIC_FETCH(space, min, __atomic_fetch_min)                                                 \
  HF_ATOMIC_FETCH(space, max, __atomic_fetch_max)                                                 \
  template <class T>                                                                              \
  HF_INLINE T atomic_fetch_add_explicit(volatile space atomic<T>* object, __hf::same<T> value,    \
                                        memory_order) {                                           \
    return __atomic_fetch_add((space T*)&object->__value, value, __ATOMIC_RELAXED);               \
  }                                                                                               \
  template <class T>                                                                              \
  HF_INLINE T atomic_fetch_sub_explicit(volatile space atomic<T>* object, __hf::same<T> value,    \
                                        memory_order) {                                           \
    if constexpr (__hf::is_float<T>)                                                              \
      return __atomic_fetch_add((space T*)&object->__value, -value, __ATOMIC_RELAXED);            \
    else                                                                                          \
      return __atomic_fetch_sub((space T*)&object->__value, value, __ATOMIC_RELAXED);             \
  }                                                                                               \
  template <class T>                                                                              \
  HF_INLINE T atomic_load_explicit(const volatile space atomic<T>* object, memory_order) {        \
    using U = __hf::bits_t<T>;                                                                    \
    U bits = __atomic_load_n((const space U*)object, __ATOMIC_RELAXED);                           \
    return __builtin_bit_cast(T, bits);                                                           \
  }                                                                                               \
  template <class T>                                                                              \
  HF_INLINE void atomic_store_explicit(volatile space atomic<T>* object, __hf::same<T> value,     \
                                       memory_order) {                                            \
    using U = __hf::bits_t<T>;                                                                    \
    __atomic_store_n((space U*)object, __builtin_bit_cast(U, value), __ATOMIC_RELAXED);           \
  }                                                                                               \
  template <class T>                                                                              \
  HF_INLINE T atomic_exchange_explicit(volatile space atomic<T>* object, __hf::same<T> value,     \
                                       memory_order) {                                            \
    using U = __hf::bits_t<T>;                                                                    \
    U bits =                                                                                      \
        __atomic_exchange_n((space U*)object, __builtin_bit_cast(U, value), __ATOMIC_RELAXED);    \
    return __builtin_bit_cast(T, bits);                                                           \
  }                                                                                               \
  template <class T>                                                                              \
  HF_INLINE bool atomic_compare_exchange_weak_explicit(volatile space atomic<T>* object,          \
                                                       thread T* expected, __hf::same<T> desired, \
                                                       memory_order, memory_order) {              \
    using U = __hf::bits_t<T>;                                                                    \
    U found = __builtin_bit_cast(U, *expected);                                                   \
    bool swapped =                                                                                \
        __atomic_compare_exchange_n((space U*)object, &found, __builtin_bit_cast(U, desired),     \
                                    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                   \
    *expected = __builtin_bit_cast(T, found);                                                     \
    return swapped;                                                                               \
  }                                                                                               \
  HF_INLINE void atomic_max_explicit(volatile space atomic<ulong>* object, ulong value,           \
                                     memory_order) {                                              \
    __atomic_fetch_max((space ulong*)&object->__value, value, __ATOMIC_RELAXED);                  \
  }                                                                                               \
  HF_INLINE void atomic_min_explicit(volatile space atomic<ulong>* object, ulong value,           \
                                     memory_order) {                                              \
    __atomic_fetch_min((space ulong*)&object->__value, value, __ATOMIC_RELAXED);                  \
  }

namespace metal {

HF_ATOMICS(device)
HF_ATOMICS(threadgroup)

HF_INLINE void atomic_thread_fence(mem_flags, memory_order order,
                                   thread_scope = thread_scope_device) {
  if (order != memory_order_relaxed) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

}  // namespace metal

#undef HF_ATOMIC_FETCH
#undef HF_ATOMICS
