// metal::simdgroup_matrix<T, 8, 8>: each lane has two elements of a row, in Apple's layout, which
// kernels rely on (msl/intrinsics.def says it).
#pragma once

#include <holdfast/simdgroup.h>

namespace metal {

template <class T, int Cols, int Rows>
struct simdgroup_matrix {
  static_assert(Cols == 8 && Rows == 8, "simdgroup_matrix: the only size is 8 x 8");
  static_assert(__hf::is_float<T>,
                "simdgroup_matrix: the element type must be float, half or bfloat");
  using storage_type = vec<T, 2>;

  simdgroup_matrix() = default;
  // A diagonal matrix.
  HF_INLINE explicit simdgroup_matrix(T value);

  HF_INLINE storage_type& thread_elements() { return elements_; }
  HF_INLINE const storage_type& thread_elements() const { return elements_; }

  storage_type elements_;
};

typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

}  // namespace metal

namespace __hf {

using metal::simdgroup_matrix;

// Where this lane's first element is; the second is in the next column.
HF_INLINE uint matrix_row() {
  uint mine = lane();
  return ((mine >> 2) & 4u) + ((mine >> 1) & 3u);
}
HF_INLINE uint matrix_column() {
  uint mine = lane();
  return ((mine >> 2) & 2u) * 2u + (mine & 1u) * 2u;
}

}  // namespace __hf

#define HF_MATRIX_MEMORY(space)                                                                   \
  template <class T>                                                                              \
  HF_INLINE void simdgroup_load(thread simdgroup_matrix<T, 8, 8>& d, const space T* source,       \
                                ulong elements_per_row = 8, ulong2 origin = ulong2(0ul),          \
                                bool transpose = false) {                                         \
    ulong row = __hf::matrix_row(), column = __hf::matrix_column();                               \
    source += origin.y * elements_per_row + origin.x;                                             \
    const space T* first =                                                                        \
        source + (transpose ? column * elements_per_row + row : row * elements_per_row + column); \
    d.elements_.x = first[0];                                                                     \
    d.elements_.y = first[transpose ? elements_per_row : 1ul];                                    \
  }                                                                                               \
  template <class T>                                                                              \
  HF_INLINE void simdgroup_store(simdgroup_matrix<T, 8, 8> a, space T* target,                    \
                                 ulong elements_per_row = 8, ulong2 origin = ulong2(0ul),         \
                                 bool transpose = false) {                                        \
    ulong row = __hf::matrix_row(), column = __hf::matrix_column();                               \
    target += origin.y * elements_per_row + origin.x;                                             \
    space T* first =                                                                              \
        target + (transpose ? column * elements_per_row + row : row * elements_per_row + column); \
    first[0] = a.elements_.x;                                                                     \
    first[transpose ? elements_per_row : 1ul] = a.elements_.y;                                    \
  }

namespace metal {

template <class T, int Cols, int Rows>
HF_INLINE simdgroup_matrix<T, Cols, Rows>::simdgroup_matrix(T value) {
  uint row = __hf::matrix_row(), column = __hf::matrix_column();
  elements_.x = row == column ? value : T(0);
  elements_.y = row == column + 1 ? value : T(0);
}

template <class T, int Cols, int Rows = Cols>
HF_INLINE simdgroup_matrix<T, Cols, Rows> make_filled_simdgroup_matrix(__hf::same<T> value) {
  simdgroup_matrix<T, Cols, Rows> result;
  result.elements_ = vec<T, 2>(value);
  return result;
}
template <class T, int Cols, int Rows = Cols>
HF_INLINE simdgroup_matrix<T, Cols, Rows> make_diagonal_simdgroup_matrix(__hf::same<T> value) {
  return simdgroup_matrix<T, Cols, Rows>(value);
}

HF_MATRIX_MEMORY(device)
HF_MATRIX_MEMORY(threadgroup)
template <class T>
HF_INLINE void simdgroup_load(thread simdgroup_matrix<T, 8, 8>& d, constant T* source,
                              ulong elements_per_row = 8, ulong2 origin = ulong2(0ul),
                              bool transpose = false) {
  ulong row = __hf::matrix_row(), column = __hf::matrix_column();
  source += origin.y * elements_per_row + origin.x;
  ulong along = transpose ? elements_per_row : 1ul, across = transpose ? 1ul : elements_per_row;
  d.elements_.x = source[row * across + column * along];
  d.elements_.y = source[row * across + (column + 1) * along];
}

// D = A B + C, the products and sums in float, rounded once to the type of D.
template <class D, class A, class B, class C>
HF_INLINE void simdgroup_multiply_accumulate(thread simdgroup_matrix<D, 8, 8>& d,
                                             simdgroup_matrix<A, 8, 8> a,
                                             simdgroup_matrix<B, 8, 8> b,
                                             simdgroup_matrix<C, 8, 8> c) {
  float a0 = static_cast<float>(a.elements_.x), a1 = static_cast<float>(a.elements_.y);
  float b0 = static_cast<float>(b.elements_.x), b1 = static_cast<float>(b.elements_.y);
  float c0 = static_cast<float>(c.elements_.x), c1 = static_cast<float>(c.elements_.y);
  d.elements_.x = static_cast<D>(__hf_matrix_multiply_accumulate_f32(a0, a1, b0, b1, c0, c1, 0u));
  d.elements_.y = static_cast<D>(__hf_matrix_multiply_accumulate_f32(a0, a1, b0, b1, c0, c1, 1u));
}

template <class D, class A, class B>
HF_INLINE void simdgroup_multiply(thread simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                  simdgroup_matrix<B, 8, 8> b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<float, 8, 8>(0.0f));
}

template <class T>
HF_INLINE simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a,
                                              simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> result;
  simdgroup_multiply(result, a, b);
  return result;
}
template <class T>
HF_INLINE simdgroup_matrix<T, 8, 8> operator+(simdgroup_matrix<T, 8, 8> a,
                                              simdgroup_matrix<T, 8, 8> b) {
  a.elements_ += b.elements_;
  return a;
}
template <class T>
HF_INLINE simdgroup_matrix<T, 8, 8> operator-(simdgroup_matrix<T, 8, 8> a,
                                              simdgroup_matrix<T, 8, 8> b) {
  a.elements_ -= b.elements_;
  return a;
}
template <class T>
HF_INLINE simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a, __hf::same<T> scalar) {
  a.elements_ *= scalar;
  return a;
}
template <class T>
HF_INLINE simdgroup_matrix<T, 8, 8> operator*(__hf::same<T> scalar, simdgroup_matrix<T, 8, 8> a) {
  a.elements_ *= scalar;
  return a;
}

}  // namespace metal

#undef HF_MATRIX_MEMORY
