// fast::rope.
#include <holdfast/fast.h>

#include <cmath>

#include "kernels/plan/rope.h"
#include "ops/dynamic_shape.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using kernels::RopeSettings;

// Inputs: x, then offsets (int64, one or one per batch) and frequencies (float32), where there are
// such.
class Rope final : public Recorded<Rope, Op> {
 public:
  Rope(Stream stream, const RopeSettings& settings) : Recorded(stream), settings_(settings) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    if (inputs.size() > 1) return Recorded::output_shapes(inputs);  // offsets follow the batch
    if (inputs[0].shape(-1) < settings_.dims) {
      throw std::invalid_argument(text("[rope] expected ", settings_.dims,
                                       " features or more, got shape ", inputs[0].shape()));
    }
    return {inputs[0].shape()};
  }
  const char* name() const override { return "RoPE"; }
  auto members() const {
    return std::tie(settings_.dims, settings_.traditional, settings_.base, settings_.scale,
                    settings_.offset);
  }

 private:
  array of_frequencies(const std::vector<array>& primals, const array& cotangent,
                       const array& output);

  RopeSettings settings_;
};

// A turn by an angle is undone by a turn by its negative, which a negative scale makes of it.
std::vector<array> Rope::vjp_rule(const std::vector<array>& primals,
                                  const std::vector<array>& cotangents,
                                  const std::vector<int>& argnums,
                                  const std::vector<array>& outputs) {
  std::vector<array> result;
  for (int argnum : argnums) {
    if (argnum == 0) {
      RopeSettings back = settings_;
      back.scale = -settings_.scale;
      std::vector<array> inputs = primals;
      inputs[0] = cotangents[0];
      result.push_back(
          make_node<Rope>(inputs[0].shape(), inputs[0].dtype(), inputs, stream(), back));
    } else {
      result.push_back(of_frequencies(primals, cotangents[0], outputs[0]));
    }
  }
  return result;
}

// The angle of pair j at a position p is scale * p / frequency[j]; a small turn moves a pair (u, v)
// towards (-v, u).
array Rope::of_frequencies(const std::vector<array>& primals, const array& cotangent,
                           const array& output) {
  Stream s = stream();
  const array& frequencies = primals.back();
  int pairs = settings_.dims / 2;
  auto parts = [&](const array& x) {
    array used = split(astype(x, float32, s), Shape{settings_.dims}, -1, s)[0];
    Shape shape = settings_.traditional ? Shape{pairs, 2} : Shape{2, pairs};
    array both = unflatten(used, -1, shape, s);
    int axis = settings_.traditional ? -1 : -2;
    return std::pair{take(both, 0, axis, s), take(both, 1, axis, s)};
  };
  auto [u, v] = parts(output);
  auto [du, dv] = parts(cotangent);
  array turn = subtract(multiply(dv, u, s), multiply(du, v, s), s);  // (batch, …, position, pair)
  int length = output.shape(-2);
  array positions = reshape_here(arange(0, length, 1, s), {length, 1}, s);
  if (settings_.offset) {
    positions = add(positions, array(*settings_.offset), s);
  } else {
    Shape shape(turn.ndim(), 1);
    shape[0] = static_cast<ShapeElem>(primals[1].size());
    positions = add(positions, reshape_here(primals[1], shape, s), s);
  }
  array angles = multiply(astype(positions, float32, s), array(settings_.scale), s);
  array slope = negative(divide(angles, square(frequencies, s), s), s);
  return sum_like(multiply(turn, slope, s), frequencies, s);
}

// More heads; with offsets or frequencies for each call, one call after the other.
std::pair<std::vector<array>, std::vector<int>> Rope::vmap_rule(const std::vector<array>& inputs,
                                                                const std::vector<int>& axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] >= 0) return {};
  }
  std::vector<array> moved = inputs;
  moved[0] = moveaxis(inputs[0], axes[0], 1, stream());
  return {{detail::make_checked(moved[0].shape(), moved[0].dtype(),
                                std::make_shared<Rope>(stream(), settings_), moved)},
          {1}};
}

void Rope::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  size_t next = 1;
  const array* offsets = settings_.offset ? nullptr : &inputs[next++];
  const array* frequencies = settings_.base ? nullptr : &inputs[next++];
  kernels::backend_of(encoder).rope(encoder, settings_, inputs[0], offsets, frequencies,
                                    outputs[0]);
}

