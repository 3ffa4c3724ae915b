// Normalisation of rows, compiled once per instruction set.
//
// One loop writes rows that lie in the cache and sums the rows after them, so that memory is read
// and written evenly. Half types are widened twice, which costs less than keeping the floats.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/norm_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

#define HOLDFAST_INLINE_METHOD inline __attribute__((always_inline))

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

// How far ahead of the sums memory is asked for; the processor alone does not look far enough.
template <typename T>
constexpr int64_t fetch_ahead = 4096 * static_cast<int64_t>(sizeof(T));

template <typename T>
HOLDFAST_INLINE void fetch(const T* x, int elements, int64_t ahead) {
  const char* place = reinterpret_cast<const char*>(x) + ahead;
  for (size_t line = 0; line < static_cast<size_t>(elements) * sizeof(T); line += 64) {
    __builtin_prefetch(place + line, 0, 2);
  }
}

// A row's sum and its sum of squares, in a fixed number of lanes; the first only if `centred`.
template <bool centred, typename F>
struct Sums {
  using V = Lanes<F>;
  static constexpr int vectors = 4;
  static constexpr int step = vectors * lane_count<F>;
  V values[vectors] = {}, squares[vectors] = {};

  HOLDFAST_INLINE_METHOD void add(int v, V value) {
    if constexpr (centred) values[v] += value;
    squares[v] = multiply_add(value, value, squares[v]);
  }
  // The distances of `count` elements from `shift`. What was added before are whole steps.
  template <typename T>
  HOLDFAST_INLINE_METHOD void add(const T* x, int64_t count, F shift) {
    constexpr int width = lane_count<F>;
    for (; count >= step; count -= step, x += step) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v += 2) {
        LanePair<F> pair = load_pair<F>(x + v * width);
        add(v, pair.first - shift);
        add(v + 1, pair.second - shift);
      }
    }
    for (int v = 0; count > 0; ++v, x += width, count -= width) {
      F lanes[width];
      store_vector(lanes, load_some_lanes<F>(x, count < width ? count : width) - shift);
      for (int64_t l = count; l < width; ++l) lanes[l] = 0;
      add(v, load_vector<V>(lanes));
    }
  }
  static F total(const V* parts) {
    return add_lanes<F>((parts[0] + parts[1]) + (parts[2] + parts[3]));
  }
};

// What brings a row to its normal form: x * factor + term. A mean that is rounded is not better
// subtracted first.
template <typename F>
struct Scale {
  F factor, term;
};

template <typename F>
inline F square_root_of(F value) {
  if constexpr (is_same<F, float>) {
    return __builtin_sqrtf(value);
  } else {
    return __builtin_sqrt(value);
  }
}

struct Rms {
  static constexpr bool is_centred = false;
  template <typename T, typename F>
  static Scale<F> scale(const Sums<false, F>& sums, const T*, int64_t length, F epsilon) {
    F mean = sums.total(sums.squares) / static_cast<F>(length);
    return {1 / square_root_of(mean + epsilon), 0};
  }
};

struct Layer {
  static constexpr bool is_centred = true;
  // The variance is the mean square less the square of the mean. Where that takes more than four
  // bits away, or squares overflow, the row is summed again as distances from its mean.
  template <typename T, typename F>
  static Scale<F> scale(const Sums<true, F>& sums, const T* x, int64_t length, F epsilon) {
    auto count = static_cast<F>(length);
    F mean = sums.total(sums.values) / count;
    F variance = sums.total(sums.squares) / count - mean * mean;
    if (!(16 * variance >= mean * mean)) {
      Sums<true, F> distances;
      distances.add(x, length, mean);
      F rest = distances.total(distances.values) / count;
      variance = distances.total(distances.squares) / count - rest * rest;
      if (variance < 0) variance = 0;
      mean += rest;
      // One value throughout is at no distance from the mean, which rounding would not leave so.
      if (variance == 0 && epsilon > 0) return {0, 0};
    }
    F factor = 1 / square_root_of(variance + epsilon);
    return {factor, -(mean * factor)};
  }
};

// A row of weights or biases, or one value for all places.
template <typename T, int step>
class Parameters {
 public:
  Parameters(const void* row, float missing) : row_(static_cast<const T*>(row)) {
    if (row != nullptr) return;
    for (T& value : missing_) {
      if constexpr (is_same<T, double>) {
        value = static_cast<double>(missing);
      } else {
        from_float(missing, value);
      }
    }
    row_ = missing_;
    places_ = 0;
  }
  // `step` of them, or as many as there are. i is a multiple of a vector's elements.
  const T* at(int64_t i) const { return row_ + (i & places_); }

 private:
  const T* row_;
  int64_t places_ = -1;
  T missing_[step];
};

template <typename Kind, typename T, typename F>
class Normaliser {
 public:
  explicit Normaliser(const simd::NormRows& rows)
      // Adding a negative zero changes nothing, not even the sign of a zero.
      : all_(rows), weight_(rows.weight, 1.0f), bias_(rows.bias, -0.0f) {}

  template <bool stream>
  void run() {
    int64_t row = 0;
    if (all_.count >= together) {
      for (int r = 0; r < together; ++r) scales_[r] = scale_of({}, r, 0);
      for (; row + 2 * together <= all_.count; row += together) write_and_sum<stream>(row);
      write<stream>(output<together>(row), 0);
      row += together;
    }
    for (; row < all_.count; ++row) {
      scales_[0] = scale_of({}, row, 0);
      write<stream>(output<1>(row), 0);
    }
  }

