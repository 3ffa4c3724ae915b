// Convolutions as products of the input's patches and the weights, and of each channel by itself.
//
// A patch is a row of the product: what lies under the kernel at a pixel of the output, tap by tap,
// and the channels of a tap one after the other. Patches are never in memory: tiles of them are
// gathered from the input. The host's side is encode/convolution.cpp.
#include "support/indexing.h"
#include "support/tiles.h"
#include "support/convolution_parameters.h"

// Where the kernel lies for a pixel of the output: its first corner, which may be outside.
struct Corner {
  int place[3];
  long batch, pixel;  // pixel: of all batches
};
inline long pixel_of(constant Convolution& convolution, Corner corner) {
  long pixel = corner.batch;
  for (int d = 0; d < 3; ++d) pixel = pixel * convolution.size[d] + corner.place[d];
  return pixel;
}
inline Corner corner_of(constant Convolution& convolution, constant ConvolutionCounts& counts, ulong row) {
  Corner corner;
  for (int d = 2; d >= 0; --d) {
    const int position = int(take_last(row, counts.result[d]));
    corner.place[d] = position * convolution.stride[d] - convolution.padding[d];
  }
  corner.batch = long(row);
  corner.pixel = pixel_of(convolution, corner);
  return corner;
}
// That of the next pixel.
inline Corner next_corner(constant Convolution& convolution, constant ConvolutionCounts& counts,
                          Corner corner) {
  bool carries = true;
  for (int d = 2; d >= 0; --d) {
    const int step = convolution.stride[d], low = -convolution.padding[d];
    corner.place[d] += carries ? step : 0;
    carries = carries && corner.place[d] == low + int(counts.result[d].size) * step;
    if (carries) corner.place[d] = low;
  }
  corner.batch += carries ? 1 : 0;
  corner.pixel = pixel_of(convolution, corner);
  return corner;
}

struct Tap {
  int offset[3];
  long pixels;  // between the corner and the tap, where the input is not dilated
  uint channel;
};
inline Tap tap_of(constant Convolution& convolution, constant ConvolutionCounts& counts, uint step) {
  Tap tap;
  tap.channel = take_last(step, counts.channels);
  for (int d = 2; d >= 0; --d) {
    const int at = int(take_last(step, counts.taps[d]));
    tap.offset[d] =
        (convolution.flip ? convolution.taps[d] - 1 - at : at) * convolution.dilation[d];
  }
  tap.pixels = 0;
  for (int d = 0; d < 3; ++d) tap.pixels = tap.pixels * convolution.size[d] + tap.offset[d];
  return tap;
}

// The pixel of the input under a tap, -1 where there is none.
inline long pixel_under(constant Convolution& convolution, Corner corner, Tap tap) {
  if (!convolution.is_dilated) {
    bool exists = true;
    for (int d = 0; d < 3; ++d)
      exists = exists && uint(corner.place[d] + tap.offset[d]) < uint(convolution.size[d]);
    return exists ? corner.pixel + tap.pixels : -1;
  }
  long pixel = corner.batch;
  for (int d = 0; d < 3; ++d) {
    const int place = corner.place[d] + tap.offset[d];
    const int source = place / convolution.input_dilation[d];
    if (place < 0 || source * convolution.input_dilation[d] != place ||
        source >= convolution.size[d])
      return -1;
    pixel = pixel * convolution.size[d] + source;
  }
  return pixel;
}

// Where a block of a tile's row of 64 bytes is, as in Tile<rows, 32>.
inline uint block_at(uint row, uint block) { return row * 4 + (block ^ (row / 2 & 3)); }

// Products of half types: 128 rows, 32 by 32 for each of 8 simdgroups.
template <typename T>
struct MatrixProduct {
  using Sum = float;
  static constant constexpr uint rows = 128;
  TileSums<T, 32, 32> sums;

  void add(const threadgroup uint4* left, const threadgroup uint4* right, uint t) {
    const auto* a = reinterpret_cast<const threadgroup uchar*>(left);
    const auto* b = reinterpret_cast<const threadgroup uchar*>(right);
#pragma unroll
    for (uint k = 0; k < 32; k += 16)
      sums.template add<Tile<128, 32>, false, Tile<64, 32>, false>(a, b, t / 64 * 32,
                                                                   t / 32 % 2 * 32, k, t % 32);
  }
  // Calls put(row, column, sum).
  template <typename Put>
  void store(threadgroup float* memory, uint t, Put put) {
    sums.store(memory + t / 32 * sums.staged, t % 32,
               [&](uint r, uint c, float sum) { put(t / 64 * 32 + r, t / 32 % 2 * 32 + c, sum); });
  }
};

