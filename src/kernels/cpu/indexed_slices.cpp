#include "kernels/cpu/indexed_slices.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/copy.h"

namespace holdfast::kernels::cpu {
namespace {

constexpr int64_t part_elements = 4096;  // of a slice, from which on it is worth sharing
constexpr int64_t contiguous_run = 16;   // elements from which a run goes to the vector kernels

}  // namespace

IndexStatus SliceIndex::offsets(std::span<const void* const> indices, int64_t begin, int64_t end,
                                int64_t* offsets) const {
  int64_t part[index_block];
  if (axes_.empty()) std::fill(offsets, offsets + (end - begin), 0);
  for (size_t k = 0; k < axes_.size(); ++k) {
    const Axis& axis = axes_[k];
    IndexStatus status =
        axis.index.offsets(indices[k], begin, end, axis.range, k == 0 ? offsets : part);
    if (!status.ok) {
      status.axis = axis.axis;
      return status;
    }
    if (k == 0) continue;
    for (int64_t i = 0; i < end - begin; ++i) offsets[i] += part[i];
  }
  return {};
}

IndexStatus GatherSlices::run(int64_t task, const void* input, std::span<const void* const> indices,
                              void* output) const {
  int64_t item = static_cast<int64_t>(item_size), bytes = slice.size * item;
  bool dense = slice.is_dense();
  int64_t last = std::min(places, (task + 1) * places_per_task);
  for (int64_t begin = task * places_per_task; begin < last; begin += index_block) {
    int64_t offsets[index_block];
    int64_t end = std::min(last, begin + index_block);
    IndexStatus status = index.offsets(indices, begin, end, offsets);
    if (!status.ok) return status;
    char* to = static_cast<char*>(output) + begin * bytes;
    for (int64_t i = begin; i < end; ++i, to += bytes) {
      const char* from = static_cast<const char*>(input) + offsets[i - begin] * item;
      if (slice.size == 1 && item == 4) {
        std::memcpy(to, from, 4);
      } else if (dense) {
        std::memcpy(to, from, static_cast<size_t>(bytes));
      } else {
        gather_range(from, slice, item_size, 0, slice.size, to);
      }
    }
  }
  return {};
}

ScatterSlices::ScatterSlices(SliceIndex index, int64_t places, CollapsedLayout update_places,
                             JointLayout slice, Dtype::Val dtype, UpdateMode mode, bool may_overlap)
    : index_(std::move(index)),
      places_(places),
      update_places_(std::move(update_places)),
      slice_(std::move(slice)),
      dtype_(dtype),
      mode_(mode),
      combine_(mode, dtype),
      part_(slice_.size) {
  if (may_overlap) return;
  // Parts of whole cache lines; few enough that finding the places is not what costs.
  part_ =
      std::max<int64_t>(part_elements / std::max<int64_t>(1, std::min<int64_t>(places, 16)), 64);
  part_ = std::max(part_, (slice_.size + 63) / 64);
  tasks_ = std::max<int64_t>(1, (slice_.size + part_ - 1) / part_);
}

template <typename T, UpdateMode mode>
void ScatterSlices::apply(T* out, const T* update, int64_t begin, int64_t end) const {
  if (slice_.size == 1) {
    *out = combined<mode>(*out, *update);
    return;
  }
  Odometer to(slice_.shape, slice_.strides[0], begin), from(slice_.shape, slice_.strides[1], begin);
  int64_t to_stride = slice_.strides[0].back(), from_stride = slice_.strides[1].back();
  for (int64_t i = begin; i < end;) {
    int64_t run = std::min(to.run(), end - i);
    T* target = out + to.offset();
    const T* source = update + from.offset();
    if (to_stride == 1 && from_stride == 1 && run >= contiguous_run) {
      combine_(target, source, run);
    } else {
      for (int64_t j = 0; j < run; ++j) {
        T& place = target[j * to_stride];
        place = combined<mode>(place, source[j * from_stride]);
      }
    }
    to.advance(run);
    from.advance(run);
    i += run;
  }
}

IndexStatus ScatterSlices::run(int64_t task, std::span<const void* const> indices,
                               const void* updates, void* output) const {
  int64_t first = task * part_, last = std::min(slice_.size, first + part_);
  return dispatch_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return dispatch_mode(mode_, [&](auto mode) -> IndexStatus {
      const T* source = static_cast<const T*>(updates);
      T* target = static_cast<T*>(output);
      Odometer at(update_places_, 0);
      for (int64_t begin = 0; begin < places_; begin += index_block) {
        int64_t offsets[index_block];
        int64_t end = std::min(places_, begin + index_block);
        IndexStatus status = index_.offsets(indices, begin, end, offsets);
        if (!status.ok) return status;
        for (int64_t i = begin; i < end; ++i, at.advance(1)) {
          apply<T, mode.value>(target + offsets[i - begin], source + at.offset(), first, last);
        }
      }
      return {};
    });
  });
}

}  // namespace holdfast::kernels::cpu