 private:
  using V = Lanes<F>;
  using RowSums = Sums<Kind::is_centred, F>;
  static constexpr int width = lane_count<F>;
  // Rows that are written side by side share the loads of weight and bias. Half types have less of
  // them to load, and their shorter rows compete for places in the cache.
  static constexpr int together = sizeof(T) >= 4 ? 2 : 1;

  // Rows being written.
  template <int rows>
  struct Output {
    const T* from[rows];
    T* to[rows];
    V factor[rows], term[rows];

    HOLDFAST_INLINE_METHOD V apply(int r, V value, V by, V plus) const {
      value = multiply_add(value, factor[r], term[r]);
      if constexpr (Kind::is_centred) return multiply_add(value, by, plus);
      return value * by;
    }
  };

  const T* input(int64_t row) const {
    return static_cast<const T*>(all_.input) + row * all_.input_stride;
  }
  // Bytes from an element of the row to what should be fetched meanwhile: nothing behind the last
  // row, which others may be working on.
  int64_t ahead_of(int64_t row) const {
    int64_t rest = (all_.count - 1 - row) * all_.input_stride * static_cast<int64_t>(sizeof(T));
    return rest < 0 ? 0 : rest < fetch_ahead<T> ? rest : fetch_ahead<T>;
  }
  // `done` elements of the row have been added to the sums.
  HOLDFAST_INLINE_METHOD Scale<F> scale_of(RowSums sums, int64_t row, int64_t done) const {
    sums.add(input(row) + done, all_.length - done, 0);
    return Kind::scale(sums, input(row), all_.length, static_cast<F>(all_.epsilon));
  }

  template <int rows>
  HOLDFAST_INLINE_METHOD Output<rows> output(int64_t first) const {
    Output<rows> out;
    for (int r = 0; r < rows; ++r) {
      out.from[r] = input(first + r);
      out.to[r] = static_cast<T*>(all_.output) + (first + r) * all_.length;
      out.factor[r] = scales_[r].factor - V{};
      out.term[r] = scales_[r].term - V{};
    }
    return out;
  }

  // Two vectors of each row. All are loaded before the first is stored: rows often lie multiples of
  // 4096 bytes apart, and a load waits for an earlier store to such a place.
  template <bool stream, int rows>
  HOLDFAST_INLINE_METHOD void write_pair(const Output<rows>& out, int64_t i) const {
    LanePair<F> by = load_pair<F>(weight_.at(i)), plus{}, value[rows];
    if constexpr (Kind::is_centred) plus = load_pair<F>(bias_.at(i));
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) {
      value[r] = load_pair<F>(out.from[r] + i);
      value[r].first = out.apply(r, value[r].first, by.first, plus.first);
      value[r].second = out.apply(r, value[r].second, by.second, plus.second);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) put_pair<stream>(out.to[r] + i, value[r]);
  }

  // The rows from element i on.
  template <bool stream, int rows>
  void write(const Output<rows>& out, int64_t i) const {
    for (; i + 2 * width <= all_.length; i += 2 * width) write_pair<stream>(out, i);
    for (; i < all_.length; i += width) {
      int64_t count = all_.length - i < width ? all_.length - i : width;
      V by = load_some_lanes<F>(weight_.at(i), count);
      V plus = load_some_lanes<F>(bias_.at(i), count);
      for (int r = 0; r < rows; ++r) {
        V value = load_some_lanes<F>(out.from[r] + i, count);
        store_some_lanes(out.to[r] + i, out.apply(r, value, by, plus), count);
      }
    }
  }

  // Writes rows from `first` on by their scales, and computes the scales of as many after them, one
  // row after the other: all are written as far as the sums have come.
  template <bool stream>
  void write_and_sum(int64_t first) {
    constexpr int vectors = RowSums::vectors;
    const Output<together> out = output<together>(first);
    int64_t written = 0;
    for (int r = 0; r < together; ++r) {
      const T* x = input(first + together + r);
      const int64_t ahead = ahead_of(first + together + r);
      RowSums sums;
      int64_t i = 0;
      for (; i + together * RowSums::step <= all_.length; i += together * RowSums::step) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          constexpr int half_vectors = together * vectors / 2;
          fetch(x + i + half * half_vectors * width, half_vectors * width, ahead);
#pragma GCC unroll 2
          for (int v = 0; v < half_vectors; v += 2) {
            LanePair<F> pair = load_pair<F>(x + i + (half * half_vectors + v) * width);
            int at = (half * half_vectors + v) % vectors;
            sums.add(at, pair.first);
            sums.add(at + 1, pair.second);
          }
          write_pair<stream>(out, written);
          written += 2 * width;
        }
      }
      scales_[r] = scale_of(sums, first + together + r, i);
    }
    write<stream>(out, written);
  }

  const simd::NormRows all_;
  const Parameters<T, 2 * width> weight_, bias_;
  Scale<F> scales_[together];  // of the rows that are written next
};

template <typename Kind, typename T, typename F>
void normalise(const simd::NormRows& rows) {
  Normaliser<Kind, T, F> normaliser(rows);
  if (rows.stream) return normaliser.template run<true>();
  normaliser.template run<false>();
}

template <typename Kind>
void normalise_as(Dtype::Val dtype, const simd::NormRows& rows) {
  switch (dtype) {
    case Dtype::Val::float16:
      return normalise<Kind, Float16, float>(rows);
    case Dtype::Val::bfloat16:
      return normalise<Kind, BFloat16, float>(rows);
    case Dtype::Val::float64:
      return normalise<Kind, double, double>(rows);
    default:
      return normalise<Kind, float, float>(rows);
  }
}

}  // namespace

extern const simd::NormKernels norm_kernels;
const simd::NormKernels norm_kernels{normalise_as<Rms>, normalise_as<Layer>};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
