#include "kernels/cpu/fft.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "base/sync.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/simd/fft_kernels.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(FftKernels, fft_kernels)

namespace holdfast::kernels::cpu {
namespace {

constexpr double pi = 3.14159265358979323846;

// exp(-2 pi i k / n).
std::complex<double> root(int64_t k, int64_t n) {
  k %= n;
  // Quarter turns are exact: transforms of two and four elements are sums.
  constexpr std::complex<double> quarters[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
  if (4 * k % n == 0) return quarters[4 * k / n];
  double angle = -2 * pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// root(k, n) for all k < n. The functions are asked for the first eighth alone where the others
// mirror it.
std::vector<std::complex<double>> all_roots(int64_t n) {
  std::vector<std::complex<double>> roots(static_cast<size_t>(n));
  auto at = [&](int64_t k) -> std::complex<double>& { return roots[static_cast<size_t>(k)]; };
  if (n % 8 != 0) {
    for (int64_t k = 0; k < n; ++k) at(k) = root(k, n);
    return roots;
  }
  int64_t quarter = n / 4;
  for (int64_t k = 0; k <= n / 8; ++k) {
    at(k) = root(k, n);
    at(quarter - k) = {-at(k).imag(), -at(k).real()};
  }
  for (int64_t k = 0; k < 3 * quarter; ++k) at(quarter + k) = {at(k).imag(), -at(k).real()};
  return roots;
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
    convolution_->run(filter_real_.data(), filter_imag_.data(), scratch.data(), 1);
    return;
  }
  int64_t left = length, stride = 1;
  std::vector<std::complex<double>> roots = all_roots(length);
  for (int64_t radix : radices) {
    Stage stage{radix, left / radix, stride, {}, {}, {}, {}};
    for (int64_t p = 0; p < stage.groups; ++p) {
      for (int64_t v = 0; v < radix; ++v) {
        // root(p * v, left)
        std::complex<double> w = roots[static_cast<size_t>(p * v * stride)];
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

std::unique_ptr<FftPlan> FftPlan::of_real(int64_t half) {
  auto plan = std::make_unique<FftPlan>(half);
  std::vector<std::complex<double>> roots = all_roots(2 * half);
  for (int64_t k = 0; k <= half / 2; ++k) {
    std::complex<double> w = roots[static_cast<size_t>(k)];
    plan->fold_real_.push_back(static_cast<float>(w.real()));
    plan->fold_imag_.push_back(static_cast<float>(w.imag()));
  }
  return plan;
}

std::shared_ptr<const FftPlan> fft_plan(int64_t length, bool of_real) {
  constexpr size_t most_plans = 16;
  constexpr int64_t most_elements = int64_t{1} << 22;
  static auto* mutex = new sync::Mutex;
  static auto* plans = new std::vector<std::shared_ptr<const FftPlan>>;  // last used, last
  auto wanted = [&](const std::shared_ptr<const FftPlan>& plan) {
    return plan->length() == length && plan->is_real() == of_real;
  };
  auto use = [&](std::shared_ptr<const FftPlan> plan) {
    std::erase_if(*plans, wanted);
    plans->push_back(std::move(plan));
  };
  {
    std::lock_guard guard(*mutex);
    auto found = std::find_if(plans->begin(), plans->end(), wanted);
    if (found != plans->end()) {
      use(*found);
      return plans->back();
    }
  }
  std::shared_ptr<const FftPlan> plan =
      of_real ? FftPlan::of_real(length) : std::make_unique<FftPlan>(length);
  if (length > most_elements) return plan;
  std::lock_guard guard(*mutex);
  use(plan);
  int64_t elements = 0;
  size_t kept = 0;
  while (kept < std::min(plans->size(), most_plans)) {
    elements += (*plans)[plans->size() - 1 - kept]->length();
    if (elements > most_elements) break;
    ++kept;
  }
  plans->erase(plans->begin(), plans->end() - static_cast<std::ptrdiff_t>(kept));
  return plan;
}

int64_t FftPlan::rows_at_once() const {
  constexpr int64_t most = 16, cached_floats = 128 << 10;
  int64_t rows = most;
  while (rows > 1 && rows * row_floats() > cached_floats) rows /= 2;
  return rows;
}

int64_t FftPlan::scratch_floats() const {
  if (convolution_) return 2 * convolution_->length() + convolution_->scratch_floats();
  return 2 * length_;
}

int64_t FftPlan::row_floats() const {
  int64_t data = 2 * (length_ + (is_real() ? 1 : 0));
  return data + std::max(data, scratch_floats());
}

void FftPlan::fold(float* real, float* imag, int64_t rows, float sign) const noexcept {
  simd::fft_kernels().fold(real, imag, length_, rows, fold_real_.data(), fold_imag_.data(), sign);
}

void FftPlan::run(float* real, float* imag, float* scratch, int64_t rows) const noexcept {
  if (convolution_) {
    run_chirp(real, imag, scratch, rows);
  } else {
    run_stages(real, imag, scratch, rows);
  }
}

// The rows beside each other are a stride that was there before the first stage.
void FftPlan::run_stages(float* real, float* imag, float* scratch, int64_t rows) const {
  float *from_real = real, *from_imag = imag;
  float *to_real = scratch, *to_imag = scratch + length_ * rows;
  for (const Stage& stage : stages_) {
    simd::fft_kernels().stage(
        {stage.radix, stage.groups, stage.stride * rows, stage.twiddle_real.data(),
         stage.twiddle_imag.data(), stage.root_real.data(), stage.root_imag.data()},
        from_real, from_imag, to_real, to_imag);
    std::swap(from_real, to_real);
    std::swap(from_imag, to_imag);
  }
  if (from_real != real) {
    auto bytes = static_cast<size_t>(length_ * rows) * sizeof(float);
    std::memcpy(real, from_real, bytes);
    std::memcpy(imag, from_imag, bytes);
  }
}

void FftPlan::run_chirp(float* real, float* imag, float* scratch, int64_t rows) const {
  int64_t size = convolution_->length();
  float *wide_real = scratch, *wide_imag = scratch + size * rows;
  float* rest = scratch + 2 * size * rows;
  std::fill_n(scratch, 2 * size * rows, 0.0f);
  for (int64_t k = 0; k < length_; ++k) {
    float cr = chirp_real_[static_cast<size_t>(k)], ci = chirp_imag_[static_cast<size_t>(k)];
    for (int64_t i = k * rows; i < (k + 1) * rows; ++i) {
      wide_real[i] = real[i] * cr - imag[i] * ci;
      wide_imag[i] = real[i] * ci + imag[i] * cr;
    }
  }
  convolution_->run(wide_real, wide_imag, rest, rows);
  // Conjugated, so that a forward transform goes back.
  for (int64_t k = 0; k < size; ++k) {
    float fr = filter_real_[static_cast<size_t>(k)], fi = filter_imag_[static_cast<size_t>(k)];
    for (int64_t i = k * rows; i < (k + 1) * rows; ++i) {
      float r = wide_real[i] * fr - wide_imag[i] * fi;
      float turned = wide_real[i] * fi + wide_imag[i] * fr;
      wide_real[i] = r;
      wide_imag[i] = -turned;
    }
  }
  convolution_->run(wide_real, wide_imag, rest, rows);
  float scale = 1.0f / static_cast<float>(size);
  for (int64_t k = 0; k < length_; ++k) {
    float cr = chirp_real_[static_cast<size_t>(k)], ci = chirp_imag_[static_cast<size_t>(k)];
    for (int64_t i = k * rows; i < (k + 1) * rows; ++i) {
      float r = wide_real[i] * scale, turned = -wide_imag[i] * scale;
      real[i] = r * cr - turned * ci;
      imag[i] = r * ci + turned * cr;
    }
  }
}

namespace {

// Rows of `length` elements that lie `stride` elements apart, turned so that element i of row r
// comes to i * count + r.
void turn_rows(const void* from, int64_t length, int64_t count, int64_t stride, size_t item,
               void* to) {
  const int64_t shape[] = {length, count}, strides[] = {1, stride};
  gather_range(from, collapse(std::span(shape), std::span(strides)), item, 0, length * count, to);
}

// Real rows to half spectra and back; n = 2 h.
void transform_real_rows(const FftPlan& plan, const FftRows& rows, float* scratch) {
  const simd::FftKernels& kernels = simd::fft_kernels();
  int64_t h = plan.length(), count = rows.count;
  float *real = scratch, *imag = real + (h + 1) * count, *spare = imag + (h + 1) * count;
  float sign = rows.inverse ? -1.0f : 1.0f;
  if (rows.kind == FftKind::to_half) {
    int64_t given = std::min(rows.input_length / 2, h);
    turn_rows(rows.input, given, count, rows.input_stride / 8, 8, spare);
    kernels.split(spare, given * count, 1, real, imag);
    std::fill(real + given * count, real + h * count, 0.0f);
    std::fill(imag + given * count, imag + h * count, 0.0f);
    plan.run(real, imag, spare, count);
    std::copy_n(real, count, real + h * count);
    std::copy_n(imag, count, imag + h * count);
    plan.fold(real, imag, count, 1);
    float scale = 0.5f * rows.scale;
    kernels.join(real, imag, (h + 1) * count, scale, scale * sign, spare);
    turn_rows(spare, count, h + 1, count, 8, rows.output);
  } else {
    int64_t given = std::min(rows.input_length, h + 1);
    turn_rows(rows.input, given, count, rows.input_stride / 8, 8, spare);
    kernels.split(spare, given * count, sign, real, imag);
    std::fill(real + given * count, real + (h + 1) * count, 0.0f);
    std::fill(imag + given * count, imag + (h + 1) * count, 0.0f);
    // The imaginary parts of the ends do not count.
    std::fill_n(imag, count, 0.0f);
    std::fill_n(imag + h * count, count, 0.0f);
    plan.fold(real, imag, count, -1);
    plan.run(real, imag, spare, count);
    kernels.join(real, imag, h * count, rows.scale, rows.scale, spare);
    turn_rows(spare, count, h, count, 8, rows.output);
  }
}

}  // namespace

void transform_rows(const FftPlan& plan, const FftRows& rows, float* scratch) {
  if (plan.is_real()) return transform_real_rows(plan, rows, scratch);
  const simd::FftKernels& kernels = simd::fft_kernels();
  int64_t n = plan.length(), count = rows.count;
  float *real = scratch, *imag = scratch + n * count, *spare = imag + n * count;
  int64_t expected = rows.kind == FftKind::from_half ? n / 2 + 1 : n;
  int64_t given = std::min(rows.input_length, expected);
  float sign = rows.inverse ? -1.0f : 1.0f;
  if (rows.kind == FftKind::to_half) {
    turn_rows(rows.input, given, count, rows.input_stride / 4, 4, real);
    std::fill_n(imag, given * count, 0.0f);
  } else {
    turn_rows(rows.input, given, count, rows.input_stride / 8, 8, spare);
    kernels.split(spare, given * count, sign, real, imag);
  }
  std::fill(real + given * count, real + expected * count, 0.0f);
  std::fill(imag + given * count, imag + expected * count, 0.0f);
  if (rows.kind == FftKind::from_half) {
    // The other half mirrors this one; the imaginary part of the mean does not count.
    std::fill_n(imag, count, 0.0f);
    for (int64_t i = expected; i < n; ++i) {
      for (int64_t r = 0; r < count; ++r) {
        real[i * count + r] = real[(n - i) * count + r];
        imag[i * count + r] = -imag[(n - i) * count + r];
      }
    }
  }
  plan.run(real, imag, spare, count);
  int64_t kept = rows.kind == FftKind::to_half ? n / 2 + 1 : n;
  // Back again: `count` columns of `kept` elements are the rows of the output, which is dense.
  if (rows.kind == FftKind::from_half) {
    for (int64_t i = 0; i < n * count; ++i) real[i] *= rows.scale;
    turn_rows(real, count, n, count, 4, rows.output);
  } else {
    kernels.join(real, imag, kept * count, rows.scale, rows.scale * sign, spare);
    turn_rows(spare, count, kept, count, 8, rows.output);
  }
}

}  // namespace holdfast::kernels::cpu
