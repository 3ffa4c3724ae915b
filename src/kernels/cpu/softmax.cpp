#include "kernels/cpu/softmax.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/simd/softmax_kernels.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(SoftmaxKernels, softmax_kernels)

namespace holdfast::kernels::cpu {
namespace {

constexpr int64_t softmax_task_elements = int64_t{64} << 10;
constexpr int64_t staged_elements = 1024;

JointLayout collapse_pair(std::span<const int32_t> shape, std::span<const int64_t> input,
                          std::span<const int64_t> output) {
  std::span<const int64_t> lists[] = {input, output};
  return collapse_jointly(shape, lists);
}

}  // namespace

SoftmaxPlan::SoftmaxPlan(Dtype::Val dtype, std::span<const int32_t> shape,
                         std::span<const int64_t> strides, std::span<const int> axes)
    : dtype_(dtype), item_size_(item_size(dtype)) {
  Dimensions output_strides = dense_strides(shape);
  SmallVector<int32_t, 4> shapes[2];  // kept, reduced
  Dimensions inputs[2], outputs[2];
  for (size_t dimension = 0; dimension < shape.size(); ++dimension) {
    bool is_reduced =
        std::find(axes.begin(), axes.end(), static_cast<int>(dimension)) != axes.end();
    shapes[is_reduced].push_back(shape[dimension]);
    inputs[is_reduced].push_back(strides[dimension]);
    outputs[is_reduced].push_back(output_strides[dimension]);
  }
  kept_ = collapse_pair(shapes[0], inputs[0], outputs[0]);
  reduced_ = collapse_pair(shapes[1], inputs[1], outputs[1]);
  if (kept_.size == 0 || reduced_.size == 0) return;
  stream_ = static_cast<size_t>(kept_.size * reduced_.size) * item_size_ > stream_threshold();

  bool contiguous_rows =
      reduced_.shape.empty() ||
      (reduced_.shape.size() == 1 && reduced_.strides[0][0] == 1 && reduced_.strides[1][0] == 1);
  bool contiguous_columns = !kept_.shape.empty() && kept_.strides[0].back() == 1 &&
                            kept_.strides[1].back() == 1 && kept_.shape.back() >= 8;
  int64_t unit_elements = reduced_.size;
  units_ = kept_.size;
  if (contiguous_rows) {
    path_ = Path::rows;
  } else if (contiguous_columns) {
    path_ = Path::columns;
    int64_t inner = kept_.shape.back();
    column_blocks_ = (inner + simd::softmax_columns - 1) / simd::softmax_columns;
    units_ = kept_.size / inner * column_blocks_;
    unit_elements *= std::min(inner, simd::softmax_columns);
  } else {
    row_input_ = reduced_.view(0);
    row_output_ = reduced_.view(1);
  }
  units_per_task_ = std::max<int64_t>(1, softmax_task_elements / unit_elements);
  tasks_ = (units_ + units_per_task_ - 1) / units_per_task_;
}

void SoftmaxPlan::run(int64_t task, const void* input, void* output) const noexcept {
  int64_t begin = task * units_per_task_;
  int64_t end = std::min(units_, begin + units_per_task_);
  const auto* from = static_cast<const char*>(input);
  auto* to = static_cast<char*>(output);
  switch (path_) {
    case Path::rows:
      run_rows(begin, end, from, to);
      break;
    case Path::columns:
      run_columns(begin, end, from, to);
      break;
    case Path::strided:
      run_strided(begin, end, from, to);
      break;
  }
}

void SoftmaxPlan::run_rows(int64_t begin, int64_t end, const char* input, char* output) const {
  const simd::SoftmaxKernels& kernels = simd::softmax_kernels();
  const simd::SoftmaxKernel& kernel = *kernels.find(dtype_);
  auto item = static_cast<int64_t>(item_size_);
  int64_t length = reduced_.size;
  // Rows that follow each other at one distance.
  int64_t inner = kept_.shape.empty() ? 1 : kept_.shape.back();
  for (int64_t i = begin; i < end;) {
    int64_t count = std::min(end - i, inner - i % inner);
    const char* from = input + offset_at(kept_.shape, kept_.strides[0], i) * item;
    char* to = output + offset_at(kept_.shape, kept_.strides[1], i) * item;
    i += count;
    if (length <= simd::softmax_row_limit) {
      int64_t stride = kept_.shape.empty() ? 0 : kept_.strides[0].back();
      kernel.rows({from, stride, to, length, length, count, stream_});
      continue;
    }
    for (; count > 0; --count) {
      double maximum = kernel.maximum(from, length, -std::numeric_limits<double>::infinity());
      double sum = kernel.sum(from, length, maximum);
      kernel.write(from, length, maximum, sum, to);
      if (count > 1) from += kept_.strides[0].back() * item;
      to += length * item;
    }
  }
  if (stream_) kernels.finish();
}

void SoftmaxPlan::run_columns(int64_t begin, int64_t end, const char* input, char* output) const {
  const simd::SoftmaxKernel& kernel = *simd::softmax_kernels().find(dtype_);
  auto item = static_cast<int64_t>(item_size_);
  int64_t inner = kept_.shape.back();
  alignas(64) double maxima[simd::softmax_columns], sums[simd::softmax_columns];
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t column = unit % column_blocks_ * simd::softmax_columns;
    int64_t count = std::min(simd::softmax_columns, inner - column);
    int64_t position = unit / column_blocks_ * inner + column;
    const char* from = input + offset_at(kept_.shape, kept_.strides[0], position) * item;
    char* to = output + offset_at(kept_.shape, kept_.strides[1], position) * item;
    kernel.column_start(count, maxima, sums);
    Odometer first(reduced_.shape, reduced_.strides[0], 0);
    for (int64_t r = 0; r < reduced_.size; ++r, first.advance(1)) {
      kernel.column_maximum(from + first.offset() * item, count, maxima);
    }
    Odometer second(reduced_.shape, reduced_.strides[0], 0);
    for (int64_t r = 0; r < reduced_.size; ++r, second.advance(1)) {
      kernel.column_sum(from + second.offset() * item, count, maxima, sums);
    }
    Odometer third(reduced_.shape, reduced_.strides[0], 0);
    Odometer out(reduced_.shape, reduced_.strides[1], 0);
    for (int64_t r = 0; r < reduced_.size; ++r, third.advance(1), out.advance(1)) {
      kernel.column_write(from + third.offset() * item, count, maxima, sums,
                          to + out.offset() * item);
    }
  }
}

