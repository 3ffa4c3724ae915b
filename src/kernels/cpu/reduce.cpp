#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(ReduceSumKernels, reduce_sum_kernels)
HOLDFAST_SIMD_TABLE(ReduceOrderKernels, reduce_order_kernels)
HOLDFAST_SIMD_TABLE(ReduceArgKernels, reduce_arg_kernels)

namespace holdfast::kernels::cpu {
namespace {

// All of these shape the result's bits: they depend on nothing but the shape.
constexpr int64_t reduce_task_elements = int64_t{128} << 10;  // what one task should at least read
constexpr int64_t enough_tasks = 64;        // from here on outputs alone are enough to share
constexpr int64_t max_columns = 4096;       // states of one task's columns stay in the cache
constexpr int64_t combined_columns = 512;   // partial results come from other cores' caches: share
constexpr int64_t staged_bytes = 16 << 10;  // a strided piece made dense, on the stack

// The states of one task's outputs, on the stack where they are few.
constexpr size_t max_state_bytes = 16;

}  // namespace

const simd::ReduceKernel& reduce_kernel(ReduceOp op, Dtype::Val input, Dtype::Val output) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
      return *simd::reduce_sum_kernels().find(op, input, output != input);
    case ReduceOp::argmin:
    case ReduceOp::argmax:
      return *simd::reduce_arg_kernels().find(op, input);
    default:
      return *simd::reduce_order_kernels().find(op, input);
  }
}

ReducePlan::ReducePlan(ReduceOp op, Dtype::Val input, Dtype::Val output,
                       std::span<const int32_t> shape, std::span<const int64_t> strides,
                       std::span<const int> axes)
    : kernel_(&reduce_kernel(op, input, output)),
      item_size_(item_size(input)),
      output_item_size_(item_size(output)),
      layout_(reduced_layout(op, shape, strides, axes)),
      columns_(layout_.has_columns()) {
  if (layout_.kept.size == 0) return;  // no output: no tasks
  if (columns_) {
    plan_columns();
  } else {
    plan_rows();
  }
}

void ReducePlan::plan_rows() {
  int64_t length = layout_.reduced.size;
  outputs_per_task_ = std::max<int64_t>(1, reduce_task_elements / std::max<int64_t>(1, length));
  chunk_ = length;
  if (length >= 2 * reduce_task_elements && layout_.kept.size < enough_tasks) {
    chunk_ = reduce_task_elements;
    chunks_ = divide_up(length, chunk_);
    outputs_per_task_ = 1;
  }
  first_tasks_ = divide_up(layout_.kept.size, outputs_per_task_) * chunks_;
  if (chunks_ > 1) {
    combine_tasks_ = 1;  // fewer than enough_tasks outputs
    scratch_bytes_ = static_cast<size_t>(layout_.kept.size * chunks_) * kernel_->state_size;
  }
}

void ReducePlan::plan_columns() {
  int64_t inner = layout_.kept.shape.back();
  int64_t outer = layout_.kept.size / inner;
  int64_t length = layout_.reduced.size;
  columns_per_task_ = std::min(inner, max_columns);
  column_blocks_ = divide_up(inner, columns_per_task_);
  chunk_ = length;
  if (outer * column_blocks_ < enough_tasks &&
      length * columns_per_task_ >= 2 * reduce_task_elements) {
    // At least as many rows as make a task worth while, and few enough partial results.
    int64_t rows = std::max<int64_t>(256, divide_up(reduce_task_elements, columns_per_task_));
    chunk_ = std::min(length, divide_up(rows, 8) * 8);
    chunks_ = divide_up(length, chunk_);
  }
  first_tasks_ = outer * column_blocks_ * chunks_;
  if (chunks_ > 1) {
    combine_tasks_ = divide_up(layout_.kept.size, combined_columns);
    scratch_bytes_ = static_cast<size_t>(layout_.kept.size * chunks_) * kernel_->state_size;
  }
}

// Adds positions [begin, end) of the reduced layout to one state.
void ReducePlan::reduce_one(const char* base, int64_t begin, int64_t end, void* state) const {
  if (layout_.reduced.shape.empty() || layout_.reduced.strides.back() == 1) {
    Odometer at(layout_.reduced, begin);
    for (int64_t i = begin; i < end;) {
      int64_t count = std::min(at.run(), end - i);
      const char* from = base + at.offset() * static_cast<int64_t>(item_size_);
      int64_t rows = 1, stride = 0;
      size_t dimensions = layout_.reduced.shape.size();
      if (dimensions >= 2 && count == layout_.reduced.shape.back()) {
        // Whole rows of the two innermost dimensions go in one call.
        int64_t row = i / count % layout_.reduced.shape[dimensions - 2];
        rows = std::min((end - i) / count, layout_.reduced.shape[dimensions - 2] - row);
        stride = layout_.reduced.strides[dimensions - 2];
      }
      kernel_->rows_to_one(from, rows, stride, count, i, state);
      for (int64_t r = 0; r < rows; ++r) at.advance(count);
      i += rows * count;
    }
    return;
  }
  alignas(64) char staged[staged_bytes];
  int64_t step = staged_bytes / static_cast<int64_t>(item_size_);
  for (int64_t i = begin; i < end; i += step) {
    int64_t count = std::min(step, end - i);
    gather_range(base, layout_.reduced, item_size_, i, i + count, staged);
    kernel_->rows_to_one(staged, 1, 0, count, i, state);
  }
}

