// Stages of a Fourier transform, compiled once per instruction set.
#include "kernels/cpu/simd/fft_kernels.h"

#include "kernels/cpu/simd/elements.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

using simd::FftStage;

constexpr int64_t largest_radix = 13;

// One butterfly of 4: element k of the outputs.
template <typename Index>
inline void four(Index at, const float* xr, const float* xi, int64_t step, float (&yr)[4],
                 float (&yi)[4]) {
  float ar = xr[at], ai = xi[at], br = xr[at + step], bi = xi[at + step];
  float cr = xr[at + 2 * step], ci = xi[at + 2 * step];
  float dr = xr[at + 3 * step], di = xi[at + 3 * step];
  float sr = ar + cr, si = ai + ci, tr = ar - cr, ti = ai - ci;
  float ur = br + dr, ui = bi + di, vr = br - dr, vi = bi - di;
  yr[0] = sr + ur;
  yi[0] = si + ui;
  yr[1] = tr + vi;
  yi[1] = ti - vr;
  yr[2] = sr - ur;
  yi[2] = si - ui;
  yr[3] = tr - vi;
  yi[3] = ti + vr;
}

void stage_four(const FftStage& s, const float* xr, const float* xi, float* yr, float* yi) {
  int64_t step = s.stride * s.groups;
  if (s.stride == 1) {
    HOLDFAST_VECTORISE
    for (int64_t p = 0; p < s.groups; ++p) {
      float br[4], bi[4];
      four(p, xr, xi, step, br, bi);
      for (int v = 0; v < 4; ++v) {
        float wr = s.twiddle_real[4 * p + v], wi = s.twiddle_imag[4 * p + v];
        yr[4 * p + v] = br[v] * wr - bi[v] * wi;
        yi[4 * p + v] = br[v] * wi + bi[v] * wr;
      }
    }
    return;
  }
  for (int64_t p = 0; p < s.groups; ++p) {
    const float* wr = s.twiddle_real + 4 * p;
    const float* wi = s.twiddle_imag + 4 * p;
    float w1r = wr[1], w1i = wi[1], w2r = wr[2], w2i = wi[2], w3r = wr[3], w3i = wi[3];
    const float* fr = xr + s.stride * p;
    const float* fi = xi + s.stride * p;
    float* tr = yr + s.stride * 4 * p;
    float* ti = yi + s.stride * 4 * p;
    HOLDFAST_VECTORISE
    for (int64_t k = 0; k < s.stride; ++k) {
      float br[4], bi[4];
      four(k, fr, fi, step, br, bi);
      tr[k] = br[0];
      ti[k] = bi[0];
      tr[k + s.stride] = br[1] * w1r - bi[1] * w1i;
      ti[k + s.stride] = br[1] * w1i + bi[1] * w1r;
      tr[k + 2 * s.stride] = br[2] * w2r - bi[2] * w2i;
      ti[k + 2 * s.stride] = br[2] * w2i + bi[2] * w2r;
      tr[k + 3 * s.stride] = br[3] * w3r - bi[3] * w3i;
      ti[k + 3 * s.stride] = br[3] * w3i + bi[3] * w3r;
    }
  }
}

// `fixed`: the radix, or 0 for any.
template <int64_t fixed>
void stage_any(const FftStage& s, const float* xr, const float* xi, float* yr, float* yi) {
  const int64_t radix = fixed > 0 ? fixed : s.radix;
  int64_t step = s.stride * s.groups;
  for (int64_t p = 0; p < s.groups; ++p) {
    for (int64_t v = 0; v < radix; ++v) {
      float wr = s.twiddle_real[radix * p + v], wi = s.twiddle_imag[radix * p + v];
      float factor_real[largest_radix], factor_imag[largest_radix];
      for (int64_t u = 0; u < radix; ++u) {
        float rr = s.root_real[u * v % radix], ri = s.root_imag[u * v % radix];
        factor_real[u] = rr * wr - ri * wi;
        factor_imag[u] = rr * wi + ri * wr;
      }
      float* tr = yr + s.stride * (radix * p + v);
      float* ti = yi + s.stride * (radix * p + v);
      const float* fr = xr + s.stride * p;
      const float* fi = xi + s.stride * p;
      HOLDFAST_VECTORISE
      for (int64_t k = 0; k < s.stride; ++k) {
        float sum_real = 0, sum_imag = 0;
        for (int64_t u = 0; u < radix; ++u) {
          float ar = fr[k + u * step], ai = fi[k + u * step];
          sum_real += ar * factor_real[u] - ai * factor_imag[u];
          sum_imag += ar * factor_imag[u] + ai * factor_real[u];
        }
        tr[k] = sum_real;
        ti[k] = sum_imag;
      }
    }
  }
}

void stage(const FftStage& s, const float* from_real, const float* from_imag, float* to_real,
           float* to_imag) {
  switch (s.radix) {
    case 2:
      return stage_any<2>(s, from_real, from_imag, to_real, to_imag);
    case 3:
      return stage_any<3>(s, from_real, from_imag, to_real, to_imag);
    case 4:
      return stage_four(s, from_real, from_imag, to_real, to_imag);
    case 5:
      return stage_any<5>(s, from_real, from_imag, to_real, to_imag);
    default:
      return stage_any<0>(s, from_real, from_imag, to_real, to_imag);
  }
}

void split(const float* from, int64_t count, float sign, float* real, float* imag) {
  HOLDFAST_VECTORISE
  for (int64_t i = 0; i < count; ++i) {
    real[i] = from[2 * i];
    imag[i] = from[2 * i + 1] * sign;
  }
}

void join(const float* real, const float* imag, int64_t count, float scale, float imag_scale,
          float* to) {
  HOLDFAST_VECTORISE
  for (int64_t i = 0; i < count; ++i) {
    to[2 * i] = real[i] * scale;
    to[2 * i + 1] = imag[i] * imag_scale;
  }
}

inline void fold_pair(float* real, float* imag, int64_t k, int64_t l, float wr, float wi) {
  float ar = real[k], ai = imag[k], br = real[l], bi = -imag[l];
  float sr = ar + br, si = ai + bi, dr = ar - br, di = ai - bi;
  float tr = wr * di + wi * dr, ti = wi * di - wr * dr;
  real[k] = sr + tr;
  imag[k] = si + ti;
  real[l] = sr - tr;
  imag[l] = ti - si;
}

void fold(float* real, float* imag, int64_t h, int64_t rows, const float* root_real,
          const float* root_imag, float sign) {
  const int64_t pairs = (h + 1) / 2;
  if (rows == 1) {
    HOLDFAST_VECTORISE
    for (int64_t k = 0; k < pairs; ++k) {
      fold_pair(real, imag, k, h - k, root_real[k] * sign, root_imag[k] * sign);
    }
  } else {
    for (int64_t k = 0; k < pairs; ++k) {
      float wr = root_real[k] * sign, wi = root_imag[k] * sign;
      HOLDFAST_VECTORISE
      for (int64_t r = 0; r < rows; ++r) {
        fold_pair(real, imag, k * rows + r, (h - k) * rows + r, wr, wi);
      }
    }
  }
  if (h % 2 != 0) return;
  for (int64_t i = h / 2 * rows; i < (h / 2 + 1) * rows; ++i) {
    fold_pair(real, imag, i, i, root_real[h / 2] * sign, root_imag[h / 2] * sign);
  }
}

}  // namespace

extern const simd::FftKernels fft_kernels;
const simd::FftKernels fft_kernels{stage, split, join, fold};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
