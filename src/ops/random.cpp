// Random numbers: bits from Threefry, the distributions from bits by element-wise ops.
#include <holdfast/linalg.h>
#include <holdfast/random.h>

#include <chrono>
#include <cmath>

#include "base/of_this_thread.h"
#include "ops/dynamic_shape.h"
#include "ops/support.h"

namespace holdfast::random {

namespace {

class RandomBits final : public Recorded<RandomBits, Op> {
 public:
  using Recorded::Recorded;
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  const char* name() const override { return "RandomBits"; }
  auto members() const { return std::tie(); }
};

void RandomBits::encode(Encoder& encoder, const std::vector<array>& inputs,
                        std::vector<array>& outputs) {
  kernels::backend_of(encoder).random_bits(encoder, inputs[0], outputs[0]);
}

array key_or_next(const std::optional<array>& key) {
  return key ? *key : KeySequence::default_().next();
}

// The largest number of the dtype below 1.
double below_one(Dtype dtype) { return 1.0 - finfo(dtype).eps / 2; }

uint64_t process_seed() {
  using namespace std::chrono;
  static const uint64_t seed = static_cast<uint64_t>(
      duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
  return seed;
}

}  // namespace

// --- keys ---

array key(uint64_t seed) {
  uint32_t words[] = {static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(seed)};
  return array(words, Shape{2}, uint32);
}

KeySequence::KeySequence(uint64_t seed) : key_(random::key(seed)) {}

void KeySequence::seed(uint64_t seed) { key_ = random::key(seed); }

array KeySequence::next() {
  auto [state, result] = random::split(key_);
  key_ = std::move(state);
  return result;
}

KeySequence& KeySequence::default_() {
  struct Default : KeySequence {
    Default() : KeySequence(process_seed()) {}
  };
  return of_this_thread<Default>();
}

void seed(uint64_t seed) { KeySequence::default_().seed(seed); }

array split(const array& key, int num, StreamOrDevice s) {
  if (num < 0) {
    throw std::invalid_argument(text("[split] the number of keys must not be negative, got ", num));
  }
  return bits({num, 2}, 4, key, s);
}

std::pair<array, array> split(const array& key, StreamOrDevice s) {
  array both = random::split(key, 2, s);
  return {take(both, 0, 0, s), take(both, 1, 0, s)};
}

// --- bits ---

array bits(const Shape& shape, int width, const std::optional<array>& key, StreamOrDevice s) {
  if (width != 1 && width != 2 && width != 4) {
    throw std::invalid_argument(text("[bits] expected a width of 1, 2 or 4 bytes, got ", width));
  }
  Dtype dtype = width == 1 ? uint8 : width == 2 ? uint16 : uint32;
  checked_size("bits", shape, dtype);
  array used = key_or_next(key);
  if (used.dtype() != uint32 || used.shape() != Shape{2}) {
    throw std::invalid_argument(text("[bits] expected a key of shape (2) and dtype uint32, got ",
                                     used.shape(), " and ", used.dtype()));
  }
  return make_node<RandomBits>(shape, dtype, inputs_of(std::move(used)), s);
}

// --- distributions ---

array uniform(const array& low, const array& high, const Shape& shape, Dtype dtype,
              const std::optional<array>& key, StreamOrDevice s) {
  if (dtype != float32 && dtype != float16 && dtype != bfloat16) {
    throw std::invalid_argument(
        text("[uniform] expected float32, float16 or bfloat16, got ", dtype));
  }
  array first = astype(low, dtype, s);
  array range = subtract(astype(high, dtype, s), first, s);
  if (broadcast_shapes_for("uniform", range.shape(), shape) != shape) {
    throw std::invalid_argument(text("[uniform] low and high of shapes ", low.shape(), " and ",
                                     high.shape(), " cannot be broadcast to shape ", shape));
  }
  array unit = divide(astype(bits(shape, 4, key, s), float32, s), array(4294967295.0f), s);
  // Rounding may have given 1.
  unit = minimum(astype(unit, dtype, s), array(below_one(dtype), dtype), s);
  return add(multiply(range, unit, s), first, s);
}

array uniform(const Shape& shape, Dtype dtype, const std::optional<array>& key, StreamOrDevice s) {
  return uniform(array(0.0f), array(1.0f), shape, dtype, key, s);
}

array uniform(const Shape& shape, const std::optional<array>& key, StreamOrDevice s) {
  return uniform(shape, float32, key, s);
}

array normal(const Shape& shape, Dtype dtype, const std::optional<array>& loc,
             const std::optional<array>& scale, const std::optional<array>& key, StreamOrDevice s) {
  if (!issubdtype(dtype, inexact)) {
    throw std::invalid_argument(text("[normal] expected a floating or complex dtype, got ", dtype));
  }
  for (const std::optional<array>* parameter : {&loc, &scale}) {
    if (*parameter && broadcast_shapes_for("normal", (*parameter)->shape(), shape) != shape) {
      throw std::invalid_argument(text("[normal] loc and scale must broadcast to shape ", shape,
                                       ", got shape ", (*parameter)->shape()));
    }
  }
  bool is_complex = dtype == complex64;
  Shape drawn = shape;
  if (is_complex) drawn.push_back(2);
  // The inverse of the distribution function, computed in float32.
  array inner = uniform(array(-below_one(float32)), array(1.0f), drawn, float32, key, s);
  array sample = erfinv(inner, s);
  // Two parts of variance 1/2 each need no factor: erfinv has that variance.
  std::optional<array> factor;
  if (is_complex) {
    sample = squeeze(view(sample, complex64, s), -1, s);
  } else {
    sample = astype(sample, dtype, s);
    factor = array(std::sqrt(2.0), dtype);
  }
  if (scale)
    factor = factor ? multiply(*factor, astype(*scale, dtype, s), s) : astype(*scale, dtype, s);
  if (factor) sample = multiply(*factor, sample, s);
  if (loc) sample = add(sample, astype(*loc, dtype, s), s);
  return sample;
}

array normal(const Shape& shape, Dtype dtype, float loc, float scale,
             const std::optional<array>& key, StreamOrDevice s) {
  auto unless = [](float value, float neutral) {
    return value == neutral ? std::nullopt : std::optional<array>(array(value));
  };
  return normal(shape, dtype, unless(loc, 0.0f), unless(scale, 1.0f), key, s);
}

array normal(const Shape& shape, float loc, float scale, const std::optional<array>& key,
             StreamOrDevice s) {
  return normal(shape, float32, loc, scale, key, s);
}

array normal(const Shape& shape, Dtype dtype, const std::optional<array>& key, StreamOrDevice s) {
  return normal(shape, dtype, std::nullopt, std::nullopt, key, s);
}

array normal(const Shape& shape, const std::optional<array>& key, StreamOrDevice s) {
  return normal(shape, float32, std::nullopt, std::nullopt, key, s);
}

// --- integers and choices ---

array randint(const array& low, const array& high, const Shape& shape, Dtype dtype,
              const std::optional<array>& key, StreamOrDevice s) {
  if (issubdtype(dtype, inexact)) {
    throw std::invalid_argument(text("[randint] expected an integer dtype or bool, got ", dtype));
  }
  array first = astype(low, dtype, s), end = astype(high, dtype, s);
  array drawn = astype(floor(uniform(low, high, shape, float32, key, s), s), dtype, s);
  // Rounding may have given `high`; an empty range gives `low`.
  array last = dtype == bool_ ? end : subtract(end, array(1, dtype), s);
  return maximum(minimum(drawn, last, s), first, s);
}

array bernoulli(const array& p, const Shape& shape, const std::optional<array>& key,
                StreamOrDevice s) {
  if (!issubdtype(p.dtype(), floating)) {
    throw std::invalid_argument(
        text("[bernoulli] expected a probability of a floating dtype, got ", p.dtype()));
  }
  if (broadcast_shapes_for("bernoulli", p.shape(), shape) != shape) {
    throw std::invalid_argument(
        text("[bernoulli] p of shape ", p.shape(), " cannot be broadcast to shape ", shape));
  }
  return less(uniform(shape, float32, key, s), p, s);
}
array bernoulli(const array& p, const std::optional<array>& key, StreamOrDevice s) {
  return bernoulli(p, p.shape(), key, s);
}
array bernoulli(const std::optional<array>& key, StreamOrDevice s) {
  return bernoulli(array(0.5f), key, s);
}

namespace {

// `logits` and noise, whose largest sum along `axis` (of the sum) is the choice.
array choice(const array& logits, const Shape& noise, int axis, const std::optional<array>& key,
             StreamOrDevice s) {
  return argmax(add(logits, gumbel(noise, float32, key, s), s), axis, false, s);
}

// All choices are made among the same logits, more than none. MLX then looks them up among the
// running sums of the probabilities; only a result without dimensions is drawn with noise, too.
bool is_looked_up(const array& logits, int axis, const Shape& shape) {
  return logits.size() == static_cast<size_t>(logits.shape(axis)) && logits.size() > 0 &&
         !shape.empty() && !has_open_shape(logits);
}

array looked_up(const array& logits, const Shape& shape, const std::optional<array>& key,
                StreamOrDevice s) {
  array weights = astype(flatten(logits, s), float32, s);
  weights = exp(subtract(weights, max(weights, true, s), s), s);
  array sums = cumsum(weights, 0, false, true, std::nullopt, s);
  array total = take(sums, -1, 0, s);
  array places =
      searchsorted(sums, multiply(uniform(shape, float32, key, s), total, s), "right", s);
  // Rounding may have given the total: the last that has a probability.
  return minimum(places, searchsorted(sums, total, "left", s), s);
}

}  // namespace

array categorical(const array& logits, int axis, const Shape& shape,
                  const std::optional<array>& key, StreamOrDevice s) {
  int at = checked_axis("categorical", axis, logits.ndim());
  Shape rest = logits.shape();
  rest.erase(rest.begin() + at);
  if (broadcast_shapes_for("categorical", rest, shape) != shape) {
    throw std::invalid_argument(text("[categorical] logits without axis ", at, ", of shape ", rest,
                                     ", cannot be broadcast to shape ", shape));
  }
  if (is_looked_up(logits, at, shape)) return looked_up(logits, shape, key, s);
  // The axis stands as far from the end as in the logits.
  int behind = static_cast<int>(logits.ndim()) - at;
  int place = static_cast<int>(shape.size()) + 1 - behind;
  Shape noise = shape;
  noise.insert(noise.begin() + place, logits.shape(at));
  return choice(logits, noise, place, key, s);
}

array categorical(const array& logits, int axis, int num_samples, const std::optional<array>& key,
                  StreamOrDevice s) {
  int at = checked_axis("categorical", axis, logits.ndim());
  if (num_samples < 0) {
    throw std::invalid_argument(
        text("[categorical] the number of samples must not be negative, got ", num_samples));
  }
  Shape noise = logits.shape(), shape = noise;
  noise.push_back(num_samples);
  shape.erase(shape.begin() + at);
  shape.push_back(num_samples);
  if (is_looked_up(logits, at, shape)) return looked_up(logits, shape, key, s);
  return choice(expand_dims(logits, -1, s), noise, at, key, s);
}

array categorical(const array& logits, int axis, const std::optional<array>& key,
                  StreamOrDevice s) {
  int at = checked_axis("categorical", axis, logits.ndim());
  Shape shape = logits.shape();
  shape.erase(shape.begin() + at);
  if (is_looked_up(logits, at, shape)) return looked_up(logits, shape, key, s);
  return choice(logits, logits.shape(), at, key, s);
}

array permutation(const array& x, int axis, const std::optional<array>& key, StreamOrDevice s) {
  int at = checked_axis("permutation", axis, x.ndim());
  return take(x, permutation(x.shape(at), key, s), at, s);
}

array permutation(int x, const std::optional<array>& key, StreamOrDevice s) {
  if (x < 0) {
    throw std::invalid_argument(
        text("[permutation] the number of indices must not be negative, got ", x));
  }
  return argsort(bits({x}, 4, key, s), 0, s);
}

// --- other distributions ---

array truncated_normal(const array& lower, const array& upper, const Shape& shape, Dtype dtype,
                       const std::optional<array>& key, StreamOrDevice s) {
  if (dtype != float32 && dtype != float16 && dtype != bfloat16) {
    throw std::invalid_argument(
        text("[truncated_normal] expected float32, float16 or bfloat16, got ", dtype));
  }
  Shape limits = broadcast_shapes_for("truncated_normal", lower.shape(), upper.shape());
  if (broadcast_shapes_for("truncated_normal", limits, shape) != shape) {
    throw std::invalid_argument(text("[truncated_normal] limits of shape ", limits,
                                     " cannot be broadcast to shape ", shape));
  }
  // Uniform between the values of the distribution function at the limits.
  array root(std::sqrt(2.0f), dtype);
  array low = astype(lower, dtype, s), high = astype(upper, dtype, s);
  array u =
      uniform(erf(divide(low, root, s), s), erf(divide(high, root, s), s), shape, dtype, key, s);
  // The lower limit counts last, where the two are in the wrong order.
  return maximum(minimum(multiply(root, erfinv(u, s), s), high, s), low, s);
}

array truncated_normal(const array& lower, const array& upper, Dtype dtype,
                       const std::optional<array>& key, StreamOrDevice s) {
  Shape shape = broadcast_shapes_for("truncated_normal", lower.shape(), upper.shape());
  return truncated_normal(lower, upper, shape, dtype, key, s);
}

array gumbel(const Shape& shape, Dtype dtype, const std::optional<array>& key, StreamOrDevice s) {
  if (dtype != float32 && dtype != float16 && dtype != bfloat16) {
    throw std::invalid_argument(
        text("[gumbel] expected float32, float16 or bfloat16, got ", dtype));
  }
  array u = uniform(shape, dtype, key, s);
  return negative(log(negative(log(u, s), s), s), s);
}

array laplace(const Shape& shape, Dtype dtype, float loc, float scale,
              const std::optional<array>& key, StreamOrDevice s) {
  if (!issubdtype(dtype, floating)) {
    throw std::invalid_argument(text("[laplace] expected a floating dtype, got ", dtype));
  }
  array u = uniform(array(-below_one(float32)), array(1.0f), shape, float32, key, s);
  array sample = astype(multiply(sign(u, s), log1p(negative(abs(u, s), s), s), s), dtype, s);
  if (scale != 1.0f) sample = multiply(array(scale, dtype), sample, s);
  if (loc != 0.0f) sample = add(array(loc, dtype), sample, s);
  return sample;
}
array laplace(const Shape& shape, float loc, float scale, const std::optional<array>& key,
              StreamOrDevice s) {
  return laplace(shape, float32, loc, scale, key, s);
}
array laplace(const Shape& shape, Dtype dtype, const std::optional<array>& key, StreamOrDevice s) {
  return laplace(shape, dtype, 0.0f, 1.0f, key, s);
}
array laplace(const Shape& shape, const std::optional<array>& key, StreamOrDevice s) {
  return laplace(shape, float32, 0.0f, 1.0f, key, s);
}

array multivariate_normal(const array& mean, const array& cov, const Shape& shape, Dtype dtype,
                          const std::optional<array>& key, StreamOrDevice s) {
  if (dtype != float32) {
    throw std::invalid_argument(text("[multivariate_normal] expected float32, got ", dtype));
  }
  if (mean.ndim() < 1 || cov.ndim() < 2 || cov.shape(-1) != cov.shape(-2) ||
      mean.shape(-1) != cov.shape(-1)) {
    throw std::invalid_argument(
        text("[multivariate_normal] expected a mean of n elements and a "
             "covariance of n by n, got shapes ",
             mean.shape(), " and ", cov.shape()));
  }
  int n = mean.shape(-1);
  Shape batch = broadcast_shapes_for("multivariate_normal",
                                     Shape(mean.shape().begin(), mean.shape().end() - 1),
                                     Shape(cov.shape().begin(), cov.shape().end() - 2));
  // Without a shape: one sample for each mean and covariance.
  Shape drawn = shape.empty() ? batch : shape;
  if (broadcast_shapes_for("multivariate_normal", batch, drawn) != drawn) {
    throw std::invalid_argument(text("[multivariate_normal] means and covariances of shape ", batch,
                                     " cannot be broadcast to shape ", shape));
  }
  drawn.push_back(1);
  drawn.push_back(n);
  // The square root of the covariance: its singular values under the root.
  std::vector<array> parts = linalg::svd(astype(cov, float32, s), true, s);
  array root = matmul(multiply(parts[0], expand_dims(sqrt(parts[1], s), -2, s), s), parts[2], s);
  array sample = squeeze(matmul(normal(drawn, float32, key, s), root, s), -2, s);
  return add(sample, astype(mean, float32, s), s);
}

}  // namespace holdfast::random
