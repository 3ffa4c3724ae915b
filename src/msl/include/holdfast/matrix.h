// metal::matrix<T, Cols, Rows>: floatCxR and halfCxR, in columns.
#pragma once

#include <holdfast/geometric.h>

namespace metal {

template <class T, int Cols, int Rows>
struct matrix {
  vec<T, Rows> columns[Cols];

  matrix() = default;
  // A diagonal matrix.
  HF_INLINE explicit constexpr matrix(T diagonal) : columns{} {
    for (int c = 0; c < Cols; ++c) columns[c] = vec<T, Rows>(T(0));
    columns[0].x = diagonal;
    columns[1].y = diagonal;
    if constexpr (Cols > 2 && Rows > 2) columns[2].z = diagonal;
    if constexpr (Cols > 3 && Rows > 3) columns[3].w = diagonal;
  }
  // Its columns.
  template <class... V, class = enable_if_t<sizeof...(V) + 2 == Cols>,
            class = enable_if_t<(__is_convertible(V, vec<T, Rows>) && ...)>>
  HF_INLINE constexpr matrix(vec<T, Rows> first, vec<T, Rows> second, V... rest)
      : columns{first, second, rest...} {}
  // All elements, column by column.
  template <class... S, class = enable_if_t<sizeof...(S) + 3 == Cols * Rows>,
            class = enable_if_t<(__is_convertible(S, T) && ...)>>
  HF_INLINE constexpr matrix(T a, T b, T c, S... rest) : columns{} {
    T all[] = {a, b, c, static_cast<T>(rest)...};
    for (int i = 0; i < Cols; ++i) {
      columns[i].x = all[i * Rows];
      columns[i].y = all[i * Rows + 1];
      if constexpr (Rows > 2) columns[i].z = all[i * Rows + 2];
      if constexpr (Rows > 3) columns[i].w = all[i * Rows + 3];
    }
  }
  template <class U>
  HF_INLINE explicit constexpr matrix(const matrix<U, Cols, Rows>& other) : columns{} {
    for (int c = 0; c < Cols; ++c) columns[c] = vec<T, Rows>(other.columns[c]);
  }

  HF_INLINE constexpr vec<T, Rows>& operator[](int c) { return columns[c]; }
  HF_INLINE constexpr const vec<T, Rows>& operator[](int c) const { return columns[c]; }

