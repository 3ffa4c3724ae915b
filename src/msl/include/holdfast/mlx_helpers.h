// What MLX puts before every custom kernel: names that bodies use without declaring them. Written
// to the interface, for kernels of Holdfast's and MLX's fast::metal_kernel.
#pragma once

#include <metal_stdlib>

using namespace metal;

typedef half float16_t;
typedef bfloat bfloat16_t;

#define MTL_CONST static constant constexpr const
#define MTL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")
#define MLX_MTL_CONST static constant constexpr const
#define MLX_MTL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")
#define MLX_MTL_LOOP_UNROLL _Pragma("clang loop unroll(full)")

// [[host_name(name)]] [[kernel]], as the token pass writes them: it reads the user's text only.
#define instantiate_kernel(name, func, ...)                    \
  extern template __attribute__((holdfast("host_name", name))) \
  __attribute__((holdfast("kernel"))) decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;

static constexpr constant int MAX_REDUCE_SPECIALIZED_DIMS = 4;
static constexpr constant int REDUCE_N_READS = 4;
static constexpr constant int REDUCE_N_WRITES = 4;
static constexpr constant int SOFTMAX_N_READS = 4;
static constexpr constant int RMS_N_READS = 4;
static constexpr constant int RMS_LOOPED_LIMIT = 4096;

#include <holdfast/mlx_complex.h>

// The numbers that a reduction starts from, and the largest and least finite ones.
template <class U>
struct Limits {
  static constexpr U max = metal::numeric_limits<U>::max();
  static constexpr U min = metal::numeric_limits<U>::lowest();
  static constexpr U finite_max = metal::numeric_limits<U>::max();
  static constexpr U finite_min = metal::numeric_limits<U>::lowest();
};
#define HF_FLOAT_LIMITS(T)                                              \
  template <>                                                           \
  struct Limits<T> {                                                    \
    static constexpr T max = metal::numeric_limits<T>::infinity();      \
    static constexpr T min = static_cast<T>(-__builtin_inff());         \
    static constexpr T finite_max = metal::numeric_limits<T>::max();    \
    static constexpr T finite_min = metal::numeric_limits<T>::lowest(); \
  };
HF_FLOAT_LIMITS(half)
HF_FLOAT_LIMITS(float)
HF_FLOAT_LIMITS(bfloat16_t)
#undef HF_FLOAT_LIMITS
template <>
struct Limits<bool> {
  static constexpr bool max = true, min = false, finite_max = true, finite_min = false;
};
template <>
struct Limits<complex64_t> {
  static constexpr complex64_t max = complex64_t(__builtin_inff(), __builtin_inff());
  static constexpr complex64_t min = complex64_t(-__builtin_inff(), -__builtin_inff());
};

// Positions of elements: of a linear index, or of a place in a grid whose x is the last axis.
template <class IdxT = int64_t>
HF_INLINE IdxT elem_to_loc(IdxT elem, constant int* shape, constant int64_t* strides, int ndim) {
  IdxT location = 0;
  for (int axis = ndim - 1; axis >= 0 && elem > 0; --axis) {
    IdxT size = static_cast<IdxT>(shape[axis]);
    location += (elem % size) * static_cast<IdxT>(strides[axis]);
    elem /= size;
  }
  return location;
}
template <class IdxT = int64_t>
HF_INLINE IdxT elem_to_loc(uint3 elem, constant int* shape, constant int64_t* strides, int ndim) {
  IdxT location = static_cast<IdxT>(elem.x) * static_cast<IdxT>(strides[ndim - 1]) +
                  static_cast<IdxT>(elem.y) * static_cast<IdxT>(strides[ndim - 2]);
  for (int axis = ndim - 3; axis >= 0; --axis) {
    location += static_cast<IdxT>(elem.z % static_cast<uint>(shape[axis])) *
                static_cast<IdxT>(strides[axis]);
    elem.z /= static_cast<uint>(shape[axis]);
  }
  return location;
}
template <class IdxT = int64_t>
HF_INLINE IdxT elem_to_loc_1(uint elem, constant int64_t& stride) {
  return static_cast<IdxT>(elem) * static_cast<IdxT>(stride);
}
template <class IdxT = int64_t>
HF_INLINE IdxT elem_to_loc_2(uint2 elem, constant int64_t* strides) {
  return static_cast<IdxT>(elem.x) * static_cast<IdxT>(strides[1]) +
         static_cast<IdxT>(elem.y) * static_cast<IdxT>(strides[0]);
}
template <class IdxT = int64_t>
HF_INLINE IdxT elem_to_loc_3(uint3 elem, constant int64_t* strides) {
  return static_cast<IdxT>(elem.x) * static_cast<IdxT>(strides[2]) +
         static_cast<IdxT>(elem.y) * static_cast<IdxT>(strides[1]) +
         static_cast<IdxT>(elem.z) * static_cast<IdxT>(strides[0]);
}

