#include "kernels/cpu/gather.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/copy.h"

namespace holdfast::cpu {
namespace {

constexpr int64_t task_bytes = 128 << 10;

template <typename Index>
int64_t as_signed(Index value) {
  if constexpr (std::is_same_v<Index, uint64_t>) {
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return static_cast<int64_t>(std::min(value, most));
  } else {
    return static_cast<int64_t>(value);
  }
}

// Copies one element; the switch is taken once per task's loop by the branch predictor.
void copy_item(char* to, const char* from, size_t size) {
  switch (size) {
    case 1:
      *to = *from;
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    default:
      std::memcpy(to, from, 8);
      return;
  }
}

}  // namespace

GatherPlan::GatherPlan(size_t itemsize, std::span<const int32_t> shape,
                       std::span<const int64_t> strides, int axis, Dtype::Val index_type,
                       std::span<const int32_t> index_shape, std::span<const int64_t> index_strides)
    : item_size_(itemsize),
      index_type_(index_type),
      outer_(collapse(shape.first(static_cast<size_t>(axis)),
                      strides.first(static_cast<size_t>(axis)))),
      inner_(collapse(shape.subspan(static_cast<size_t>(axis) + 1),
                      strides.subspan(static_cast<size_t>(axis) + 1))),
      index_(collapse(index_shape, index_strides)),
      axis_size_(shape[static_cast<size_t>(axis)]),
      axis_stride_(strides[static_cast<size_t>(axis)]),
      slices_(outer_.size * index_.size) {
  if (slices_ == 0 || inner_.size == 0) return;
  auto slice_bytes = inner_.size * static_cast<int64_t>(itemsize);
  slices_per_task_ = std::max<int64_t>(1, task_bytes / slice_bytes);
  tasks_ = (slices_ + slices_per_task_ - 1) / slices_per_task_;
}

template <typename Index>
GatherStatus GatherPlan::run_typed(int64_t begin, int64_t end, const char* input,
                                   const char* indices, char* output) const {
  auto item = static_cast<int64_t>(item_size_);
  int64_t slice_bytes = inner_.size * item;
  bool contiguous = inner_.is_dense();
  char* to = output + begin * slice_bytes;
  for (int64_t i = begin; i < end;) {
    int64_t position = i % index_.size;
    int64_t stop = std::min(end, i - position + index_.size);
    const char* base = input + offset_at(outer_, i / index_.size) * item;
    Odometer at(index_, position);
    for (; i < stop; ++i, ++position, to += slice_bytes) {
      int64_t value = as_signed(reinterpret_cast<const Index*>(indices)[at.offset()]);
      at.advance(1);
      int64_t picked = value < 0 ? value + axis_size_ : value;
      if (picked < 0 || picked >= axis_size_) return {false, value, position};
      const char* from = base + picked * axis_stride_ * item;
      if (inner_.size == 1) {
        copy_item(to, from, item_size_);
      } else if (contiguous) {
        std::memcpy(to, from, static_cast<size_t>(slice_bytes));
      } else {
        gather_range(from, inner_, item_size_, 0, inner_.size, to);
      }
    }
  }
  return {};
}

GatherStatus GatherPlan::run(int64_t task, const void* input, const void* indices,
                             void* output) const noexcept {
  int64_t begin = task * slices_per_task_;
  int64_t end = std::min(slices_, begin + slices_per_task_);
  const auto* from = static_cast<const char*>(input);
  const auto* picks = static_cast<const char*>(indices);
  auto* to = static_cast<char*>(output);
  switch (index_type_) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return run_typed<uint8_t>(begin, end, from, picks, to);
    case Dtype::Val::uint16:
      return run_typed<uint16_t>(begin, end, from, picks, to);
    case Dtype::Val::uint32:
      return run_typed<uint32_t>(begin, end, from, picks, to);
    case Dtype::Val::uint64:
      return run_typed<uint64_t>(begin, end, from, picks, to);
    case Dtype::Val::int8:
      return run_typed<int8_t>(begin, end, from, picks, to);
    case Dtype::Val::int16:
      return run_typed<int16_t>(begin, end, from, picks, to);
    case Dtype::Val::int32:
      return run_typed<int32_t>(begin, end, from, picks, to);
    default:
      return run_typed<int64_t>(begin, end, from, picks, to);
  }
}

}  // namespace holdfast::cpu
