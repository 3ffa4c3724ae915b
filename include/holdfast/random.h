// Random numbers from explicit keys: Threefry-2x32, with the counter layout of JAX. The same key
// gives the same bits everywhere, for any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <holdfast/array.h>
#include <holdfast/stream.h>

namespace holdfast::random {

// A key: a uint32 array of shape (2,).
array key(uint64_t seed);

// Keys for calls that name none: each call splits the state and takes one half. Not thread-safe;
// every thread has its own.
class KeySequence {
 public:
  explicit KeySequence(uint64_t seed);
  void seed(uint64_t seed);
  array next();
  // The calling thread's. All threads start from one time seed of the process.
  static KeySequence& default_();

 private:
  array key_;
};

// Seeds the calling thread's default sequence.
void seed(uint64_t seed);

// Uniform bits, `width` bytes an element: uint8, uint16 or uint32.
array bits(const Shape& shape, int width, const std::optional<array>& key = std::nullopt,
           StreamOrDevice s = {});
inline array bits(const Shape& shape, const std::optional<array>& key = std::nullopt,
                  StreamOrDevice s = {}) {
  return bits(shape, 4, key, s);
}

// Two (or `num`, as the rows of one array) independent keys.
std::pair<array, array> split(const array& key, StreamOrDevice s = {});
array split(const array& key, int num, StreamOrDevice s = {});

// A bound that a random function takes: a number, or an array.
template <typename T>
concept Bound = std::is_convertible_v<T, float> || std::is_same_v<T, array>;

// In [low, high); float16, bfloat16 or float32. `low` and `high` broadcast to `shape`.
array uniform(const array& low, const array& high, const Shape& shape, Dtype dtype = float32,
              const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
template <Bound T, Bound U>
array uniform(T low, U high, const Shape& shape, Dtype dtype = float32,
              const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return uniform(array(low), array(high), shape, dtype, key, s);
}
array uniform(const Shape& shape, Dtype dtype, const std::optional<array>& key = std::nullopt,
              StreamOrDevice s = {});
array uniform(const Shape& shape, const std::optional<array>& key = std::nullopt,
              StreamOrDevice s = {});

// Normal with mean `loc` and standard deviation `scale`; floating types and complex64 (real and
// imaginary part independent, variance 1/2 each).
array normal(const Shape& shape, Dtype dtype, const std::optional<array>& loc,
             const std::optional<array>& scale, const std::optional<array>& key,
             StreamOrDevice s = {});
array normal(const Shape& shape, Dtype dtype, float loc, float scale,
             const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
array normal(const Shape& shape, float loc, float scale,
             const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
array normal(const Shape& shape, Dtype dtype, const std::optional<array>& key = std::nullopt,
             StreamOrDevice s = {});
array normal(const Shape& shape, const std::optional<array>& key = std::nullopt,
             StreamOrDevice s = {});

// Normal with these means (…, n) and covariances (…, n, n); the result has `shape` (or what means
// and covariances broadcast to), followed by n. float32 only.
array multivariate_normal(const array& mean, const array& cov, const Shape& shape, Dtype dtype,
                          const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});

// Integers in [low, high): drawn in float32, so that ranges beyond 2^24 are coarse.
array randint(const array& low, const array& high, const Shape& shape, Dtype dtype = int32,
              const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
template <Bound T, Bound U>
array randint(T low, U high, const Shape& shape, Dtype dtype = int32,
              const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return randint(array(low), array(high), shape, dtype, key, s);
}

// True with probability p, which broadcasts to `shape`.
array bernoulli(const array& p, const Shape& shape, const std::optional<array>& key = std::nullopt,
                StreamOrDevice s = {});
array bernoulli(const array& p, const std::optional<array>& key = std::nullopt,
                StreamOrDevice s = {});
template <typename T>
  requires std::is_convertible_v<T, float>
array bernoulli(T p, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return bernoulli(array(static_cast<float>(p)), key, s);
}
template <typename T>
  requires std::is_convertible_v<T, float>
array bernoulli(T p, const Shape& shape, const std::optional<array>& key = std::nullopt,
                StreamOrDevice s = {}) {
  return bernoulli(array(static_cast<float>(p)), shape, key, s);
}
array bernoulli(const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});

// Standard normal between two limits; float16, bfloat16 or float32.
array truncated_normal(const array& lower, const array& upper, const Shape& shape,
                       Dtype dtype = float32, const std::optional<array>& key = std::nullopt,
                       StreamOrDevice s = {});
array truncated_normal(const array& lower, const array& upper, Dtype dtype = float32,
                       const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});

// -log(-log(uniform))
array gumbel(const Shape& shape, Dtype dtype = float32,
             const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});

// Indices along `axis`, each with the probability softmax(logits); uint32. The samples have
// `shape`, to which the logits without the axis broadcast, or `num_samples` behind that, or one.
array categorical(const array& logits, int axis, const Shape& shape,
                  const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
array categorical(const array& logits, int axis, int num_samples,
                  const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
array categorical(const array& logits, int axis = -1,
                  const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});

array laplace(const Shape& shape, Dtype dtype, float loc, float scale,
              const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
array laplace(const Shape& shape, float loc, float scale,
              const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
array laplace(const Shape& shape, Dtype dtype, const std::optional<array>& key = std::nullopt,
              StreamOrDevice s = {});
array laplace(const Shape& shape, const std::optional<array>& key = std::nullopt,
              StreamOrDevice s = {});

// The slices of `x` along `axis` in random order; or the numbers below x.
array permutation(const array& x, int axis = 0, const std::optional<array>& key = std::nullopt,
                  StreamOrDevice s = {});
array permutation(int x, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});

}  // namespace holdfast::random
