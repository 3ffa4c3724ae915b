// The copy kernels that exist once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holdfast::kernels::cpu::simd {

struct CopyKernels {
  // destination[c * destination_stride + r] = source[r * source_stride + c] for r < rows, c <
  // columns; strides in elements of `itemsize` bytes. `stream` allows to write past the cache.
  void (*transpose)(size_t itemsize, const void* source, int64_t source_stride, int64_t rows,
                    int64_t columns, void* destination, int64_t destination_stride, bool stream);
  // destination[i] = last[-i] for i < count, elements of `itemsize` bytes.
  void (*reverse)(size_t itemsize, const void* last, int64_t count, void* destination);
  // destination[i] = the element at `value`, for i < count.
  void (*fill)(size_t itemsize, const void* value, int64_t count, void* destination);
  // Copies whole lines of 64 bytes past the cache; `destination` is aligned to 64. Needs a store
  // fence after the last call. Asks for as many lines at `next` meanwhile (nullptr: for none).
  void (*stream_lines)(void* destination, const void* source, int64_t lines, const void* next);
};

// Of the instruction set in use.
const CopyKernels& copy_kernels();

}  // namespace holdfast::kernels::cpu::simd
