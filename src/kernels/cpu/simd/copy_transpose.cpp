// Blocked transposition and other reordering copies, compiled once per instruction set
// (HOLDFAST_SIMD_TARGET).
//
// A tile of W x W elements is loaded row by row (each row one vector), transposed in registers by
// log2(W) rounds of interleaving, and stored row by row.
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/copy_kernels.h"
#include "kernels/cpu/simd/vectorise.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <typename T, int W>
struct Vector;
#define HOLDFAST_VECTOR(type, lanes)                                         \
  template <>                                                                \
  struct Vector<type, lanes> {                                               \
    typedef type value __attribute__((vector_size(sizeof(type) * (lanes)))); \
  };
HOLDFAST_VECTOR(uint64_t, 2)
HOLDFAST_VECTOR(uint64_t, 4)
HOLDFAST_VECTOR(uint64_t, 8)
HOLDFAST_VECTOR(uint32_t, 4)
HOLDFAST_VECTOR(uint32_t, 8)
HOLDFAST_VECTOR(uint32_t, 16)
HOLDFAST_VECTOR(uint16_t, 8)
HOLDFAST_VECTOR(uint16_t, 16)
#undef HOLDFAST_VECTOR

template <int W, bool high, typename V>
inline V interleave(V a, V b) {
  constexpr int h = high ? W / 2 : 0;
  if constexpr (W == 2) {
    return __builtin_shufflevector(a, b, h, h + 2);
  } else if constexpr (W == 4) {
    return __builtin_shufflevector(a, b, h, h + 4, h + 1, h + 5);
  } else if constexpr (W == 8) {
    return __builtin_shufflevector(a, b, h, h + 8, h + 1, h + 9, h + 2, h + 10, h + 3, h + 11);
  } else {
    return __builtin_shufflevector(a, b, h, h + 16, h + 1, h + 17, h + 2, h + 18, h + 3, h + 19,
                                   h + 4, h + 20, h + 5, h + 21, h + 6, h + 22, h + 7, h + 23);
  }
}

template <typename T, int W, bool stream>
inline void transpose_tile(const T* source, int64_t source_stride, T* destination,
                           int64_t destination_stride) {
  using V = typename Vector<T, W>::value;
  V row[W];
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) std::memcpy(&row[i], source + i * source_stride, sizeof(V));
#pragma GCC unroll 4
  for (int round = 1; round < W; round *= 2) {
    V next[W];
#pragma GCC unroll 8
    for (int i = 0; i < W / 2; ++i) {
      next[2 * i] = interleave<W, false>(row[i], row[i + W / 2]);
      next[2 * i + 1] = interleave<W, true>(row[i], row[i + W / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) row[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) {
    T* to = destination + i * destination_stride;
#if defined(__AVX512F__)
    if constexpr (stream) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)row[i]);
      continue;
    }
#endif
    std::memcpy(to, &row[i], sizeof(V));
  }
}

template <typename T>
inline void transpose_scalar(const T* source, int64_t source_stride, int64_t rows, int64_t columns,
                             T* destination, int64_t destination_stride) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      destination[c * destination_stride + r] = source[r * source_stride + c];
    }
  }
}

// Walks a few cache lines of columns down all rows, so that each line of the source is used up
// while it is in the cache and the destination grows along its rows. The jumps are too long for the
// processor to foresee: the lines of the next tiles are asked for ahead.
template <typename T, int W, bool stream>
void transpose_blocks(const T* source, int64_t source_stride, int64_t rows, int64_t columns,
                      T* destination, int64_t destination_stride) {
  constexpr int64_t line = 64 / sizeof(T);
  constexpr int64_t panel = 4 * line;
  constexpr int64_t step = W > 1 ? W : 16;
  for (int64_t c0 = 0; c0 < columns; c0 += panel) {
    int64_t width = columns - c0 < panel ? columns - c0 : panel;
    int64_t r = 0;
    for (; r + step <= rows; r += step) {
      const T* from = source + r * source_stride + c0;
      for (int64_t ahead = r + 2 * step; ahead < r + 3 * step && ahead < rows; ++ahead) {
        for (int64_t c = 0; c < width; c += line) {
          __builtin_prefetch(source + ahead * source_stride + c0 + c);
        }
      }
      int64_t c = 0;
      if constexpr (W > 1) {
        for (; c + W <= width; c += W) {
          transpose_tile<T, W, stream>(from + c, source_stride,
                                       destination + (c0 + c) * destination_stride + r,
                                       destination_stride);
        }
      }
      if (c < width) {
        transpose_scalar(from + c, source_stride, step, width - c,
                         destination + (c0 + c) * destination_stride + r, destination_stride);
      }
    }
    if (r < rows) {
      transpose_scalar(source + r * source_stride + c0, source_stride, rows - r, width,
                       destination + c0 * destination_stride + r, destination_stride);
    }
  }
}