void SoftmaxPlan::run_strided(int64_t begin, int64_t end, const char* input, char* output) const {
  const simd::SoftmaxKernel& kernel = *simd::softmax_kernels().find(dtype_);
  auto item = static_cast<int64_t>(item_size_);
  alignas(64) char staged[staged_elements * sizeof(double)];
  auto for_each_piece = [&](const char* from, auto&& use) {
    for (int64_t i = 0; i < reduced_.size; i += staged_elements) {
      int64_t stop = std::min(reduced_.size, i + staged_elements);
      gather_range(from, row_input_, item_size_, i, stop, staged);
      use(i, stop);
    }
  };
  for (int64_t unit = begin; unit < end; ++unit) {
    const char* from = input + offset_at(kept_.shape, kept_.strides[0], unit) * item;
    char* to = output + offset_at(kept_.shape, kept_.strides[1], unit) * item;
    double maximum = -std::numeric_limits<double>::infinity();
    double sum = 0;
    for_each_piece(from, [&](int64_t i, int64_t stop) {
      maximum = kernel.maximum(staged, stop - i, maximum);
    });
    for_each_piece(from,
                   [&](int64_t i, int64_t stop) { sum += kernel.sum(staged, stop - i, maximum); });
    for_each_piece(from, [&](int64_t i, int64_t stop) {
      kernel.write(staged, stop - i, maximum, sum, staged);
      scatter_range(staged, row_output_, item_size_, i, stop, to);
    });
  }
}

}  // namespace holdfast::kernels::cpu
