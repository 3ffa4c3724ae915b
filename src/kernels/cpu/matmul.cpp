#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/simd/matmul_kernels.h"
#include "kernels/cpu/simd/target_table.h"
#include "kernels/plan/layout.h"

HOLDFAST_SIMD_TABLE(MatmulKernels, matmul_kernels)

namespace holdfast::kernels::cpu {
namespace {

constexpr int64_t largest_rows =
    504;  // a multiple of every instruction set's register block (14, 6, 4)
constexpr int64_t largest_columns = 1024;
constexpr int64_t largest_staged = 252;  // where C itself needs scratch
constexpr int64_t wanted_tiles = 16;     // smaller tiles pack more: no more than sharing needs
constexpr int64_t smallest_work = int64_t{1} << 24;  // multiplications worth a task
constexpr int64_t vector_work = int64_t{1} << 17;
constexpr int64_t usual_parts = 64;  // tasks that threads can share evenly

// `extent` in `pieces` parts, each a multiple of `unit`.
int64_t piece_of(int64_t extent, int64_t pieces, int64_t unit) {
  return std::max(unit, divide_up(divide_up(extent, pieces), unit) * unit);
}

}  // namespace

MatmulPlan::MatmulPlan(Dtype::Val dtype, std::span<const int32_t> batch_shape, int64_t m, int64_t n,
                       int64_t k, const MatrixStack& a, const MatrixStack& b, bool in_parts,
                       bool widens)
    : dtype_(dtype),
      c_dtype_(widens && item_size(dtype) == 2 ? Dtype::Val::float32 : dtype),
      item_size_(item_size(dtype)),
      c_item_size_(item_size(c_dtype_)),
      m_(m),
      n_(n),
      k_(k),
      a_row_stride_(a.row_stride),
      a_column_stride_(a.column_stride),
      b_row_stride_(b.row_stride),
      b_column_stride_(b.column_stride) {
  std::span<const int64_t> lists[] = {a.batch_strides, b.batch_strides};
  batch_ = collapse_jointly(batch_shape, lists);
  if (batch_.size == 0 || m == 0 || n == 0) return;
  if (dtype != Dtype::Val::complex64) {
    // The matrix's strides along its outputs and along the depth.
    bool by_row = n == 1;  // A times a column
    int64_t along = by_row ? a_row_stride_ : b_column_stride_;
    int64_t depth = by_row ? a_column_stride_ : b_row_stride_;
    vector_ = (m == 1 || n == 1) && (along == 1 || depth == 1);
  }
  if (vector_) {
    plan_vector(in_parts);
  } else {
    plan_tiles();
  }
  int64_t tiles = row_tiles_ * column_tiles_ * parts_;
  int64_t work = std::max<int64_t>(1, m * n * std::max<int64_t>(1, k));
  int64_t enough = vector_ ? vector_work : smallest_work / 16;
  if (tiles == 1) products_per_task_ = std::clamp<int64_t>(enough / work, 1, batch_.size);
  tasks_ = divide_up(batch_.size, products_per_task_) * tiles;
}

void MatmulPlan::plan_vector(bool in_parts) {
  int64_t outputs = m_ * n_, depth = std::max<int64_t>(1, k_);
  int64_t& tile = n_ == 1 ? tile_rows_ : tile_columns_;
  tile_rows_ = m_;
  tile_columns_ = n_;
  part_depth_ = k_;
  bool dots = n_ == 1 ? a_column_stride_ == 1 : b_row_stride_ == 1;
  if (dots) {
    tile = std::min(outputs, std::max<int64_t>(4, vector_work / depth));
  } else {
    tile = std::min(outputs, divide_up(divide_up(vector_work, depth), 512) * 512);
    if (in_parts && batch_.size * divide_up(outputs, tile) < usual_parts) {
      tile = std::min(outputs, simd::vector_outputs);
      part_depth_ = std::min(k_, divide_up(divide_up(4 * vector_work, tile), 8) * 8);
    }
  }
  row_tiles_ = divide_up(m_, tile_rows_);
  column_tiles_ = divide_up(n_, tile_columns_);
  parts_ = k_ == 0 ? 1 : divide_up(k_, part_depth_);
}

size_t MatmulPlan::part_bytes() const {
  if (parts_ == 1) return 0;
  return static_cast<size_t>(batch_.size * parts_ * m_ * n_) * std::max<size_t>(4, item_size_);
}

void MatmulPlan::add_parts(int64_t begin, int64_t end, const void* parts, void* c) const noexcept {
  int64_t outputs = m_ * n_;
  auto sum_item = std::max<int64_t>(4, static_cast<int64_t>(item_size_));
  for (int64_t product = begin; product < end; ++product) {
    simd::matmul_kernels().add_parts(
        c_dtype_, static_cast<const char*>(parts) + product * parts_ * outputs * sum_item, parts_,
        outputs, outputs,
        static_cast<char*>(c) + product * outputs * static_cast<int64_t>(c_item_size_));
  }
}

void MatmulPlan::plan_tiles() {
  bool staged = dtype_ != Dtype::Val::float32 && dtype_ != Dtype::Val::float64;
  int64_t most_rows = staged ? largest_staged : largest_rows;
  int64_t most_columns = staged ? largest_staged / 4 * 4 : largest_columns;
  row_tiles_ = divide_up(m_, most_rows);
  column_tiles_ = divide_up(n_, most_columns);
  auto size_tiles = [&] {
    tile_rows_ = std::min(m_, piece_of(m_, row_tiles_, 84));
    tile_columns_ = std::min(n_, piece_of(n_, column_tiles_, 64));
  };
  size_tiles();
  while (batch_.size * row_tiles_ * column_tiles_ < wanted_tiles &&
         tile_rows_ * tile_columns_ * k_ > 2 * smallest_work &&
         (tile_rows_ > 84 || tile_columns_ > 64)) {
    if (tile_columns_ >= tile_rows_) {
      column_tiles_ *= 2;
    } else {
      row_tiles_ *= 2;
    }
    size_tiles();
  }
  row_tiles_ = divide_up(m_, tile_rows_);
  column_tiles_ = divide_up(n_, tile_columns_);
  if (k_ > 0) {
    task_scratch_bytes_ =
        simd::matmul_kernels().scratch_bytes(dtype_, tile_rows_, tile_columns_, k_);
  }
}

void MatmulPlan::run_one(int64_t product, int64_t tile, const char* a, const char* b, char* c,
                         void* task_scratch) const {
  int64_t part = tile / (row_tiles_ * column_tiles_);
  tile %= row_tiles_ * column_tiles_;
  int64_t row = tile / column_tiles_ * tile_rows_;
  int64_t column = tile % column_tiles_ * tile_columns_;
  int64_t rows = std::min(tile_rows_, m_ - row);
  int64_t columns = std::min(tile_columns_, n_ - column);
  auto c_item = static_cast<int64_t>(c_item_size_);
  char* target = c + ((product * m_ + row) * n_ + column) * c_item;
  if (k_ == 0) {  // there is no memory of a and b
    for (int64_t r = 0; r < rows; ++r) {
      std::memset(target + r * n_ * c_item, 0, static_cast<size_t>(columns * c_item));
    }
    return;
  }
  auto item = static_cast<int64_t>(item_size_);
  a += (offset_at(batch_.shape, batch_.strides[0], product) + row * a_row_stride_) * item;
  b += (offset_at(batch_.shape, batch_.strides[1], product) + column * b_column_stride_) * item;
  if (parts_ > 1) {
    run_part(product, part, row + column, n_ == 1 ? rows : columns, a, b, c);
    return;
  }
  c = target;
  char* sums = nullptr;
  if (c_dtype_ != dtype_) std::swap(c, sums);
  if (vector_ && n_ == 1) {
    simd::matmul_kernels().matrix_vector(
        dtype_, {rows, k_, a, a_row_stride_, a_column_stride_, b, b_row_stride_, c, sums});
  } else if (vector_) {
    simd::matmul_kernels().matrix_vector(
        dtype_, {columns, k_, b, b_column_stride_, b_row_stride_, a, a_column_stride_, c, sums});
  } else {
    simd::matmul_kernels().tile(
        dtype_, {rows, columns, k_, a, a_row_stride_, a_column_stride_, b, b_row_stride_,
                 b_column_stride_, c, n_, task_scratch, sums});
  }
}

// Outputs of a vector product, from its part of the depth.
void MatmulPlan::run_part(int64_t product, int64_t part, int64_t first, int64_t outputs,
                          const char* a, const char* b, char* parts) const {
  auto item = static_cast<int64_t>(item_size_);
  int64_t start = part * part_depth_;
  a += start * a_column_stride_ * item;
  b += start * b_row_stride_ * item;
  bool by_row = n_ == 1;
  simd::MatrixVector some{outputs,
                          std::min(part_depth_, k_ - start),
                          by_row ? a : b,
                          1,
                          by_row ? a_column_stride_ : b_row_stride_,
                          by_row ? b : a,
                          by_row ? b_row_stride_ : a_column_stride_,
                          nullptr};
  some.sums = parts + ((product * parts_ + part) * m_ * n_ + first) * std::max<int64_t>(4, item);
  simd::matmul_kernels().matrix_vector(dtype_, some);
}

void MatmulPlan::run(int64_t task, const void* a, const void* b, void* c,
                     void* task_scratch) const noexcept {
  int64_t tiles = row_tiles_ * column_tiles_ * parts_;
  int64_t first = task / tiles * products_per_task_;
  int64_t last = std::min(batch_.size, first + products_per_task_);
  for (int64_t product = first; product < last; ++product) {
    run_one(product, task % tiles, static_cast<const char*>(a), static_cast<const char*>(b),
            static_cast<char*>(c), task_scratch);
  }
}

}  // namespace holdfast::kernels::cpu
