#include "kernels/cpu/gather.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/copy.h"

namespace holdfast::kernels::cpu {
namespace {

constexpr int64_t task_bytes = 128 << 10;
constexpr int64_t streamed_task_bytes = 1 << 20;

// Slices of fewer bytes cost too little to plan ahead for.
constexpr int64_t large_slice = 512;
// How far ahead of what is copied slices are asked for: nobody else foresees where they are.
constexpr int64_t fetched_ahead = 8 << 10;

}  // namespace

// --- take ---

GatherPlan::GatherPlan(size_t itemsize, std::span<const int32_t> shape,
                       std::span<const int64_t> strides, int axis, Dtype::Val index_type,
                       std::span<const int32_t> index_shape, std::span<const int64_t> index_strides)
    : item_size_(itemsize),
      outer_(collapse(shape.first(static_cast<size_t>(axis)),
                      strides.first(static_cast<size_t>(axis)))),
      inner_(collapse(shape.subspan(static_cast<size_t>(axis) + 1),
                      strides.subspan(static_cast<size_t>(axis) + 1))),
      index_(IndexView::from_zero(index_type, collapse(index_shape, index_strides))),
      places_(index_.indices.size),
      slices_(outer_.size * places_) {
  int64_t axis_size = shape[static_cast<size_t>(axis)];
  axis_ = {axis_size, axis_size - 1, strides[static_cast<size_t>(axis)]};
  if (slices_ == 0 || inner_.size == 0) return;
  auto slice_bytes = inner_.size * static_cast<int64_t>(itemsize);
  stream_ = slice_bytes >= large_slice && inner_.is_dense() &&
            static_cast<size_t>(slices_ * slice_bytes) >= stream_threshold();
  slices_per_task_ =
      std::max<int64_t>(1, (stream_ ? streamed_task_bytes : task_bytes) / slice_bytes);
  tasks_ = (slices_ + slices_per_task_ - 1) / slices_per_task_;
}

void GatherPlan::copy_slices(const char* base, const int64_t* offsets, int64_t count,
                             char* to) const {
  if (inner_.size == 1) return gather_elements(item_size_, base, offsets, count, to);
  auto item = static_cast<int64_t>(item_size_);
  int64_t bytes = inner_.size * item;
  bool dense = inner_.is_dense(), large = bytes >= large_slice;
  int64_t ahead = (fetched_ahead + bytes - 1) / bytes;
  for (int64_t i = 0; i < count; ++i, to += bytes) {
    const char* from = base + offsets[i] * item;
    if (!dense) {
      gather_range(from, inner_, item_size_, 0, inner_.size, to);
    } else if (large) {
      const char* next = i + ahead < count ? base + offsets[i + ahead] * item : nullptr;
      copy_ahead(to, from, static_cast<size_t>(bytes), next, stream_);
    } else {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    }
  }
  if (stream_) end_stream();
}

IndexStatus GatherPlan::run(int64_t task, const void* input, const void* indices,
                            void* output) const noexcept {
  int64_t begin = task * slices_per_task_;
  int64_t end = std::min(slices_, begin + slices_per_task_);
  auto item = static_cast<int64_t>(item_size_);
  auto* to = static_cast<char*>(output);
  int64_t offsets[index_block];
  int64_t known_begin = 0, known_end = 0;  // places whose offsets are known
  Odometer outer(outer_, begin / places_);
  for (int64_t i = begin, place = begin % places_; i < end;) {
    if (place < known_begin || place >= known_end) {
      // All of a short index array at once: it is the same for every outer position.
      bool all = places_ <= index_block;
      known_begin = all ? 0 : place;
      known_end = all ? places_ : std::min({places_, place + index_block, place + end - i});
      IndexStatus status = index_.offsets(indices, known_begin, known_end, axis_, offsets);
      if (!status.ok) return status;
    }
    int64_t count = std::min(known_end - place, end - i);
    copy_slices(static_cast<const char*>(input) + outer.offset() * item,
                offsets + (place - known_begin), count, to + i * inner_.size * item);
    i += count;
    place += count;
    if (place == places_) {
      place = 0;
      outer.advance(1);
    }
  }
  return {};
}

// --- take_along_axis ---

IndexStatus GatherAxisPlan::run(int64_t task, const void* input, const void* indices,
                                void* output) const noexcept {
  int64_t offsets[index_block];
  int64_t last = std::min(size_, (task + 1) * grain);
  for (int64_t begin = task * grain; begin < last; begin += index_block) {
    int64_t end = std::min(last, begin + index_block);
    IndexStatus status = index_.offsets(indices, begin, end, axis_, offsets);
    if (!status.ok) return status;
    gather_elements(item_size_, input, offsets, end - begin,
                    static_cast<char*>(output) + begin * static_cast<int64_t>(item_size_));
  }
  return {};
}

}  // namespace holdfast::kernels::cpu
