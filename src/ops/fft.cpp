// Fourier transforms: one primitive for one axis.
#include <holdfast/fft.h>

#include <cmath>

#include "kernels/plan/fft.h"
#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using fft::FFTNorm;
using kernels::FftKind;
using kernels::FftSettings;

// Along the last axis.
class Fft final : public Recorded<Fft, Single<Op>> {
 public:
  Fft(Stream stream, const FftSettings& settings) : Recorded(stream), settings_(settings) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Fft>(stream(), settings_);
  }
  const char* name() const override { return "FFT"; }
  auto members() const {
    return std::tie(settings_.kind, settings_.inverse, settings_.length, settings_.scale);
  }

 private:
  FftSettings settings_;
};

void Fft::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  kernels::backend_of(encoder).fft(encoder, settings_, inputs[0], outputs[0]);
}

// The last axis cut or padded with zeros to `size`.
array resized(const array& a, int size, Stream s) {
  check_shape_known("fft", a);
  int axis = static_cast<int>(a.ndim()) - 1, present = a.shape(axis);
  if (present < size) {
    return pad(a, {axis}, {0}, {size - present}, array(0, a.dtype()), "constant", s);
  }
  Shape stop = a.shape();
  stop.back() = size;
  return slice(a, Shape(a.ndim(), 0), stop, s);
}

// A transform is a symmetric matrix: its adjoint is the conjugate one, which goes the other way.
array Fft::pull_back(const array& input, const array& cotangent, const array&) {
  Stream s = stream();
  if (input.size() == 0 || cotangent.size() == 0) return zeros_like(input, s);
  const int length = settings_.length, half = length / 2 + 1;
  auto transformed = [&](const array& a, FftKind kind, int result, Dtype dtype) {
    Shape shape = a.shape();
    shape.back() = result;
    return make_node<Fft>(std::move(shape), dtype, {a}, s,
                          FftSettings{kind, !settings_.inverse, length, settings_.scale});
  };
  if (settings_.kind == FftKind::from_half) {
    // The second half is the first one mirrored: what is in both counts twice.
    array result = transformed(cotangent, FftKind::to_half, half, complex64);
    std::vector<float> counts(static_cast<size_t>(half), 2.0f);
    counts[0] = 1;
    if (length % 2 == 0) counts.back() = 1;
    array weights(counts.begin(), Shape{half});
    return resized(multiply(result, weights, s), input.shape(-1), s);
  }
  array result = transformed(resized(cotangent, length, s), FftKind::complex, length, complex64);
  if (settings_.kind == FftKind::to_half) result = real(result, s);
  return resized(result, input.shape(-1), s);
}

array along_axis(const char* op, const array& a, int axis, int length, FftKind kind, bool inverse,
                 FFTNorm norm, StreamOrDevice s) {
  double scale = 1;
  if (norm == FFTNorm::Ortho) scale = 1 / std::sqrt(static_cast<double>(length));
  if (norm == (inverse ? FFTNorm::Backward : FFTNorm::Forward)) scale = 1.0 / length;
  array rows = moveaxis(a, axis, -1, s);
  array result = transform_rows(op, rows, kind, inverse, length, static_cast<float>(scale), s);
  return moveaxis(result, -1, axis, s);
}

// `n` empty: the sizes of the axes.
array transform(const char* op, const array& a, const Shape* n, const std::vector<int>& axes,
                bool real, bool inverse, FFTNorm norm, StreamOrDevice s) {
  if (real && !inverse && a.dtype() == complex64) {
    throw std::invalid_argument(text("[", op, "] expected real input, got ", a.dtype()));
  }
  if (axes.empty()) {
    if (a.ndim() == 0 || n != nullptr) {
      throw std::invalid_argument(text("[", op, "] expected one axis or more, got none"));
    }
    return astype(a, complex64, s);
  }
  if (n != nullptr && n->size() != axes.size()) {
    throw std::invalid_argument(
        text("[", op, "] expected one length for each axis, got ", *n, " for axes ", axes));
  }
  if (a.ndim() == 0) {
    throw std::invalid_argument(text("[", op, "] expected one dimension or more, got a 0-d array"));
  }
  std::vector<int> places;
  for (int axis : axes) places.push_back(checked_axis(op, axis, a.ndim()));
  checked_axes(op, axes, a.ndim());
  auto length_of = [&](const array& x, size_t i) {
    if (n != nullptr) return (*n)[i];
    int size = x.shape(places[i]);
    bool from_half = real && inverse && i + 1 == axes.size();
    return from_half ? safe_cast(2 * (int64_t{size} - 1), op) : size;
  };
  array result = a;
  // The real axis is the first one forward, the last one back.
  if (real && !inverse) {
    size_t last = axes.size() - 1;
    result = along_axis(op, result, places[last], length_of(result, last), FftKind::to_half, false,
                        norm, s);
  }
  size_t count = real ? axes.size() - 1 : axes.size();
  for (size_t i = 0; i < count; ++i) {
    result =
        along_axis(op, result, places[i], length_of(result, i), FftKind::complex, inverse, norm, s);
  }
  if (real && inverse) {
    size_t last = axes.size() - 1;
    result = along_axis(op, result, places[last], length_of(result, last), FftKind::from_half, true,
                        norm, s);
  }
  return result;
}