  friend HF_INLINE matrix operator+(matrix a, const matrix& b) {
    for (int c = 0; c < Cols; ++c) a.columns[c] += b.columns[c];
    return a;
  }
  friend HF_INLINE matrix operator-(matrix a, const matrix& b) {
    for (int c = 0; c < Cols; ++c) a.columns[c] -= b.columns[c];
    return a;
  }
  friend HF_INLINE matrix operator-(matrix a) {
    for (int c = 0; c < Cols; ++c) a.columns[c] = -a.columns[c];
    return a;
  }
  friend HF_INLINE matrix operator*(matrix a, T s) {
    for (int c = 0; c < Cols; ++c) a.columns[c] *= s;
    return a;
  }
  friend HF_INLINE matrix operator*(T s, const matrix& a) { return a * s; }
  friend HF_INLINE matrix operator/(matrix a, T s) {
    for (int c = 0; c < Cols; ++c) a.columns[c] /= s;
    return a;
  }
  friend HF_INLINE vec<T, Rows> operator*(const matrix& a, vec<T, Cols> v) {
    vec<T, Rows> result = a.columns[0] * v.x + a.columns[1] * v.y;
    if constexpr (Cols > 2) result += a.columns[2] * v.z;
    if constexpr (Cols > 3) result += a.columns[3] * v.w;
    return result;
  }
  friend HF_INLINE vec<T, Cols> operator*(vec<T, Rows> v, const matrix& a) {
    vec<T, Cols> result;
    result.x = dot(v, a.columns[0]);
    result.y = dot(v, a.columns[1]);
    if constexpr (Cols > 2) result.z = dot(v, a.columns[2]);
    if constexpr (Cols > 3) result.w = dot(v, a.columns[3]);
    return result;
  }
  friend HF_INLINE bool operator==(const matrix& a, const matrix& b) {
    bool result = true;
    for (int c = 0; c < Cols; ++c) result = result & all(a.columns[c] == b.columns[c]);
    return result;
  }
  friend HF_INLINE bool operator!=(const matrix& a, const matrix& b) { return !(a == b); }
  HF_INLINE matrix& operator+=(const matrix& b) { return *this = *this + b; }
  HF_INLINE matrix& operator-=(const matrix& b) { return *this = *this - b; }
  HF_INLINE matrix& operator*=(T s) { return *this = *this * s; }
  HF_INLINE matrix& operator/=(T s) { return *this = *this / s; }
};

template <class T, int Cols, int Rows, int K>
HF_INLINE matrix<T, Cols, Rows> operator*(const matrix<T, K, Rows>& a,
                                          const matrix<T, Cols, K>& b) {
  matrix<T, Cols, Rows> result;
  for (int c = 0; c < Cols; ++c) result.columns[c] = a * b.columns[c];
  return result;
}
template <class T, int n>
HF_INLINE matrix<T, n, n>& operator*=(matrix<T, n, n>& a, const matrix<T, n, n>& b) {
  return a = a * b;
}

template <class T, int Cols, int Rows>
HF_INLINE matrix<T, Rows, Cols> transpose(const matrix<T, Cols, Rows>& a) {
  matrix<T, Rows, Cols> result;
  for (int c = 0; c < Cols; ++c)
    for (int r = 0; r < Rows; ++r) result.columns[r][c] = a.columns[c][r];
  return result;
}

template <class T>
HF_INLINE T determinant(const matrix<T, 2, 2>& m) {
  return m[0].x * m[1].y - m[1].x * m[0].y;
}
template <class T>
HF_INLINE T determinant(const matrix<T, 3, 3>& m) {
  return dot(m[0], cross(m[1], m[2]));
}
template <class T>
HF_INLINE T determinant(const matrix<T, 4, 4>& m) {
  // By the 2 x 2 determinants of the upper and of the lower two rows.
  T s0 = m[0].x * m[1].y - m[1].x * m[0].y, s1 = m[0].x * m[2].y - m[2].x * m[0].y;
  T s2 = m[0].x * m[3].y - m[3].x * m[0].y, s3 = m[1].x * m[2].y - m[2].x * m[1].y;
  T s4 = m[1].x * m[3].y - m[3].x * m[1].y, s5 = m[2].x * m[3].y - m[3].x * m[2].y;
  T c0 = m[0].z * m[1].w - m[1].z * m[0].w, c1 = m[0].z * m[2].w - m[2].z * m[0].w;
  T c2 = m[0].z * m[3].w - m[3].z * m[0].w, c3 = m[1].z * m[2].w - m[2].z * m[1].w;
  T c4 = m[1].z * m[3].w - m[3].z * m[1].w, c5 = m[2].z * m[3].w - m[3].z * m[2].w;
  return s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0;
}

}  // namespace metal

#define HF_MATRICES(T)                   \
  typedef metal::matrix<T, 2, 2> T##2x2; \
  typedef metal::matrix<T, 2, 3> T##2x3; \
  typedef metal::matrix<T, 2, 4> T##2x4; \
  typedef metal::matrix<T, 3, 2> T##3x2; \
  typedef metal::matrix<T, 3, 3> T##3x3; \
  typedef metal::matrix<T, 3, 4> T##3x4; \
  typedef metal::matrix<T, 4, 2> T##4x2; \
  typedef metal::matrix<T, 4, 3> T##4x3; \
  typedef metal::matrix<T, 4, 4> T##4x4;
HF_MATRICES(float)
HF_MATRICES(half)
#undef HF_MATRICES