// Products of others: 64 rows, 4 by 4 for each thread.
template <typename T>
struct PlainProduct {
  using Sum = T;
  static constant constexpr uint rows = 64;
  T sums[4][4] = {};

  void add(const threadgroup uint4* left, const threadgroup uint4* right, uint t) {
    for (uint b = 0; b < 4; ++b) {
      Block<T> rights[4];
      for (uint n = 0; n < 4; ++n) rights[n] = block_of<T>(right[block_at(t % 16 + 16 * n, b)]);
      for (uint m = 0; m < 4; ++m) {
        const Block<T> row = block_of<T>(left[block_at(t / 16 * 4 + m, b)]);
        for (uint n = 0; n < 4; ++n) {
          for (int i = 0; i < Block<T>::size; ++i) {
            const T x = row.values[i], y = rights[n].values[i];
            if constexpr (sizeof(T) == 4) {
              sums[m][n] = fma(x, y, sums[m][n]);
            } else {
              sums[m][n].x = fma(x.x, y.x, fma(-x.y, y.y, sums[m][n].x));
              sums[m][n].y = fma(x.x, y.y, fma(x.y, y.x, sums[m][n].y));
            }
          }
        }
      }
    }
  }

  template <typename Put>
  void store(threadgroup float*, uint t, Put put) {
    for (uint m = 0; m < 4; ++m) {
      for (uint n = 0; n < 4; ++n) put(t / 16 * 4 + m, t % 16 + 16 * n, sums[m][n]);
    }
  }
};

// Columns of a tile of the product.
constant constexpr uint columns = 64;

template <typename T, typename Product>
KERNEL(256)
convolution_tiles(const device T* in, const device T* weights, device uchar* out,
                  constant Convolution& convolution, constant ConvolutionCounts& counts,
                  uint3 position [[threadgroup_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]]) {
  using Sum = typename Product::Sum;
  constexpr uint size = Block<T>::size, step = 4 * size, rows = Product::rows;
  threadgroup uint4 memory[2][(rows + columns) * 4];
  const ulong first_row = ulong(position.x) * rows;
  const uint first_column = position.y * columns;
  const uint group = position.z / convolution.splits, split = position.z % convolution.splits;
  const uint begin = split * convolution.split_depth;
  const uint end = min(convolution.depth, begin + convolution.split_depth);

  // The thread's block of each step, in two rows of patches or one, and in a row of weights.
  const uint block = t % 4;
  Corner corners[rows / 64];
  bool exists[rows / 64];
  for (uint i = 0; i < rows / 64; ++i) {
    const ulong row = first_row + t / 4 + 64 * i;
    exists[i] = row < convolution.rows;
    corners[i] = corner_of(convolution, counts, min(row, convolution.rows - 1));
  }
  const uint column = first_column + t / 4;
  const bool has_column = column < convolution.group_outputs;
  const device T* channels = in + group * convolution.group_channels;
  const device T* row_of_weights =
      weights +
      (ulong(group) * convolution.group_outputs + (has_column ? column : 0)) * convolution.depth;

  auto fetch = [&](uint first, uint buffer) {
    threadgroup uint4 *left = memory[buffer], *right = left + rows * 4;
    const uint at = first + block * size;
    threadgroup uint4* weight = &right[block_at(t / 4, block)];
    if (convolution.aligned) {
      const bool is_inside = at < end;
      const Tap tap = tap_of(convolution, counts, is_inside ? at : begin);
      for (uint i = 0; i < rows / 64; ++i) {
        const long pixel = exists[i] && is_inside ? pixel_under(convolution, corners[i], tap) : -1;
        holdfast::async_copy<16>(&left[block_at(t / 4 + 64 * i, block)],
                                 channels + max(pixel, 0l) * convolution.channels + tap.channel,
                                 pixel >= 0);
      }
      holdfast::async_copy<16>(weight, row_of_weights + (is_inside ? at : begin),
                               has_column && is_inside);
    } else {
#pragma nounroll
      for (uint j = 0; j < size; ++j) {
        const bool is_inside = at + j < end;
        const Tap tap = tap_of(convolution, counts, is_inside ? at + j : begin);
        for (uint i = 0; i < rows / 64; ++i) {
          const long pixel =
              exists[i] && is_inside ? pixel_under(convolution, corners[i], tap) : -1;
          T value = T(0);
          if (pixel >= 0) value = channels[pixel * convolution.channels + tap.channel];
          reinterpret_cast<threadgroup T*>(&left[block_at(t / 4 + 64 * i, block)])[j] = value;
        }
        T value = T(0);
        if (has_column && is_inside) value = row_of_weights[at + j];
        reinterpret_cast<threadgroup T*>(weight)[j] = value;
      }
    }
    holdfast::async_copy_commit();
  };

  Product product;
  fetch(begin, 0);
  uint buffer = 0;
  for (uint at = begin; at < end; at += step) {
    if (at + step < end) {
      fetch(at + step, 1 - buffer);
    } else {
      holdfast::async_copy_commit();
    }
    holdfast::async_copy_wait<1>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    product.add(memory[buffer], memory[buffer] + rows * 4, t);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    buffer = 1 - buffer;
  }

  product.store(reinterpret_cast<threadgroup float*>(memory), t, [&](uint row, uint near, Sum sum) {
    const ulong to_row = first_row + row, to_column = first_column + near;
    if (to_row >= convolution.rows || to_column >= convolution.group_outputs) return;
    const ulong to = to_row * convolution.outputs + group * convolution.group_outputs + to_column;
    if (convolution.splits > 1) {
      const ulong part = split * convolution.rows * convolution.outputs;
      reinterpret_cast<device Sum*>(out)[part + to] = sum;
    } else {
      reinterpret_cast<device T*>(out)[to] = T(sum);
    }
  });
}

