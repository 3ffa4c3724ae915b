// Copies between strided views and dense memory. Every function handles one range of the view's
// row-major positions, so that a copy can be cut anywhere; ranges of one view may run at the same
// time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

// dense[i - begin] = view[i] for begin <= i < end. `base` is the address of the view's first
// element, itemsize is 1, 2, 4 or 8. `dense` does not overlap the view.
void gather_range(const void* base, const CollapsedLayout& layout, size_t itemsize, int64_t begin,
                  int64_t end, void* dense);

// view[i] = dense[i - begin]: the inverse. Positions of the view must be distinct (no zero
// strides).
void scatter_range(const void* dense, const CollapsedLayout& layout, size_t itemsize, int64_t begin,
                   int64_t end, void* base);

// How many positions one task should take: whole blocks of the fast paths, about half a megabyte.
// Depends on the layout alone. Task t covers [t * grain, min(size, (t + 1) * grain)).
int64_t copy_grain(const CollapsedLayout& layout, size_t itemsize);

// Bytes from which a whole destination should bypass the cache (`stream`): together with a source
// of its size, more than the last-level cache holds.
size_t stream_threshold();
// For tests: another threshold, for what is encoded from now on.
void force_stream_threshold(size_t bytes);
void unforce_stream_threshold();

// memcpy. `stream` writes past the cache, for pieces of a destination of more than
// stream_threshold() bytes.
void copy_dense(void* destination, const void* source, size_t bytes, bool stream);

// The same for small pieces that lie in the cache, without the fence: call end_stream() after the
// last one. `next` as in copy_ahead.
void stream_block(void* destination, const void* source, size_t bytes, const void* next = nullptr);
void end_stream();

// Copies like copy_dense, without the fence, and asks for the `bytes` at `next` meanwhile (nullptr:
// for none): what is copied later from a place that the processor cannot foresee.
void copy_ahead(void* destination, const void* source, size_t bytes, const void* next, bool stream);

// Fills `count` elements with the one at `value`; `stream` as above.
void fill_dense(void* destination, const void* value, size_t itemsize, int64_t count, bool stream);

}  // namespace holdfast::kernels::cpu
