// Low-bit weights: how they are packed, and how they become numbers again.
#pragma once

#include <cstddef>
#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/plan/quantization.h"

namespace holdfast::kernels::cpu {

// e4m3 without infinities; what is too large becomes 448.
uint8_t to_e4m3(float value);
float from_e4m3(uint8_t code);

// `count` elements (whole groups) of a row. Scales and biases: float, to be rounded by the caller,
// or bytes for the floating formats. `global_scale` of nvfp4: 0 for none.
void quantize_row(const QuantizedFormat& format, const float* from, int64_t count, uint8_t* codes,
                  float* scales, float* biases, uint8_t* scale_bytes, float global_scale);

// A quantised matrix [rows, columns] with groups along its rows.
struct QuantizedMatrix {
  const void* codes;
  const void* scales;
  const void* biases;  // affine only
};

// x times quantised matrices, possibly chosen by index: for each batch b
//   out[b] = x[left[b]] w[right[b]]^T   (or w[right[b]] when not transposed).
// x: [?, m, k] dense; w: [?, n, k] (or [?, k, n]); out: [batch, m, n]; dtype: float32, float16 or
// bfloat16, also of affine scales. Few rows multiply float32; many rows round the weights to the
// dtype first.
class QuantizedProductPlan {
 public:
  QuantizedProductPlan(Dtype::Val dtype, const QuantizedFormat& format, bool transposed,
                       int64_t batch, int64_t m, int64_t n, int64_t k, int64_t left_count,
                       int64_t right_count);

  int64_t tasks() const { return tasks_; }
  size_t task_scratch_bytes() const { return scratch_bytes_; }
  // Few rows are brought into another form first: so many bytes each of the left_count matrices x,
  // or none at all.
  int64_t prepared_bytes() const { return prepared_bytes_; }
  void prepare(int64_t begin, int64_t end, const void* x, void* prepared) const;
  // Tasks [begin, end) one after the other. `x`: prepared, where it has to be. `left`, `right`:
  // indices per batch, or null for b modulo the count. Throws std::out_of_range for one beyond the
  // count.
  void run(int64_t begin, int64_t end, const void* x, const QuantizedMatrix& w,
           const uint32_t* left, const uint32_t* right, void* out, void* task_scratch) const;

 private:
  void run_few(const char* x, const QuantizedMatrix& w, int64_t first, int64_t count, char* out,
               void* scratch) const;
  void run_many(const char* x, const QuantizedMatrix& w, int64_t row, int64_t rows, int64_t first,
                int64_t count, char* out, void* scratch) const;

  Dtype::Val dtype_;
  int64_t item_;
  QuantizedFormat format_;
  bool transposed_;
  int64_t m_, n_, k_, left_count_, right_count_;
  bool few_;
  bool vectors_;  // rows of x are prepared for dot_vector
  int64_t prepared_bytes_ = 0, row_floats_ = 0;
  int64_t tile_rows_ = 0, tile_columns_ = 0, row_tiles_ = 0, column_tiles_ = 0;
  int64_t tasks_ = 0;
  size_t scratch_bytes_ = 0, stage_bytes_ = 0;
};

}  // namespace holdfast::kernels::cpu
