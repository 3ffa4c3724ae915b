// Fourier transforms of rows of any length.
//
// Lengths whose prime factors are at most 13 go through stages of those radices; others become a
// convolution of a length that is a power of two (Bluestein).
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace holdfast::cpu {

class FftPlan {
 public:
  explicit FftPlan(int64_t length);

  int64_t length() const { return length_; }
  // Floats of scratch, beside the data.
  int64_t scratch_floats() const;
  // Transforms in place (forward, not scaled); real and imaginary parts are apart.
  void run(float* real, float* imag, float* scratch) const noexcept;

 private:
  struct Stage {
    int64_t radix, groups, stride;
    std::vector<float> twiddle_real, twiddle_imag, root_real, root_imag;
  };
  void run_stages(float* real, float* imag, float* scratch) const;
  void run_chirp(float* real, float* imag, float* scratch) const;

  int64_t length_;
  std::vector<Stage> stages_;
  // Bluestein: the chirp, and the transform of its mirror image.
  std::unique_ptr<FftPlan> convolution_;
  std::vector<float> chirp_real_, chirp_imag_, filter_real_, filter_imag_;
};

enum class FftKind : uint8_t { complex, to_half, from_half };  // to_half: real input

// One row. Inputs shorter than they should be are padded with zeros, longer ones cut.
struct FftRow {
  FftKind kind;
  bool inverse;
  float scale;
  const void* input;     // complex64, float32 for to_half
  int64_t input_length;  // elements there
  void* output;          // complex64 [n], [n / 2 + 1] for to_half, float32 [n] for from_half
};
// `scratch`: 2 * length + scratch_floats() floats.
void transform_row(const FftPlan& plan, const FftRow& row, float* scratch) noexcept;

}  // namespace holdfast::cpu