// Moves the elements of some axes by half their size, rounded down or up.
array shift_halves(const char* op, const array& a, const std::vector<int>& axes, bool up,
                   StreamOrDevice s) {
  array result = a;
  for (int given : axes) {
    int axis = checked_axis(op, given, a.ndim());
    check_shape_known(op, a);
    int size = a.shape(axis);
    int cut = up ? size / 2 : size - size / 2;
    if (size < 2) continue;
    std::vector<array> parts = split(result, Shape{cut}, axis, s);
    result = concatenate({parts[1], parts[0]}, axis, s);
  }
  return result;
}

}  // namespace

array transform_rows(const char* op, const array& a, FftKind kind, bool inverse, int length,
                     float scale, StreamOrDevice s) {
  if (length < 1) {
    throw std::invalid_argument(text("[", op, "] expected a length of at least 1, got ", length));
  }
  if (a.ndim() == 0) {
    throw std::invalid_argument(text("[", op, "] expected one dimension or more, got a 0-d array"));
  }
  Shape shape = a.shape();
  shape.back() = kind == FftKind::to_half ? length / 2 + 1 : length;
  Dtype in = kind == FftKind::to_half ? float32 : complex64;
  Dtype out = kind == FftKind::from_half ? float32 : complex64;
  checked_size(op, shape, out);
  return make_node<Fft>(std::move(shape), out, {astype(a, in, s)}, s,
                        FftSettings{kind, inverse, length, scale});
}

namespace fft {

#define HOLDFAST_FFT_FORMS(many, real, inverse)                                              \
  array many(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm,     \
             StreamOrDevice s) {                                                             \
    return transform(#many, a, &n, axes, real, inverse, norm, s);                            \
  }                                                                                          \
  array many(const array& a, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) { \
    return transform(#many, a, nullptr, axes, real, inverse, norm, s);                       \
  }                                                                                          \
  array many(const array& a, FFTNorm norm, StreamOrDevice s) {                               \
    return transform(#many, a, nullptr, all_axes(a), real, inverse, norm, s);                \
  }
HOLDFAST_FFT_FORMS(fftn, false, false)
HOLDFAST_FFT_FORMS(ifftn, false, true)
HOLDFAST_FFT_FORMS(rfftn, true, false)
HOLDFAST_FFT_FORMS(irfftn, true, true)
#undef HOLDFAST_FFT_FORMS

array fftfreq(int n, double d, StreamOrDevice s) {
  if (n < 1) throw std::invalid_argument(text("[fftfreq] expected n of at least 1, got ", n));
  if (d == 0) throw std::invalid_argument("[fftfreq] d must not be 0");
  double step = 1.0 / (n * d);
  array positive = arange(0.0, static_cast<double>((n - 1) / 2 + 1), float32, s);
  array negative = arange(static_cast<double>(-(n / 2)), 0.0, float32, s);
  return multiply(concatenate({positive, negative}, 0, s), array(step, float32), s);
}
array rfftfreq(int n, double d, StreamOrDevice s) {
  if (n < 1) throw std::invalid_argument(text("[rfftfreq] expected n of at least 1, got ", n));
  if (d == 0) throw std::invalid_argument("[rfftfreq] d must not be 0");
  array numbers = arange(0.0, static_cast<double>(n / 2 + 1), float32, s);
  return multiply(numbers, array(1.0 / (n * d), float32), s);
}
array fftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  return shift_halves("fftshift", a, axes, false, s);
}
array fftshift(const array& a, StreamOrDevice s) { return fftshift(a, all_axes(a), s); }
array ifftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  return shift_halves("ifftshift", a, axes, true, s);
}
array ifftshift(const array& a, StreamOrDevice s) { return ifftshift(a, all_axes(a), s); }

}  // namespace fft
}  // namespace holdfast
