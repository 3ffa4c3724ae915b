// What generated kernels of element-wise groups (kernels/metal/generated_source.cpp) call: a
// thread's N elements of an array, whose number is a multiple of those in 16 bytes.
// support/indexing.h comes first.

struct GeneratedAccess {
  bool aligned;  // in blocks of 16 bytes, all of them
  bool inside;   // no thread's elements reach over the end of a row
  ushort first_extent;
};

template <int N, typename T>
struct Elements {
  T v[N];
};

template <int N, typename T>
inline Elements<N, T> load_blocks(const device T* from) {
  Elements<N, T> result;
  for (int i = 0; i + Block<T>::size <= N; i += Block<T>::size) {
    const Block<T> block = load_block(from + i);
    for (int j = 0; j < Block<T>::size; ++j) result.v[i + j] = block.values[j];
  }
  return result;
}
template <int N, typename T>
inline Elements<N, T> load_dense(const device T* from, constant GeneratedAccess& access,
                                 ulong first, ulong size) {
  if (access.aligned && first + N <= size) return load_blocks<N>(from + first);
  Elements<N, T> result;
  for (int i = 0; i < N; ++i) result.v[i] = from[min(first + i, size - 1)];
  return result;
}
template <int N, typename T>
inline Elements<N, T> load_scalar(const device T* from) {
  Elements<N, T> result;
  for (int i = 0; i < N; ++i) result.v[i] = from[0];
  return result;
}
template <int N, int dimensions, typename Index, typename T>
inline Elements<N, T> load_strided(const device T* from, constant GeneratedAccess& access,
                                   constant Extent* extents, ulong first, ulong size) {
  extents += access.first_extent;
  Elements<N, T> result;
  if (access.inside && first + N <= size) {
    from += offset_of(Index(first), extents, dimensions);
    if (access.aligned) return load_blocks<N>(from);
    const long stride = extents[dimensions - 1].stride;
    for (int i = 0; i < N; ++i) result.v[i] = from[i * stride];
  } else {
    for (int i = 0; i < N; ++i)
      result.v[i] = from[offset_of(Index(min(first + i, size - 1)), extents, dimensions)];
  }
  return result;
}
template <int N, typename T>
inline void store_dense(device T* to, bool aligned, ulong first, ulong size,
                        Elements<N, T> elements) {
  if (aligned && first + N <= size) {
    for (int i = 0; i + Block<T>::size <= N; i += Block<T>::size) {
      Block<T> block;
      for (int j = 0; j < Block<T>::size; ++j) block.values[j] = elements.v[i + j];
      store_block(to + first + i, block);
    }
  } else {
    for (int i = 0; i < N; ++i) {
      if (first + i < size) to[first + i] = elements.v[i];
    }
  }
}
