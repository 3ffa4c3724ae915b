// Discrete Fourier transforms of any length. Results are complex64, of the inverse real forms
// float32.
#pragma once

#include <vector>

#include <holdfast/array.h>
#include <holdfast/utils.h>

namespace holdfast::fft {

// Which direction is divided by the length: the inverse, both by its root, or the forward one.
enum class FFTNorm { Backward, Ortho, Forward };

#define HOLDFAST_FFT_FORMS(one, two, many)                                                   \
  array many(const array& a, const Shape& n, const std::vector<int>& axes,                   \
             FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});                       \
  array many(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward, \
             StreamOrDevice s = {});                                                         \
  array many(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});       \
  inline array one(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward,        \
                   StreamOrDevice s = {}) {                                                  \
    return many(a, Shape{n}, std::vector<int>{axis}, norm, s);                               \
  }                                                                                          \
  inline array one(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward,          \
                   StreamOrDevice s = {}) {                                                  \
    return many(a, std::vector<int>{axis}, norm, s);                                         \
  }                                                                                          \
  inline array two(const array& a, const Shape& n, const std::vector<int>& axes,             \
                   FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {                \
    return many(a, n, axes, norm, s);                                                        \
  }                                                                                          \
  inline array two(const array& a, const std::vector<int>& axes = {-2, -1},                  \
                   FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {                \
    return many(a, axes, norm, s);                                                           \
  }
// Along one axis, two, or several (all by default); `n` cuts the axes or pads them with zeros.
HOLDFAST_FFT_FORMS(fft, fft2, fftn)
HOLDFAST_FFT_FORMS(ifft, ifft2, ifftn)
// Of real input; the last of the axes keeps n / 2 + 1 elements.
HOLDFAST_FFT_FORMS(rfft, rfft2, rfftn)
// To real output of length n along the last of the axes, by default 2 (size - 1).
HOLDFAST_FFT_FORMS(irfft, irfft2, irfftn)
#undef HOLDFAST_FFT_FORMS

// The frequencies of the elements of fft and rfft, for samples `d` apart.
array fftfreq(int n, double d = 1.0, StreamOrDevice s = {});
array rfftfreq(int n, double d = 1.0, StreamOrDevice s = {});
// Moves the zero frequency to the middle, and back.
array fftshift(const array& a, StreamOrDevice s = {});
array fftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
array ifftshift(const array& a, StreamOrDevice s = {});
array ifftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});

}  // namespace holdfast::fft