// The same for two and for three arrays of one shape at once.
template <class IdxT = int64_t>
HF_INLINE vec<IdxT, 2> elem_to_loc_2_nd(uint3 elem, constant int* shape,
                                        constant int64_t* a_strides, constant int64_t* b_strides,
                                        int ndim) {
  return vec<IdxT, 2>(elem_to_loc<IdxT>(elem, shape, a_strides, ndim),
                      elem_to_loc<IdxT>(elem, shape, b_strides, ndim));
}
template <class IdxT = int64_t>
HF_INLINE vec<IdxT, 3> elem_to_loc_3_nd(uint3 elem, constant int* shape,
                                        constant int64_t* a_strides, constant int64_t* b_strides,
                                        constant int64_t* c_strides, int ndim) {
  return vec<IdxT, 3>(elem_to_loc<IdxT>(elem, shape, a_strides, ndim),
                      elem_to_loc<IdxT>(elem, shape, b_strides, ndim),
                      elem_to_loc<IdxT>(elem, shape, c_strides, ndim));
}

// Walks through an array in order: `next` goes n elements on, `location` says where the walk is.
template <int DIM, class OffsetT = size_t, bool General = true>
struct LoopedElemToLoc {
  int dim;
  OffsetT index = 0;
  OffsetT offset = 0;
  HF_INLINE LoopedElemToLoc(int dimensions) : dim(dimensions) {}
  HF_INLINE void next(constant int* shape, constant int64_t* strides) { next(1, shape, strides); }
  HF_INLINE void next(int n, constant int* shape, constant int64_t* strides) {
    if (dim == 0) return;
    index += static_cast<OffsetT>(n);
    offset = elem_to_loc<OffsetT>(index, shape, strides, dim);
  }
  HF_INLINE OffsetT location() const { return offset; }
};

template <class T, class U>
HF_INLINE T ceildiv(T n, U m) {
  return static_cast<T>((n + m - 1) / m);
}

template <bool condition, class T, class U>
struct ConditionalType {
  using type = metal::conditional_t<condition, T, U>;
};

// How many elements of a type a thread takes in element-wise kernels.
template <class U>
struct WorkPerThread {
  static_assert(sizeof(U) <= 8, "WorkPerThread: the type must not be larger than 8 bytes");
  static constexpr int n = 8 / sizeof(U);
};

namespace mlx {
using os_log = metal::os_log;
}

HF_INLINE float log1p(float x) { return __hf::log1p(x); }
HF_INLINE half log1p(half x) { return static_cast<half>(__hf::log1p(static_cast<float>(x))); }
HF_INLINE bfloat16_t log1p(bfloat16_t x) {
  return static_cast<bfloat16_t>(__hf::log1p(static_cast<float>(x)));
}
HF_INLINE complex64_t log1p(complex64_t z) {
  // log|1 + z| with 2x + x^2 + y^2 = |1 + z|^2 - 1, which keeps small z.
  float square = z.real * (2.0f + z.real) + z.imag * z.imag;
  float magnitude =
      metal::abs(z.real) + metal::abs(z.imag) < 0.5f
          ? 0.5f * __hf::log1p(square)
          : __hf::log(__builtin_sqrtf((1.0f + z.real) * (1.0f + z.real) + z.imag * z.imag));
  return complex64_t(magnitude, __hf::atan2(z.imag, 1.0f + z.real));
}

// Shuffles of complex numbers and nothing else: a scalar must not become one on the way.
// metal_stdlib's take 64-bit integers and bool already.
#define HF_IF_COMPLEX template <class T, class = metal::enable_if_t<__is_same(T, complex64_t)>>
#define HF_COMPLEX_SHUFFLE(name)                                            \
  HF_IF_COMPLEX HF_INLINE T name(T data, uint16_t delta) {                  \
    return T(metal::name(data.real, delta), metal::name(data.imag, delta)); \
  }
#define HF_COMPLEX_FILL(name)                                         \
  HF_IF_COMPLEX HF_INLINE T name(T data, T filling, uint16_t delta) { \
    return T(metal::name(data.real, filling.real, delta),             \
             metal::name(data.imag, filling.imag, delta));            \
  }
HF_COMPLEX_SHUFFLE(simd_shuffle)
HF_COMPLEX_SHUFFLE(simd_shuffle_xor)
HF_COMPLEX_SHUFFLE(simd_shuffle_up)
HF_COMPLEX_SHUFFLE(simd_shuffle_down)
HF_COMPLEX_SHUFFLE(simd_broadcast)
HF_COMPLEX_FILL(simd_shuffle_and_fill_up)
HF_COMPLEX_FILL(simd_shuffle_and_fill_down)
HF_IF_COMPLEX HF_INLINE T simd_sum(T data) {
  return T(metal::simd_sum(data.real), metal::simd_sum(data.imag));
}
#undef HF_IF_COMPLEX
#undef HF_COMPLEX_SHUFFLE
#undef HF_COMPLEX_FILL
