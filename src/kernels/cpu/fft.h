// Fourier transforms of rows of any length.
//
// Lengths whose prime factors are at most 13 go through stages of those radices; others become a
// convolution of a length that is a power of two (Bluestein). An even number of real elements is
// transformed as half as many complex ones.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/plan/fft.h"

namespace holdfast::kernels::cpu {

class FftPlan {
 public:
  explicit FftPlan(int64_t length);
  // For rows of 2 * `half` real elements: a plan of length `half` with what folds its transform.
  static std::unique_ptr<FftPlan> of_real(int64_t half);

  // Complex elements of a row.
  int64_t length() const { return length_; }
  bool is_real() const { return !fold_real_.empty(); }
  // Rows that are best transformed together: side by side they fill vectors in every stage.
  int64_t rows_at_once() const;
  // Floats of scratch for a row, beside the data.
  int64_t scratch_floats() const;
  // Floats that transform_rows() needs for a row.
  int64_t row_floats() const;
  // Transforms `rows` rows in place (forward, not scaled). Element i of row r is at i * rows + r;
  // real and imaginary parts are apart.
  void run(float* real, float* imag, float* scratch, int64_t rows) const noexcept;
  // See FftKernels::fold.
  void fold(float* real, float* imag, int64_t rows, float sign) const noexcept;

 private:
  struct Stage {
    int64_t radix, groups, stride;
    std::vector<float> twiddle_real, twiddle_imag, root_real, root_imag;
  };
  void run_stages(float* real, float* imag, float* scratch, int64_t rows) const;
  void run_chirp(float* real, float* imag, float* scratch, int64_t rows) const;

  int64_t length_;
  std::vector<Stage> stages_;
  // Bluestein: the chirp, and the transform of its mirror image.
  std::unique_ptr<FftPlan> convolution_;
  std::vector<float> chirp_real_, chirp_imag_, filter_real_, filter_imag_;
  // Real rows: exp(-pi i k / length) for k <= length / 2.
  std::vector<float> fold_real_, fold_imag_;
};

// A plan of that length, of_real() or not: one of those used last, which are kept (their lengths
// add up to a few million at most), or a new one.
std::shared_ptr<const FftPlan> fft_plan(int64_t length, bool of_real);

// Rows. Inputs shorter than they should be are padded with zeros, longer ones cut.
struct FftRows {
  FftKind kind;
  bool inverse;
  float scale;
  const void* input;     // complex64, float32 for to_half
  int64_t input_length;  // elements there
  void* output;          // complex64 [n], [n / 2 + 1] for to_half, float32 [n] for from_half
  int64_t count;         // of rows
  int64_t input_stride;  // bytes from row to row; those of the output follow each other
};
// Even n: from_half needs a plan of_real(), to_half one if its input can be read in pairs (of even
// length, and aligned to 8 bytes). `scratch`: row_floats() for each row.
void transform_rows(const FftPlan& plan, const FftRows& rows, float* scratch);

}  // namespace holdfast::kernels::cpu
