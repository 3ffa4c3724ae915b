#include "kernels/cpu/fft.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/simd/fft_kernels.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(FftKernels, fft_kernels)

namespace holdfast::cpu {
namespace {

constexpr double pi = 3.14159265358979323846;

// exp(-2 pi i k / n), exact in the multiples of a quarter.
std::complex<double> root(int64_t k, int64_t n) {
  double angle = -2 * pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

}  // namespace

FftPlan::FftPlan(int64_t length) : length_(length) {
  std::vector<int64_t> radices;
  int64_t rest = length;
  for (int64_t radix : {4, 2, 3, 5, 7, 11, 13}) {
    for (; rest > 1 && rest % radix == 0; rest /= radix) radices.push_back(radix);
  }
  if (rest > 1) {
    int64_t size = 1;
    while (size < 2 * length - 1) size *= 2;
    convolution_ = std::make_unique<FftPlan>(size);
    filter_real_.assign(static_cast<size_t>(size), 0.0f);
    filter_imag_.assign(static_cast<size_t>(size), 0.0f);
    for (int64_t k = 0; k < length; ++k) {
      // exp(-pi i k^2 / n); k^2 modulo 2 n keeps the angle small.
      std::complex<double> chirp = root(k * k % (2 * length), 2 * length);
      chirp_real_.push_back(static_cast<float>(chirp.real()));
      chirp_imag_.push_back(static_cast<float>(chirp.imag()));
      for (int64_t at : {k, (size - k) % size}) {
        filter_real_[static_cast<size_t>(at)] = static_cast<float>(chirp.real());
        filter_imag_[static_cast<size_t>(at)] = static_cast<float>(-chirp.imag());
      }
    }
    std::vector<float> scratch(static_cast<size_t>(convolution_->scratch_floats()));
    convolution_->run(filter_real_.data(), filter_imag_.data(), scratch.data());
    return;
  }
  int64_t left = length, stride = 1;
  for (int64_t radix : radices) {
    Stage stage{radix, left / radix, stride, {}, {}, {}, {}};
    for (int64_t p = 0; p < stage.groups; ++p) {
      for (int64_t v = 0; v < radix; ++v) {
        std::complex<double> w = root(p * v, left);
        stage.twiddle_real.push_back(static_cast<float>(w.real()));
        stage.twiddle_imag.push_back(static_cast<float>(w.imag()));
      }
    }
    for (int64_t j = 0; j < radix; ++j) {
      std::complex<double> w = root(j, radix);
      stage.root_real.push_back(static_cast<float>(w.real()));
      stage.root_imag.push_back(static_cast<float>(w.imag()));
    }
    stages_.push_back(std::move(stage));
    left /= radix;
    stride *= radix;
  }
}

int64_t FftPlan::scratch_floats() const {
  if (convolution_) return 2 * convolution_->length() + convolution_->scratch_floats();
  return 2 * length_;
}

void FftPlan::run(float* real, float* imag, float* scratch) const noexcept {
  if (convolution_) {
    run_chirp(real, imag, scratch);
  } else {
    run_stages(real, imag, scratch);
  }
}

void FftPlan::run_stages(float* real, float* imag, float* scratch) const {
  float *from_real = real, *from_imag = imag, *to_real = scratch, *to_imag = scratch + length_;
  for (const Stage& stage : stages_) {
    simd::fft_kernels().stage(
        {stage.radix, stage.groups, stage.stride, stage.twiddle_real.data(),
         stage.twiddle_imag.data(), stage.root_real.data(), stage.root_imag.data()},
        from_real, from_imag, to_real, to_imag);
    std::swap(from_real, to_real);
    std::swap(from_imag, to_imag);
  }
  if (from_real != real) {
    auto bytes = static_cast<size_t>(length_) * sizeof(float);
    std::memcpy(real, from_real, bytes);
    std::memcpy(imag, from_imag, bytes);
  }
}

void FftPlan::run_chirp(float* real, float* imag, float* scratch) const {
  int64_t size = convolution_->length();
  float *wide_real = scratch, *wide_imag = scratch + size, *rest = scratch + 2 * size;
  std::fill_n(scratch, 2 * size, 0.0f);
  auto n = static_cast<size_t>(length_);
  for (size_t k = 0; k < n; ++k) {
    wide_real[k] = real[k] * chirp_real_[k] - imag[k] * chirp_imag_[k];
    wide_imag[k] = real[k] * chirp_imag_[k] + imag[k] * chirp_real_[k];
  }
  convolution_->run(wide_real, wide_imag, rest);
  // Conjugated, so that a forward transform goes back.
  for (size_t k = 0; k < static_cast<size_t>(size); ++k) {
    float r = wide_real[k] * filter_real_[k] - wide_imag[k] * filter_imag_[k];
    float i = wide_real[k] * filter_imag_[k] + wide_imag[k] * filter_real_[k];
    wide_real[k] = r;
    wide_imag[k] = -i;
  }
  convolution_->run(wide_real, wide_imag, rest);
  float scale = 1.0f / static_cast<float>(size);
  for (size_t k = 0; k < n; ++k) {
    float r = wide_real[k] * scale, i = -wide_imag[k] * scale;
    real[k] = r * chirp_real_[k] - i * chirp_imag_[k];
    imag[k] = r * chirp_imag_[k] + i * chirp_real_[k];
  }
}

void transform_row(const FftPlan& plan, const FftRow& row, float* scratch) noexcept {
  int64_t n = plan.length();
  float *real = scratch, *imag = scratch + n;
  int64_t expected = row.kind == FftKind::from_half ? n / 2 + 1 : n;
  int64_t count = std::min(row.input_length, expected);
  const auto* from = static_cast<const float*>(row.input);
  for (int64_t i = 0; i < count; ++i) {
    real[i] = row.kind == FftKind::to_half ? from[i] : from[2 * i];
    imag[i] = row.kind == FftKind::to_half ? 0.0f : from[2 * i + 1];
  }
  for (int64_t i = count; i < expected; ++i) real[i] = imag[i] = 0;
  if (row.kind == FftKind::from_half) {
    // The other half mirrors this one; the imaginary parts of the ends do not count.
    imag[0] = 0;
    if (n % 2 == 0) imag[n / 2] = 0;
    for (int64_t i = expected; i < n; ++i) {
      real[i] = real[n - i];
      imag[i] = -imag[n - i];
    }
  }
  if (row.inverse) {
    for (int64_t i = 0; i < n; ++i) imag[i] = -imag[i];
  }
  plan.run(real, imag, imag + n);
  float scale = row.scale, imag_scale = row.inverse ? -scale : scale;
  auto* to = static_cast<float*>(row.output);
  if (row.kind == FftKind::from_half) {
    for (int64_t i = 0; i < n; ++i) to[i] = real[i] * scale;
    return;
  }
  int64_t kept = row.kind == FftKind::to_half ? n / 2 + 1 : n;
  for (int64_t i = 0; i < kept; ++i) {
    to[2 * i] = real[i] * scale;
    to[2 * i + 1] = imag[i] * imag_scale;
  }
}

}  // namespace holdfast::cpu
