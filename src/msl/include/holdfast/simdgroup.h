// The simd_* and quad_* functions, on the intrinsics: for every scalar and vec, also for 64-bit
// types. Reductions of half and bfloat add in float and round once. A quad is four neighbouring
// lanes.
#pragma once

#include <holdfast/as_type.h>
#include <holdfast/base.h>
#include <holdfast/integer.h>

namespace __hf {

// A scalar as the word that moves between lanes.
template <class T>
HF_INLINE auto to_word(T x) {
  if constexpr (__is_same(T, bool))
    return static_cast<uint>(x);
  else if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(ulong, x);
  else if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(uint, x);
  else if constexpr (sizeof(T) == 2)
    return static_cast<uint>(__builtin_bit_cast(ushort, x));
  else
    return static_cast<uint>(__builtin_bit_cast(uchar, x));
}
template <class T, class W>
HF_INLINE T from_word(W word) {
  if constexpr (__is_same(T, bool))
    return word != 0;
  else if constexpr (sizeof(T) >= 4)
    return __builtin_bit_cast(T, word);
  else if constexpr (sizeof(T) == 2)
    return __builtin_bit_cast(T, static_cast<ushort>(word));
  else
    return __builtin_bit_cast(T, static_cast<uchar>(word));
}

#define HF_SHUFFLE(name)                                      \
  template <class T>                                          \
  HF_INLINE T name(T x, uint by) {                            \
    if constexpr (sizeof(T) == 8)                             \
      return from_word<T>(__hf_##name##_u64(to_word(x), by)); \
    else                                                      \
      return from_word<T>(__hf_##name##_u32(to_word(x), by)); \
  }
HF_SHUFFLE(shuffle)
HF_SHUFFLE(shuffle_xor)
HF_SHUFFLE(shuffle_up)
HF_SHUFFLE(shuffle_down)
#undef HF_SHUFFLE

HF_INLINE uint lane() { return __hf_thread_index_in_simdgroup(); }

// Reductions and scans: floats in float, integers in 32 or 64 bits.
#define HF_SUM_LIKE(name)                                              \
  template <class T>                                                   \
  HF_INLINE T name(T x) {                                              \
    if constexpr (is_float<T>)                                         \
      return static_cast<T>(__hf_##name##_f32(static_cast<float>(x))); \
    else if constexpr (sizeof(T) == 8)                                 \
      return static_cast<T>(__hf_##name##_u64(static_cast<ulong>(x))); \
    else                                                               \
      return static_cast<T>(__hf_##name##_u32(static_cast<uint>(x)));  \
  }
HF_SUM_LIKE(reduce_add)
HF_SUM_LIKE(reduce_mul)
HF_SUM_LIKE(scan_exclusive_add)
HF_SUM_LIKE(scan_inclusive_add)
#undef HF_SUM_LIKE
#define HF_PRODUCT_SCAN(name)                                          \
  template <class T>                                                   \
  HF_INLINE T name(T x) {                                              \
    static_assert(is_float<T> || sizeof(T) <= 4,                       \
                  "prefix products of 64-bit integers do not exist");  \
    if constexpr (is_float<T>)                                         \
      return static_cast<T>(__hf_##name##_f32(static_cast<float>(x))); \
    else                                                               \
      return static_cast<T>(__hf_##name##_u32(static_cast<uint>(x)));  \
  }
HF_PRODUCT_SCAN(scan_exclusive_mul)
HF_PRODUCT_SCAN(scan_inclusive_mul)
#undef HF_PRODUCT_SCAN
#define HF_MINIMUM_LIKE(name)                                          \
  template <class T>                                                   \
  HF_INLINE T name(T x) {                                              \
    if constexpr (is_float<T>)                                         \
      return static_cast<T>(__hf_##name##_f32(static_cast<float>(x))); \
    else if constexpr (sizeof(T) == 8 && __is_signed(T))               \
      return static_cast<T>(__hf_##name##_i64(x));                     \
    else if constexpr (sizeof(T) == 8)                                 \
      return static_cast<T>(__hf_##name##_u64(x));                     \
    else if constexpr (__is_signed(T))                                 \
      return static_cast<T>(__hf_##name##_i32(x));                     \
    else                                                               \
      return static_cast<T>(__hf_##name##_u32(x));                     \
  }
HF_MINIMUM_LIKE(reduce_min)
HF_MINIMUM_LIKE(reduce_max)
#undef HF_MINIMUM_LIKE
#define HF_BITWISE(name)                                               \
  template <class T>                                                   \
  HF_INLINE T name(T x) {                                              \
    static_assert(!is_float<T>, "bitwise reductions are of integers"); \
    if constexpr (sizeof(T) == 8)                                      \
      return static_cast<T>(__hf_##name##_u64(static_cast<ulong>(x))); \
    else                                                               \
      return static_cast<T>(__hf_##name##_u32(static_cast<uint>(x)));  \
  }
HF_BITWISE(reduce_and)
HF_BITWISE(reduce_or)
HF_BITWISE(reduce_xor)
#undef HF_BITWISE

// Of `data`, or of `filling` where the source leaves the lane's group of `size` lanes, on the other
// side of which it comes in again.
template <class T>
HF_INLINE T shuffle_and_fill(T data, T filling, int delta, uint size) {
  int mine = static_cast<int>(lane());
  int first = mine & ~static_cast<int>(size - 1);
  int source = mine - first + delta;
  bool is_inside = (source >= 0) & (source < static_cast<int>(size));
  uint wrapped = static_cast<uint>(first + (source & static_cast<int>(size - 1)));
  T from_data = shuffle(data, wrapped);
  T from_filling = shuffle(filling, wrapped);
  return is_inside ? from_data : from_filling;
}

// The lane `delta` further on, around the group of `size`.
HF_INLINE uint rotated_lane(int delta, uint size) {
  uint mine = lane();
  return (mine & ~(size - 1)) | ((mine + static_cast<uint>(delta)) & (size - 1));
}

// Lane `id` of this lane's quad. A source outside the quad gives the lane its own value.
HF_INLINE uint quad_lane(int id) {
  uint mine = lane();
  bool is_inside = (id >= 0) & (id < 4);
  return is_inside ? (mine & ~3u) + static_cast<uint>(id) : mine;
}

// Over the quad; a lane that is not active counts as `neutral`.
template <class T, class Operation>
HF_INLINE T quad_reduce(T x, T neutral, Operation operation) {
  uint active = __hf_ballot(1u), mine = lane();
  T second = shuffle_xor(x, 2u), third = shuffle_xor(x, 1u), fourth = shuffle_xor(x, 3u);
  second = ((active >> (mine ^ 2u)) & 1u) != 0 ? second : neutral;
  third = ((active >> (mine ^ 1u)) & 1u) != 0 ? third : neutral;
  fourth = ((active >> (mine ^ 3u)) & 1u) != 0 ? fourth : neutral;
  return operation(operation(x, second), operation(third, fourth));
}

struct Sum {
  template <class T>
  HF_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Product {
  template <class T>
  HF_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a * b);
  }
};
struct Smaller {
  template <class T>
  HF_INLINE T operator()(T a, T b) const {
    return smaller<T>(a, b);
  }
};
struct Larger {
  template <class T>
  HF_INLINE T operator()(T a, T b) const {
    return larger<T>(a, b);
  }
};
struct And {
  template <class T>
  HF_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  HF_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  HF_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

// What the active lanes of the quad before this one have, one after the other.
template <class T, class Operation>
HF_INLINE T quad_scan(T x, T neutral, bool inclusive, Operation operation) {
  uint active = __hf_ballot(1u), first = lane() & ~3u, place = lane() & 3u;
  T result = neutral;
  for (uint i = 0; i < 4; ++i) {
    T value = shuffle(x, first + i);
    bool counts =
        ((i < place) | (inclusive & (i == place))) & (((active >> (first + i)) & 1u) != 0);
    result = counts ? operation(result, value) : result;
  }
  return result;
}

}  // namespace __hf

namespace metal {

// A function of one value, for scalars and per component for vecs.
#define HF_LANES1(name, ...)              \
  template <class T>                      \
  HF_INLINE __hf::scalar_t<T> name(T x) { \
    return __VA_ARGS__;                   \
  }                                       \
  HF_VECTOR1(name)
// A function of a value and of something that is the same for all components.
#define HF_LANES_BY(name, type, by, ...)                                            \
  template <class T>                                                                \
  HF_INLINE __hf::scalar_t<T> name(T x, type by) {                                  \
    return __VA_ARGS__;                                                             \
  }                                                                                 \
  template <class T, int n>                                                         \
  HF_INLINE vec<T, n> name(vec<T, n> x, type by) {                                  \
    if constexpr (n == 2)                                                           \
      return vec<T, n>(name(x.x, by), name(x.y, by));                               \
    else if constexpr (n == 3)                                                      \
      return vec<T, n>(name(x.x, by), name(x.y, by), name(x.z, by));                \
    else                                                                            \
      return vec<T, n>(name(x.x, by), name(x.y, by), name(x.z, by), name(x.w, by)); \
  }

HF_LANES_BY(simd_shuffle, ushort, lane, __hf::shuffle(x, lane))
HF_LANES_BY(simd_shuffle_xor, ushort, mask, __hf::shuffle_xor(x, mask))
HF_LANES_BY(simd_shuffle_up, ushort, delta, __hf::shuffle_up(x, delta))
HF_LANES_BY(simd_shuffle_down, ushort, delta, __hf::shuffle_down(x, delta))
HF_LANES_BY(simd_shuffle_rotate_up, ushort, delta,
            __hf::shuffle(x, __hf::rotated_lane(-static_cast<int>(delta), 32)))
HF_LANES_BY(simd_shuffle_rotate_down, ushort, delta,
            __hf::shuffle(x, __hf::rotated_lane(delta, 32)))
HF_LANES_BY(simd_broadcast, ushort, lane, __hf::shuffle(x, lane))

HF_LANES1(simd_broadcast_first, __hf::shuffle(x, __hf::ctz<uint>(__hf_ballot(1u))))
HF_LANES1(simd_sum, __hf::reduce_add(x))
HF_LANES1(simd_product, __hf::reduce_mul(x))
HF_LANES1(simd_min, __hf::reduce_min(x))
HF_LANES1(simd_max, __hf::reduce_max(x))
HF_LANES1(simd_and, __hf::reduce_and(x))
HF_LANES1(simd_or, __hf::reduce_or(x))
HF_LANES1(simd_xor, __hf::reduce_xor(x))
HF_LANES1(simd_prefix_exclusive_sum, __hf::scan_exclusive_add(x))
HF_LANES1(simd_prefix_inclusive_sum, __hf::scan_inclusive_add(x))
HF_LANES1(simd_prefix_exclusive_product, __hf::scan_exclusive_mul(x))
HF_LANES1(simd_prefix_inclusive_product, __hf::scan_inclusive_mul(x))

// The lanes of a simdgroup, or of a quad, as bits.
#define HF_VOTE(name, type, full)                                            \
  class name {                                                               \
   public:                                                                   \
    typedef type vote_t;                                                     \
    HF_INLINE explicit constexpr name(vote_t votes = 0) : votes_(votes) {}   \
    HF_INLINE explicit constexpr operator vote_t() const { return votes_; }  \
    HF_INLINE constexpr bool all() const { return (votes_ & full) == full; } \
    HF_INLINE constexpr bool any() const { return (votes_ & full) != 0; }    \
                                                                             \
   private:                                                                  \
    vote_t votes_;                                                           \
  };
HF_VOTE(simd_vote, ulong, 0xFFFFFFFFul)
HF_VOTE(quad_vote, ulong, 0xFul)
#undef HF_VOTE

HF_INLINE simd_vote simd_ballot(bool expression) { return simd_vote(__hf_ballot(expression)); }
HF_INLINE simd_vote simd_active_threads_mask() { return simd_vote(__hf_ballot(1u)); }
HF_INLINE bool simd_all(bool expression) { return __hf_ballot(!expression) == 0; }
HF_INLINE bool simd_any(bool expression) { return __hf_ballot(expression) != 0; }
HF_INLINE bool simd_is_first() { return __hf::lane() == __hf::ctz<uint>(__hf_ballot(1u)); }
HF_INLINE bool simd_is_helper_thread() { return false; }

HF_LANES_BY(quad_broadcast, ushort, lane, __hf::shuffle(x, __hf::quad_lane(lane & 3)))
HF_LANES_BY(quad_shuffle, ushort, lane, __hf::shuffle(x, __hf::quad_lane(lane & 3)))
HF_LANES_BY(quad_shuffle_xor, ushort, mask, __hf::shuffle_xor(x, mask & 3u))
HF_LANES_BY(quad_shuffle_up, ushort, delta,
            __hf::shuffle(x, __hf::quad_lane(static_cast<int>(__hf::lane() & 3u) -
                                             static_cast<int>(delta))))
HF_LANES_BY(quad_shuffle_down, ushort, delta,
            __hf::shuffle(x, __hf::quad_lane(static_cast<int>(__hf::lane() & 3u) +
                                             static_cast<int>(delta))))
HF_LANES_BY(quad_shuffle_rotate_up, ushort, delta,
            __hf::shuffle(x, __hf::rotated_lane(-static_cast<int>(delta), 4)))
HF_LANES_BY(quad_shuffle_rotate_down, ushort, delta, __hf::shuffle(x, __hf::rotated_lane(delta, 4)))

HF_LANES1(quad_broadcast_first,
          __hf::shuffle(x, (__hf::lane() & ~3u) +
                               __hf::ctz<uint>((__hf_ballot(1u) >> (__hf::lane() & ~3u)) & 15u)))
HF_LANES1(quad_sum, __hf::quad_reduce(x, T(0), __hf::Sum()))
HF_LANES1(quad_product, __hf::quad_reduce(x, T(1), __hf::Product()))
HF_LANES1(quad_min, __hf::quad_reduce(x, x, __hf::Smaller()))
HF_LANES1(quad_max, __hf::quad_reduce(x, x, __hf::Larger()))
HF_LANES1(quad_and, __hf::quad_reduce(x, x, __hf::And()))
HF_LANES1(quad_or, __hf::quad_reduce(x, x, __hf::Or()))
HF_LANES1(quad_xor, __hf::quad_reduce(x, T(0), __hf::Xor()))
HF_LANES1(quad_prefix_exclusive_sum, __hf::quad_scan(x, T(0), false, __hf::Sum()))
HF_LANES1(quad_prefix_inclusive_sum, __hf::quad_scan(x, T(0), true, __hf::Sum()))
HF_LANES1(quad_prefix_exclusive_product, __hf::quad_scan(x, T(1), false, __hf::Product()))
HF_LANES1(quad_prefix_inclusive_product, __hf::quad_scan(x, T(1), true, __hf::Product()))

HF_INLINE quad_vote quad_ballot(bool expression) {
  return quad_vote((__hf_ballot(expression) >> (__hf::lane() & ~3u)) & 15u);
}
HF_INLINE quad_vote quad_active_threads_mask() { return quad_ballot(true); }
HF_INLINE bool quad_all(bool expression) { return !quad_ballot(!expression).any(); }
HF_INLINE bool quad_any(bool expression) { return quad_ballot(expression).any(); }
HF_INLINE bool quad_is_first() {
  uint active = (__hf_ballot(1u) >> (__hf::lane() & ~3u)) & 15u;
  return (__hf::lane() & 3u) == __hf::ctz<uint>(active);
}

#define HF_FILL(name, direction, size)                                                          \
  template <class T>                                                                            \
  HF_INLINE __hf::scalar_t<T> name(T data, __hf::same<T> filling, ushort delta,                 \
                                   ushort modulo = size) {                                      \
    return __hf::shuffle_and_fill<T>(data, filling, direction static_cast<int>(delta), modulo); \
  }                                                                                             \
  template <class T, int n>                                                                     \
  HF_INLINE vec<T, n> name(vec<T, n> data, __hf::same<vec<T, n>> filling, ushort delta,         \
                           ushort modulo = size) {                                              \
    vec<T, n> result;                                                                           \
    result.x = name(data.x, filling.x, delta, modulo);                                          \
    result.y = name(data.y, filling.y, delta, modulo);                                          \
    if constexpr (n > 2) result.z = name(data.z, filling.z, delta, modulo);                     \
    if constexpr (n > 3) result.w = name(data.w, filling.w, delta, modulo);                     \
    return result;                                                                              \
  }
HF_FILL(simd_shuffle_and_fill_up, -, 32)
HF_FILL(simd_shuffle_and_fill_down, +, 32)
HF_FILL(quad_shuffle_and_fill_up, -, 4)
HF_FILL(quad_shuffle_and_fill_down, +, 4)
#undef HF_FILL
#undef HF_LANES1
#undef HF_LANES_BY

}  // namespace metal