template <typename T, int W>
void transpose_as(const void* source, int64_t source_stride, int64_t rows, int64_t columns,
                  void* destination, int64_t destination_stride, [[maybe_unused]] bool stream) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(destination);
#if defined(__AVX512F__)
  // Only whole lines may bypass the cache.
  if constexpr (W * sizeof(T) == 64) {
    auto misalignment = reinterpret_cast<uintptr_t>(to) % 64 +
                        static_cast<uint64_t>(destination_stride) * sizeof(T) % 64;
    if (stream && misalignment == 0) {
      transpose_blocks<T, W, true>(from, source_stride, rows, columns, to, destination_stride);
      _mm_sfence();
      return;
    }
  }
#endif
  transpose_blocks<T, W, false>(from, source_stride, rows, columns, to, destination_stride);
}

void transpose(size_t itemsize, const void* source, int64_t source_stride, int64_t rows,
               int64_t columns, void* destination, int64_t destination_stride, bool stream) {
  auto run = [&](auto kernel) {
    kernel(source, source_stride, rows, columns, destination, destination_stride, stream);
  };
  switch (itemsize) {
    case 1:
      return run(transpose_as<uint8_t, 1>);  // no byte shuffles
    case 2:
      return run(transpose_as < uint16_t, vector_bytes >= 32 ? 16 : 8 >);
    case 4:
      return run(transpose_as<uint32_t, vector_bytes / 4>);
    default:
      return run(transpose_as<uint64_t, vector_bytes / 8>);
  }
}

template <typename T>
void reverse_as(const void* last, int64_t count, void* destination) {
  const T* from = static_cast<const T*>(last);
  T* to = static_cast<T*>(destination);
  HOLDFAST_VECTORISE
  for (int64_t i = 0; i < count; ++i) to[i] = from[-i];
}

template <typename T>
void fill_as(const void* value, int64_t count, void* destination) {
  const T element = *static_cast<const T*>(value);
  T* to = static_cast<T*>(destination);
  for (int64_t i = 0; i < count; ++i) to[i] = element;
}

// The copies of a function for elements of 1, 2, 4 and 8 bytes.
using Copy = void (*)(const void* from, int64_t count, void* destination);
Copy for_size(const Copy (&copies)[4], size_t itemsize) {
  return copies[itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : 3];
}

void reverse(size_t itemsize, const void* last, int64_t count, void* destination) {
  constexpr Copy copies[] = {reverse_as<uint8_t>, reverse_as<uint16_t>, reverse_as<uint32_t>,
                             reverse_as<uint64_t>};
  for_size(copies, itemsize)(last, count, destination);
}

void fill(size_t itemsize, const void* value, int64_t count, void* destination) {
  constexpr Copy copies[] = {fill_as<uint8_t>, fill_as<uint16_t>, fill_as<uint32_t>,
                             fill_as<uint64_t>};
  for_size(copies, itemsize)(value, count, destination);
}

inline void stream_line(char* to, const char* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX2__)
  for (int part = 0; part < 64; part += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + part),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + part)));
  }
#elif defined(__SSE2__)
  for (int part = 0; part < 64; part += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
  }
#else
  __builtin_memcpy(to, from, 64);
#endif
}

void stream_lines(void* destination, const void* source, int64_t lines, const void* next) {
  auto* to = static_cast<char*>(destination);
  const auto* from = static_cast<const char*>(source);
  const auto* ahead = static_cast<const char*>(next);
  for (int64_t i = 0; i < lines * 64; i += 64) {
    // Into the second-level cache: the first level has too few requests in flight for a stream.
    if (ahead != nullptr) __builtin_prefetch(ahead + i, 0, 2);
    stream_line(to + i, from + i);
  }
}

}  // namespace

extern const simd::CopyKernels copy_kernels;
const simd::CopyKernels copy_kernels{transpose, reverse, fill, stream_lines};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
