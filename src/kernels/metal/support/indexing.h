// What the library's kernels share: positions in grids and views, and memory in blocks of 16 bytes.
// The host's side of the structures is kernels/metal/launch.h.
#include <metal_stdlib>
using namespace metal;

// A kernel of so many threads a threadgroup, and what it knows of its place.
#define KERNEL(threads) [[kernel, max_total_threads_per_threadgroup(threads)]] void
#define IN_GRID uint2 position [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]
#define IN_GROUP(Number) \
  Number group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]
#define IN_GROUPS IN_GROUP(uint3), uint3 groups [[threadgroups_per_grid]]
#define IN_SIMDGROUP \
  uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]

// A kernel's template as an entry of that name.
#define ENTRY(name, ...) template [[host_name(name)]] [[kernel]] decltype(__VA_ARGS__) __VA_ARGS__;
// ROW(dtype, type), or ROW(bytes, type) of units.
#define FOR_FLOATS(ROW) ROW(float32, float) ROW(float16, half) ROW(bfloat16, bfloat)
// clang-format off: it wraps these lines anew each time.
#define FOR_NUMBERS(ROW) \
  FOR_FLOATS(ROW) ROW(uint8, uchar) ROW(uint16, ushort) ROW(uint32, uint) ROW(uint64, ulong) \
  ROW(int8, char) ROW(int16, short) ROW(int32, int) ROW(int64, long) ROW(complex64, float2)
// clang-format on
#define FOR_SIZES(ROW) ROW(1, uchar) ROW(2, ushort) ROW(4, uint) ROW(8, ulong)

// The number of a thread, row after row, in a grid of two dimensions.
inline ulong thread_number(uint2 position, uint2 grid) {
  return ulong(position.y) * grid.x + position.x;
}

// A dimension of a view. Numbers below 2^31 are divided by `size` with `multiplier` and `shift`.
struct Extent {
  long stride;  // in elements
  ulong size;
  uint multiplier, shift;
};

inline uint divided(uint number, constant Extent& extent) {
  return mulhi(number, extent.multiplier) >> extent.shift;
}
inline ulong divided(ulong number, constant Extent& extent) { return number / extent.size; }

// number / by, without a call of a function: calls cost all registers of a kernel. Slow, for paths
// that are rarely taken.
inline ulong divided_slowly(ulong number, ulong by) {
  ulong quotient = 0, rest = 0;
#pragma nounroll
  for (int bit = 63; bit >= 0; --bit) {
    rest = rest << 1 | (number >> bit & 1);
    const bool fits = rest >= by;
    rest -= fits ? by : 0;
    quotient = quotient << 1 | ulong(fits);
  }
  return quotient;
}

// Takes the last of several numbers, which counts to extent.size, off the number that counts them
// all in row-major order. Sizes may be 1.
inline ulong take_last(thread ulong& number, constant Extent& extent) {
  const ulong all = number;
  if (extent.size == 1) return 0;
  number = all >> 31 == 0 ? divided(uint(all), extent) : divided_slowly(all, extent.size);
  return all - number * extent.size;
}
inline uint take_last(thread uint& number, constant Extent& extent) {
  const uint all = number;
  if (extent.size == 1) return 0;
  number = divided(all, extent);
  return all - number * uint(extent.size);
}

// Where element `index` of a view lies, counted in row-major order. Index: uint for fewer than 2^31
// elements, else ulong.
template <typename Index>
inline long offset_of(Index index, constant Extent* extents, int dimensions) {
  long offset = 0;
  for (int d = dimensions - 1; d > 0; --d) {
    Index quotient = divided(index, extents[d]);
    offset += long(index - quotient * Index(extents[d].size)) * extents[d].stride;
    index = quotient;
  }
  return dimensions > 0 ? offset + long(index) * extents[0].stride : 0;
}

// The unsigned type that is as large as T.
template <int bytes>
struct bits_of_size;
template <>
struct bits_of_size<1> {
  using type = uchar;
};
template <>
struct bits_of_size<2> {
  using type = ushort;
};
template <>
struct bits_of_size<4> {
  using type = uint;
};
template <>
struct bits_of_size<8> {
  using type = ulong;
};
template <>
struct bits_of_size<16> {
  using type = uint4;
};
template <typename T>
using bits_of = typename bits_of_size<sizeof(T)>::type;

// 16 bytes as elements. Addresses of `load_block` and `store_block` are multiples of 16.
template <typename T>
struct Block {
  static constant constexpr int size = 16 / sizeof(T);
  T values[size];
};

template <typename T>
inline Block<T> block_of(uint4 words) {
  Block<T> block;
  for (int i = 0; i < Block<T>::size; ++i) {
    if constexpr (sizeof(T) == 16) {
      block.values[i] = as_type<T>(words);
    } else if constexpr (sizeof(T) == 8) {
      block.values[i] = as_type<T>(ulong(words[2 * i]) | ulong(words[2 * i + 1]) << 32);
    } else {
      constexpr int per_word = 4 / sizeof(T);
      block.values[i] =
          as_type<T>(bits_of<T>(words[i / per_word] >> (i % per_word * 8 * int(sizeof(T)))));
    }
  }
  return block;
}
template <typename T>
inline uint4 words_of(Block<T> block) {
  uint4 words = 0;
  for (int i = 0; i < Block<T>::size; ++i) {
    auto bits = as_type<bits_of<T>>(block.values[i]);
    if constexpr (sizeof(T) == 16) {
      words = bits;
    } else if constexpr (sizeof(T) == 8) {
      words[2 * i] = uint(bits);
      words[2 * i + 1] = uint(bits >> 32);
    } else {
      constexpr int per_word = 4 / sizeof(T);
      words[i / per_word] |= uint(bits) << (i % per_word * 8 * int(sizeof(T)));
    }
  }
  return words;
}
template <typename T>
inline Block<T> load_block(const device T* from) {
  return block_of<T>(*reinterpret_cast<const device uint4*>(from));
}
template <typename T>
inline void store_block(device T* to, Block<T> block) {
  *reinterpret_cast<device uint4*>(to) = words_of(block);
}

// Elements [first, first + Block<T>::size) of an array of `size` elements. `aligned`: its address
// is a multiple of 16.
template <typename T>
inline void store_block(device T* array, ulong first, ulong size, bool aligned, Block<T> block) {
  if (aligned && first + Block<T>::size <= size) {
    store_block(array + first, block);
  } else {
    for (int i = 0; i < Block<T>::size; ++i) {
      if (first + i < size) array[first + i] = block.values[i];
    }
  }
}