void ReducePlan::run_rows(int64_t task, const char* input, char* output, char* scratch) const {
  if (chunks_ > 1) {
    int64_t chunk = task % chunks_;
    int64_t first = task / chunks_;
    const char* base = input + offset_at(layout_.kept, first) * static_cast<int64_t>(item_size_);
    char* state = scratch + static_cast<size_t>(task) * kernel_->state_size;
    kernel_->initialise(state, 1);
    reduce_one(base, chunk * chunk_, std::min(layout_.reduced.size, (chunk + 1) * chunk_), state);
    return;
  }
  constexpr int64_t batch = 256;
  alignas(64) char states[batch * max_state_bytes];
  int64_t begin = task * outputs_per_task_;
  int64_t end = std::min(layout_.kept.size, begin + outputs_per_task_);
  bool plain = layout_.reduced.shape.empty() ||
               (layout_.reduced.shape.size() == 1 && layout_.reduced.strides[0] == 1);
  int64_t kept_stride = layout_.kept.strides.empty() ? 0 : layout_.kept.strides.back();
  Odometer at(layout_.kept, begin);
  for (int64_t i = begin; i < end;) {
    int64_t count = std::min({batch, at.run(), end - i});
    const char* base = input + at.offset() * static_cast<int64_t>(item_size_);
    kernel_->initialise(states, count);
    if (plain) {
      kernel_->rows(base, count, kept_stride, layout_.reduced.size, 0, states);
    } else {
      for (int64_t j = 0; j < count; ++j) {
        reduce_one(base + j * kept_stride * static_cast<int64_t>(item_size_), 0,
                   layout_.reduced.size, states + static_cast<size_t>(j) * kernel_->state_size);
      }
    }
    kernel_->finish(states, count, output + static_cast<size_t>(i) * output_item_size_);
    at.advance(count);
    i += count;
  }
}

void ReducePlan::run_columns(int64_t task, const char* input, char* output, char* scratch) const {
  int64_t chunk = task % chunks_;
  int64_t block = task / chunks_ % column_blocks_;
  int64_t outer = task / chunks_ / column_blocks_;
  int64_t inner = layout_.kept.shape.back();
  int64_t inner_stride = layout_.kept.strides.back();
  int64_t first_column = block * columns_per_task_;
  int64_t columns = std::min(columns_per_task_, inner - first_column);
  int64_t first_output = outer * inner + first_column;
  int64_t begin = chunk * chunk_;
  int64_t end = std::min(layout_.reduced.size, begin + chunk_);
  auto item = static_cast<int64_t>(item_size_);
  const char* base = input + offset_at(layout_.kept, first_output) * item;

  alignas(64) char own_states[max_columns * max_state_bytes];
  char* states = chunks_ > 1
                     ? scratch + static_cast<size_t>(chunk * layout_.kept.size + first_output) *
                                     kernel_->state_size
                     : own_states;
  kernel_->initialise(states, columns);
  if (inner_stride == 1) {
    int64_t row_stride = layout_.reduced.strides.back();
    Odometer at(layout_.reduced, begin);
    for (int64_t i = begin; i < end;) {
      int64_t rows = std::min(at.run(), end - i);
      kernel_->columns(base + at.offset() * item, rows, row_stride, columns, i, states);
      at.advance(rows);
      i += rows;
    }
  } else {
    // Pieces of the strided matrix made dense: [rows, width] at a time.
    alignas(64) char staged[staged_bytes];
    int64_t most = staged_bytes / item;
    int64_t width = std::min<int64_t>(columns, most / 8);
    int64_t rows_per_piece = most / width;
    const CollapsedLayout line{inner, {inner}, {inner_stride}};
    for (int64_t c = 0; c < columns; c += width) {
      int64_t count = std::min(width, columns - c);
      Odometer at(layout_.reduced, begin);
      for (int64_t i = begin; i < end;) {
        int64_t rows = std::min(rows_per_piece, end - i);
        for (int64_t r = 0; r < rows; ++r) {
          gather_range(base + at.offset() * item, line, item_size_, c, c + count,
                       staged + r * count * item);
          at.advance(1);
        }
        kernel_->columns(staged, rows, count, count, i,
                         states + static_cast<size_t>(c) * kernel_->state_size);
        i += rows;
      }
    }
  }
  if (chunks_ == 1) {
    kernel_->finish(states, columns,
                    output + static_cast<size_t>(first_output) * output_item_size_);
  }
}

void ReducePlan::run_combine(int64_t task, char* output, char* scratch) const {
  size_t size = kernel_->state_size;
  if (!columns_) {
    // scratch[output][chunk]
    for (int64_t i = 0; i < layout_.kept.size; ++i) {
      char* states = scratch + static_cast<size_t>(i * chunks_) * size;
      for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
        kernel_->combine(states + static_cast<size_t>(chunk) * size, 1, states);
      }
      kernel_->finish(states, 1, output + static_cast<size_t>(i) * output_item_size_);
    }
    return;
  }
  // scratch[chunk][output]
  int64_t begin = task * combined_columns;
  int64_t count = std::min(combined_columns, layout_.kept.size - begin);
  char* into = scratch + static_cast<size_t>(begin) * size;
  for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
    kernel_->combine(into + static_cast<size_t>(chunk * layout_.kept.size) * size, count, into);
  }
  kernel_->finish(into, count, output + static_cast<size_t>(begin) * output_item_size_);
}

void ReducePlan::run(int stage, int64_t task, const void* input, void* output,
                     void* scratch) const noexcept {
  // An input without elements has no address. Nothing is read from this one.
  alignas(64) static const char nothing[64] = {};
  if (!input) input = nothing;
  const char* from =
      static_cast<const char*>(input) + layout_.base * static_cast<int64_t>(item_size_);
  auto* to = static_cast<char*>(output);
  auto* partial = static_cast<char*>(scratch);
  if (stage == 1) {
    run_combine(task, to, partial);
  } else if (columns_) {
    run_columns(task, from, to, partial);
  } else {
    run_rows(task, from, to, partial);
  }
}

}  // namespace holdfast::kernels::cpu
