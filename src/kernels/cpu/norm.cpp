#include "kernels/cpu/norm.h"

#include <algorithm>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/simd/norm_kernels.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(NormKernels, norm_kernels)

namespace holdfast::kernels::cpu {
namespace {

// The first rows of a task come from memory that nobody has asked for: tasks are longer where there
// are enough of them.
constexpr int64_t fewest_elements = int64_t{64} << 10, most_elements = int64_t{256} << 10;
constexpr int64_t usual_norm_tasks = 64;

}  // namespace

NormPlan::NormPlan(NormKind kind, Dtype::Val dtype, std::span<const int32_t> shape,
                   std::span<const int64_t> strides, double epsilon)
    : kind_(kind),
      dtype_(dtype),
      item_(static_cast<int64_t>(item_size(dtype))),
      epsilon_(epsilon),
      length_(shape.back()),
      rows_(collapse(shape.first(shape.size() - 1), strides.first(shape.size() - 1))) {
  if (rows_.size == 0 || length_ == 0) return;
  int64_t row_bytes = length_ * item_;
  stream_ = static_cast<size_t>(rows_.size * row_bytes) > stream_threshold() && row_bytes % 64 == 0;
  int64_t elements =
      std::clamp(rows_.size * length_ / usual_norm_tasks, fewest_elements, most_elements);
  rows_per_task_ = std::max<int64_t>(1, elements / length_);
  tasks_ = (rows_.size + rows_per_task_ - 1) / rows_per_task_;
}

void NormPlan::run(int64_t task, const void* input, const void* weight, const void* bias,
                   void* output) const noexcept {
  auto* kernel = kind_ == NormKind::rms ? simd::norm_kernels().rms : simd::norm_kernels().layer;
  int64_t begin = task * rows_per_task_;
  int64_t end = std::min(rows_.size, begin + rows_per_task_);
  int64_t row_bytes = length_ * item_;
  // Rows start at multiples of 64 bytes if the first one does.
  bool stream = stream_ && reinterpret_cast<uintptr_t>(output) % 64 == 0;
  const int64_t row_stride = rows_.strides.empty() ? 0 : rows_.strides.back();
  Odometer in(rows_, begin);
  for (int64_t row = begin; row < end;) {
    int64_t count = std::min(in.run(), end - row);
    const char* from = static_cast<const char*>(input) + in.offset() * item_;
    char* to = static_cast<char*>(output) + row * row_bytes;
    kernel(dtype_, {from, row_stride, weight, bias, to, count, length_, epsilon_, stream});
    row += count;
    in.advance(count);
  }
  if (stream) end_stream();
}

}  // namespace holdfast::kernels::cpu
