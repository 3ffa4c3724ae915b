#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/cpu/quantization.h"
#include "kernels/cpu/simd/matmul_kernels.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/simd/target_table.h"
#include "kernels/plan/layout.h"

HOLDFAST_SIMD_TABLE(QuantizedKernels, quantized_kernels)

namespace holdfast::kernels::cpu {

namespace {

constexpr int64_t few_rows = 6;  // up to here each weight is made once and used at once
constexpr int64_t fewest_columns = 16, most_columns = 64;  // of a task with few rows
constexpr int64_t usual_quantized_tasks = 128;
constexpr int64_t shared_weights = 32;  // rows of them
constexpr int64_t largest_quantized_rows = 256;
constexpr int64_t largest_quantized_columns =
    128;                        // whole groups when the matrix is not transposed
constexpr int64_t piece = 512;  // elements made at once; whole groups

}  // namespace

QuantizedProductPlan::QuantizedProductPlan(Dtype::Val dtype, const QuantizedFormat& format,
                                           bool transposed, int64_t batch, int64_t m, int64_t n,
                                           int64_t k, int64_t left_count, int64_t right_count)
    : dtype_(dtype),
      item_(static_cast<int64_t>(item_size(dtype))),
      format_(format),
      transposed_(transposed),
      m_(m),
      n_(n),
      k_(k),
      left_count_(left_count),
      right_count_(right_count),
      few_(m <= few_rows || k == 0),
      vectors_(few_ && transposed && k % 128 == 0 && dtype != Dtype::Val::float32 &&
               format.mode == QuantizationMode::affine && format.bits == 4 &&
               simd::quantized_kernels().dot_vector != nullptr) {
  if (batch == 0 || m == 0 || n == 0) return;
  auto bytes = [](int64_t count) { return static_cast<size_t>(count) * sizeof(float); };
  if (few_) {
    tile_rows_ = m;
    tile_columns_ =
        transposed ? std::clamp(n / usual_quantized_tasks / 4 * 4, fewest_columns, most_columns)
                   : piece;
    row_floats_ = vectors_ ? simd::prepared_floats(k, format.group_size) : k;
    prepared_bytes_ = divide_up(m * row_floats_, 16) * 64;
    // A piece of weights; then sums.
    scratch_bytes_ = bytes(piece + m * piece);
  } else {
    tile_rows_ = std::min(m, largest_quantized_rows);
    tile_columns_ = std::min(n, largest_quantized_columns);
    int64_t depth = std::min(simd::matmul_largest_depth, divide_up(k, 128) * 128);
    stage_bytes_ = static_cast<size_t>(
        divide_up(depth * divide_up(tile_columns_, 128) * 128 * item_, 64) * 64);
    scratch_bytes_ = stage_bytes_ + simd::matmul_kernels().scratch_bytes(
                                        dtype, tile_rows_, tile_columns_, std::max<int64_t>(1, k));
  }
  row_tiles_ = divide_up(m, tile_rows_);
  column_tiles_ = divide_up(n, tile_columns_);
  tasks_ = batch * row_tiles_ * column_tiles_;
}

void QuantizedProductPlan::prepare(int64_t begin, int64_t end, const void* x,
                                   void* prepared) const {
  const simd::QuantizedKernels& kernels = simd::quantized_kernels();
  for (int64_t left = begin; left < end; ++left) {
    const char* from = static_cast<const char*>(x) + left * m_ * k_ * item_;
    auto* to = reinterpret_cast<float*>(static_cast<char*>(prepared) + left * prepared_bytes_);
    if (!vectors_) kernels.widen(dtype_, from, m_ * k_, to);
    for (int64_t r = 0; vectors_ && r < m_; ++r) {
      kernels.prepare_vector(dtype_, from + r * k_ * item_, k_, format_.group_size,
                             to + r * row_floats_);
    }
  }
}

void QuantizedProductPlan::run(int64_t begin, int64_t end, const void* x, const QuantizedMatrix& w,
                               const uint32_t* left, const uint32_t* right, void* out,
                               void* task_scratch) const {
  int64_t tiles = row_tiles_ * column_tiles_;
  auto index_of = [](const uint32_t* indices, int64_t batch, int64_t count, const char* name) {
    int64_t index = indices != nullptr ? static_cast<int64_t>(indices[batch]) : batch % count;
    if (index >= count) {
      throw std::out_of_range(std::string("[gather_qmm] expected ") + name + " below " +
                              std::to_string(count) + ", got " + std::to_string(index));
    }
    return index;
  };
  int64_t scale_item = format_.mode == QuantizationMode::affine ? item_ : 1;
  const int64_t left_bytes = few_ ? prepared_bytes_ : m_ * k_ * item_;
  int64_t together = 1;
  for (int64_t task = begin; task < end; task += together) {
    int64_t batch = task / tiles, tile = task % tiles;
    // Neighbouring columns are as good as one task, which reads on without a pause.
    if (few_) together = std::min({end - task, tiles - tile, piece / tile_columns_});
    int64_t left_index = index_of(left, batch, left_count_, "lhs_indices");
    int64_t right_index = index_of(right, batch, right_count_, "rhs_indices");
    int64_t elements = n_ * k_ * right_index;
    int64_t groups = elements / format_.group_size;
    QuantizedMatrix matrix{
        static_cast<const char*>(w.codes) + format_.packed_bytes(elements),
        static_cast<const char*>(w.scales) + groups * scale_item,
        w.biases == nullptr ? nullptr : static_cast<const char*>(w.biases) + groups * scale_item};
    const char* from = static_cast<const char*>(x) + left_index * left_bytes;
    char* to = static_cast<char*>(out) + batch * m_ * n_ * item_;
    int64_t row = tile / column_tiles_ * tile_rows_, column = tile % column_tiles_ * tile_columns_;
    int64_t rows = std::min(tile_rows_, m_ - row);
    int64_t columns = std::min(together * tile_columns_, n_ - column);
    if (few_) {
      run_few(from, matrix, column, columns, to, task_scratch);
    } else {
      run_many(from, matrix, row, rows, column, columns, to, task_scratch);
    }
  }
}

void QuantizedProductPlan::run_few(const char* x, const QuantizedMatrix& w, int64_t first,
                                   int64_t count, char* out, void* scratch) const {
  const simd::QuantizedKernels& kernels = simd::quantized_kernels();
  auto* made = static_cast<float*>(scratch);
  float* sums = made + piece;
  int64_t scale_item = format_.mode == QuantizationMode::affine ? item_ : 1;
  auto row_at = [&](int64_t element) {
    int64_t group = element / format_.group_size * scale_item;
    return simd::QuantizedRow{
        static_cast<const char*>(w.codes) + format_.packed_bytes(element),
        static_cast<const char*>(w.scales) + group,
        w.biases == nullptr ? nullptr : static_cast<const char*>(w.biases) + group};
  };
  const auto* wide = reinterpret_cast<const float*>(x);
  // The products of column n with some rows of x, which lie `row_floats_` apart.
  auto dot_column = [&](int64_t n, const float* x_rows, int64_t rows, float* to) {
    simd::QuantizedRow row = row_at(n * k_);
    for (int64_t r = 0; r < rows; ++r) to[r] = 0;
    for (int64_t k = 0; k < k_; k += piece) {
      int64_t depth = std::min(piece, k_ - k);
      kernels.dequantize(format_, dtype_, row, k, depth, Dtype::Val::float32, made);
      for (int64_t r = 0; r < rows; ++r) {
        to[r] += kernels.dot(made, x_rows + r * row_floats_ + k, depth);
      }
    }
  };
  if (vectors_) {
    // Weights that several rows of x meet stay in the cache until all have; one reads on and on.
    const int64_t step = m_ == 1 ? count : std::min(count, shared_weights);
    for (int64_t n = first; n < first + count; n += step) {
      int64_t some = std::min(step, first + count - n);
      for (int64_t r = 0; r < m_; ++r) {
        const float* row = wide + r * row_floats_;
        if (simd::has_digits(row)) {
          kernels.dot_vector(dtype_, row, k_, format_.group_size, row_at(n * k_), some, sums);
        } else {
          row = simd::prepared_elements(row, k_, format_.group_size);
          for (int64_t i = 0; i < some; ++i) dot_column(n + i, row, 1, sums + i);
        }
        kernels.narrow(dtype_, sums, some, out + (r * n_ + n) * item_);
      }
    }
  } else if (transposed_) {
    for (int64_t n = first; n < first + count; ++n) {
      dot_column(n, wide, m_, sums);
      for (int64_t r = 0; r < m_; ++r) {
        kernels.narrow(dtype_, sums + r, 1, out + (r * n_ + n) * item_);
      }
    }
  } else {
    std::fill_n(sums, m_ * piece, 0.0f);
    for (int64_t k = 0; k < k_; ++k) {
      kernels.dequantize(format_, dtype_, row_at(k * n_), first, count, Dtype::Val::float32, made);
      for (int64_t r = 0; r < m_; ++r) {
        kernels.add_scaled(wide[r * k_ + k], made, count, sums + r * piece);
      }
    }
    for (int64_t r = 0; r < m_; ++r) {
      kernels.narrow(dtype_, sums + r * piece, count, out + (r * n_ + first) * item_);
    }
  }
}

void QuantizedProductPlan::run_many(const char* x, const QuantizedMatrix& w, int64_t row,
                                    int64_t rows, int64_t first, int64_t count, char* out,
                                    void* scratch) const {
  struct Stage {
    const QuantizedProductPlan& plan;
    const QuantizedMatrix& w;
    int64_t first;
    char* memory;
    int64_t stride;

    // Rows of the matrix that follow each other, from `from`: elements [start, start + length).
    void fill(int64_t from, int64_t row_count, int64_t row_length, int64_t start, int64_t length) {
      const QuantizedFormat& format = plan.format_;
      int64_t scale_item = format.mode == QuantizationMode::affine ? plan.item_ : 1;
      for (int64_t i = 0; i < row_count; ++i) {
        int64_t element = (from + i) * row_length;
        int64_t group = element / format.group_size * scale_item;
        simd::QuantizedRow line{
            static_cast<const char*>(w.codes) + format.packed_bytes(element),
            static_cast<const char*>(w.scales) + group,
            w.biases == nullptr ? nullptr : static_cast<const char*>(w.biases) + group};
        fetch_after(line, start + length, length, row_length);
        simd::quantized_kernels().dequantize(format, plan.dtype_, line, start, length, plan.dtype_,
                                             memory + i * stride * plan.item_);
      }
    }
    // Elements of the row from `start` on, which come next: rows lie too far apart to be foreseen.
    void fetch_after(const simd::QuantizedRow& row, int64_t start, int64_t length,
                     int64_t row_length) {
      length = std::min(length, row_length - start);
      const char* codes = static_cast<const char*>(row.codes) + plan.format_.packed_bytes(start);
      for (int64_t i = 0; i < plan.format_.packed_bytes(length); i += 64) {
        __builtin_prefetch(codes + i, 0, 2);
      }
    }
    static const void* block(void* context, int64_t k, int64_t depth, int64_t column,
                             int64_t columns) {
      auto& stage = *static_cast<Stage*>(context);
      if (stage.plan.transposed_) {
        stage.fill(stage.first + column, columns, stage.plan.k_, k, depth);
      } else {
        stage.fill(k, depth, stage.plan.n_, stage.first + column, columns);
      }
      return stage.memory;
    }
  };
  // [columns, depth] when transposed, else [depth, columns].
  int64_t stride = transposed_ ? simd::matmul_largest_depth : largest_quantized_columns;
  Stage stage{*this, w, first, static_cast<char*>(scratch), stride};
  stage.stride = transposed_ ? std::min(simd::matmul_largest_depth, divide_up(k_, 128) * 128)
                             : largest_quantized_columns;
  simd::MatmulTile tile{rows,
                        count,
                        k_,
                        x + row * k_ * item_,
                        k_,
                        1,
                        nullptr,
                        transposed_ ? 1 : stage.stride,
                        transposed_ ? stage.stride : 1,
                        out + (row * n_ + first) * item_,
                        n_,
                        static_cast<char*>(scratch) + stage_bytes_};
  tile.context = &stage;
  tile.b_block = Stage::block;
  simd::matmul_kernels().tile(dtype_, tile);
}

}  // namespace holdfast::kernels::cpu