// float64, of ops: nobody is in a hurry with it.
array rotate_double(const array& x, const RopeSettings& settings,
                    const std::optional<array>& offset, const std::optional<array>& freqs,
                    StreamOrDevice s) {
  int pairs = settings.dims / 2, positions = x.shape(-2), features = x.shape(-1);
  if (pairs == 0 || x.size() == 0) return x;
  Shape wide{x.shape(0), -1, positions, features};
  array first = offset ? reshape_here(astype(*offset, float64, s), {-1, 1, 1, 1}, s)
                       : array(static_cast<double>(*settings.offset), float64);
  array place = add(reshape_here(arange(0.0, positions, float64, s), {1, 1, -1, 1}, s), first, s);
  array rates =
      freqs
          ? reciprocal(astype(*freqs, float64, s), s)
          : exp(multiply(arange(0.0, pairs, float64, s),
                         array(-std::log(static_cast<double>(*settings.base)) / pairs, float64), s),
                s);
  array angle =
      multiply(multiply(place, array(static_cast<double>(settings.scale), float64), s), rates, s);
  array cosine = cos(angle, s), sine = sin(angle, s);
  std::vector<array> parts = split(reshape_here(x, wide, s), Shape{settings.dims}, -1, s);
  Shape paired{wide[0], -1, positions};
  int axis = settings.traditional ? -1 : -2;
  paired.push_back(settings.traditional ? pairs : 2);
  paired.push_back(settings.traditional ? 2 : pairs);
  std::vector<array> ends = unstack(reshape_here(parts[0], paired, s), axis, s);
  array turned = stack({subtract(multiply(ends[0], cosine, s), multiply(ends[1], sine, s), s),
                        add(multiply(ends[0], sine, s), multiply(ends[1], cosine, s), s)},
                       axis, s);
  parts[0] = reshape_here(turned, parts[0].shape(), s);
  return reshape_here(concatenate(parts, -1, s), x.shape(), s);
}

array rotate(const array& x, RopeSettings settings, const std::optional<array>& offset,
             const std::optional<array>& freqs, StreamOrDevice s) {
  auto fail = [](const auto&... parts) { throw std::invalid_argument(text("[rope] ", parts...)); };
  if (x.ndim() < 3) fail("expected x with three dimensions or more, got shape ", x.shape());
  Dtype dtype = x.dtype();
  if (!issubdtype(dtype, floating)) fail("expected a floating dtype, got ", dtype);
  if (settings.dims <= 0 || settings.dims % 2 != 0 || settings.dims > x.shape(-1)) {
    fail("expected a positive, even dims of at most the last dimension of x (", x.shape(-1),
         "), got ", settings.dims);
  }
  if (settings.base.has_value() == freqs.has_value()) {
    fail("expected either base or freqs, got ", freqs ? "both" : "neither");
  }
  std::vector<array> inputs{x};
  if (offset) {
    if (!issubdtype(offset->dtype(), integer)) {
      fail("expected an integer offset, got ", offset->dtype());
    }
    if (offset->ndim() > 1 ||
        (offset->size() != 1 && offset->size() != static_cast<size_t>(x.shape(0)))) {
      fail("expected one offset, or one for each of ", x.shape(0), " batches, got shape ",
           offset->shape());
    }
    inputs.push_back(astype(*offset, int64, s));
  }
  if (freqs) {
    if (freqs->ndim() != 1 || freqs->shape(0) != settings.dims / 2) {
      fail("expected freqs of shape (", settings.dims / 2, "), half of dims, got shape ",
           freqs->shape());
    }
    inputs.push_back(astype(*freqs, float32, s));
  }
  if (dtype == float64) return rotate_double(x, settings, offset, freqs, s);
  return make_node<Rope>(x.shape(), dtype, std::move(inputs), s, settings);
}

}  // namespace

array fast::rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
                 int offset, const std::optional<array>& freqs, StreamOrDevice s) {
  return rotate(x, {dims, traditional, base, scale, offset}, std::nullopt, freqs, s);
}

array fast::rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
                 const array& offset, const std::optional<array>& freqs, StreamOrDevice s) {
  return rotate(x, {dims, traditional, base, scale, std::nullopt}, offset, freqs, s);
}

}  // namespace holdfast
