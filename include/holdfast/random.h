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

// In [low, high); float16, bfloat16 or float32. `low` and `high` broadcast to `shape`.
array uniform(const array& low, const array& high, const Shape& shape, Dtype dtype = float32,
              const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
template <typename T, typename U>
  requires(std::is_convertible_v<T, float> && std::is_convertible_v<U, float>)
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

}  // namespace holdfast::random