// As many groups as channels and outputs. A thread has a block of channels of four pixels.
template <typename T>
KERNEL(256)
convolution_depthwise(const device T* in, const device T* weights, device T* out,
                      constant Convolution& convolution, constant ConvolutionCounts& counts,
                      constant Extent& blocks, IN_GRID) {
  constexpr uint size = Block<T>::size, pixels = 4;
  ulong number = thread_number(position, grid);
  const uint first = uint(take_last(number, blocks)) * size;
  const ulong first_row = number * pixels;
  if (first_row >= convolution.rows) return;
  Corner corners[pixels];
  corners[0] = corner_of(convolution, counts, first_row);
  for (uint p = 1; p < pixels; ++p) corners[p] = next_corner(convolution, counts, corners[p - 1]);
  float sums[pixels][size] = {};
  for (uint step = 0; step < convolution.depth; ++step) {
    const Tap tap = tap_of(convolution, counts, step);
    float factors[size];
    for (uint i = 0; i < size; ++i) {
      const uint channel = min(first + i, convolution.channels - 1);
      factors[i] = float(weights[ulong(channel) * convolution.depth + step]);
    }
#pragma unroll
    for (uint p = 0; p < pixels; ++p) {
      const long pixel =
          first_row + p < convolution.rows ? pixel_under(convolution, corners[p], tap) : -1;
      const device T* from = in + max(pixel, 0l) * convolution.channels + first;
      Block<T> block;
      if (convolution.aligned) {
        block = load_block(from);
      } else {
        for (uint i = 0; i < size; ++i)
          block.values[i] = first + i < convolution.channels ? from[i] : T(0);
      }
      for (uint i = 0; i < size; ++i) {
        const float x = pixel < 0 ? 0.0f : float(block.values[i]);
        sums[p][i] = fma(x, factors[i], sums[p][i]);
      }
    }
  }
#pragma unroll
  for (uint p = 0; p < pixels; ++p) {
    Block<T> block;
    for (uint i = 0; i < size; ++i) block.values[i] = T(sums[p][i]);
    if (first_row + p < convolution.rows)
      store_block(out + (first_row + p) * convolution.channels, first, convolution.channels,
                  convolution.aligned, block);
  }
}

#define TILES(name, T, Product) ENTRY("convolution_tiles_" #name, convolution_tiles<T, Product<T>>)
TILES(float16, half, MatrixProduct)
TILES(bfloat16, bfloat, MatrixProduct)
TILES(float32, float, PlainProduct)
TILES(complex64, float2, PlainProduct)
#define DEPTHWISE(name, T) ENTRY("convolution_depthwise_" #name, convolution_depthwise<T>)
FOR_FLOATS(DEPTHWISE)
