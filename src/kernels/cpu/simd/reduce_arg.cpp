// argmin and argmax, compiled once per instruction set.
#include "kernels/cpu/simd/reduce_compare.h"
#include "kernels/cpu/simd/reduce_half_keys.h"
#include "kernels/cpu/simd/reduce_support.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

template <typename C>
struct Best {
  C value;
  int64_t index;  // -1: no element seen yet
};

// A lane's index is as wide as its value, so that both fit one vector.
template <size_t bytes>
struct LaneIndex {
  using type = int32_t;
};
template <>
struct LaneIndex<8> {
  using type = int64_t;
};

template <typename T>
inline bool same(T a, T b) {
  return a == b;
}
inline bool same(Complex64 a, Complex64 b) { return a.real == b.real && a.imag == b.imag; }

template <typename T, typename C, typename Order>
struct ArgExtreme {
  using Element = T;
  using Compute = C;
  using State = Best<C>;
  using Output = uint32_t;
  static constexpr bool has_index = true;
  static State identity() { return {C{}, -1}; }

  // The best value first, then where it is, and that only for a block that improves on the state.
  static inline void block(State& state, const C* x, int64_t count, int64_t first_index) {
    C best = best_of<Order>(x, count);
    if (state.index >= 0 && !replaces<Order>(best, state.value)) return;
    int64_t at = first_place(x, count, best);
    state = {x[at], first_index + at};
  }

  // Where the element is that `block` found.
  static inline int64_t first_place(const C* x, int64_t count, C best) {
    int64_t at = 0;
    if (is_nan(best)) {
      while (!is_nan(x[at])) ++at;
      return at;
    }
    if constexpr (is_real_float<C>) {
      using V = typename NativeVector<C>::type;
      constexpr int width = vector_bytes / sizeof(C);
      while (at + width <= count && !any_lane(load_vector<V>(x + at) == best)) at += width;
    }
    while (!same(x[at], best)) ++at;
    return at;
  }

  // A row in blocks of values; only the block that has the best is searched for its place.
  static constexpr int64_t value_block = 4096 / sizeof(T);
  static void row(const T* x, int64_t length, int64_t first_index, State& state)
    requires(is_real_float<T>)
  {
    const T* best_block = nullptr;
    for (int64_t i = 0; i < length; i += value_block) {
      T best = best_of<Order>(x + i, length - i < value_block ? length - i : value_block);
      if (state.index >= 0 && !replaces<Order>(best, state.value)) continue;
      state = {best, first_index + i};
      best_block = x + i;
    }
    if (best_block != nullptr) {
      state.index += first_place(best_block, x + length - best_block, state.value);
    }
  }

  // A row of half type compares as integers, without a conversion.
  static void row(const T* x, int64_t length, int64_t first_index, State& state)
    requires(is_same<T, Float16> || is_same<T, BFloat16>)
  {
    using Keys = HalfKeys<T, Order>;
    const T* best_block = nullptr;
    int16_t key = 0;
    if (state.index >= 0) {
      T held{};
      from_float(state.value, held);
      key = Keys::of(held);
    }
    for (int64_t i = 0; i < length; i += value_block) {
      int16_t best = Keys::largest(x + i, length - i < value_block ? length - i : value_block);
      if ((state.index >= 0 || best_block != nullptr) && best <= key) continue;
      key = best;
      best_block = x + i;
    }
    if (best_block != nullptr) {
      int64_t at = best_block - x + Keys::find(best_block, x + length - best_block, key);
      state = {to_float(x[at]), first_index + at};
    }
  }

  // Values and indices of a few columns in arrays of their own, down all rows.
  static void all_columns(const T* input, int64_t rows, int64_t stride, int64_t columns,
                          int64_t first_index, State* states) {
    using Lane = typename LaneIndex<sizeof(C)>::type;
    constexpr int64_t step = 1024;
    constexpr int64_t most_rows = int64_t{1} << 30;  // a lane's index may be 32 bits wide
    C value[step], buffer[is_same<T, C> ? 1 : step];
    Lane at[step];
    for (int64_t top = 0; top < rows; top += most_rows) {
      int64_t height = rows - top < most_rows ? rows - top : most_rows;
      for (int64_t c = 0; c < columns; c += step) {
        int64_t width = columns - c < step ? columns - c : step;
        const T* from = input + top * stride + c;
        const C* head = as_compute(from, width, buffer);
        for (int64_t i = 0; i < width; ++i) {
          value[i] = head[i];
          at[i] = 0;
        }
        for (int64_t r = 1; r < height; ++r) {
          improve(as_compute(from + r * stride, width, buffer), width, static_cast<Lane>(r), value,
                  at);
        }
        for (int64_t i = 0; i < width; ++i) {
          combine(states[c + i], {value[i], first_index + top + static_cast<int64_t>(at[i])});
        }
      }
    }
  }

  template <typename Lane>
  static inline void improve(const C* row, int64_t width, Lane r, C* value, Lane* at) {
    HOLDFAST_VECTORISE
    for (int64_t i = 0; i < width; ++i) {
      C candidate = row[i], current = value[i];
      bool better;
      if constexpr (is_real_float<C>) {
        better =
            Order::before(candidate, current) | ((candidate != candidate) & (current == current));
      } else {
        better = replaces<Order>(candidate, current);
      }
      value[i] = better ? candidate : current;
      at[i] = better ? r : at[i];
    }
  }

  static void combine(State& into, const State& from) {
    if (from.index < 0) return;
    if (into.index < 0 || replaces<Order>(from.value, into.value)) into = from;
  }
  static void finish(const State& state, Output& to) { to = static_cast<uint32_t>(state.index); }
};

template <typename Order>
const simd::ReduceKernel* find_order(Dtype::Val input) {
  using Val = Dtype::Val;
  switch (input) {
    case Val::bool_:
    case Val::uint8:
      return &ReduceLoops<ArgExtreme<uint8_t, uint8_t, Order>>::kernel;
    case Val::uint16:
      return &ReduceLoops<ArgExtreme<uint16_t, uint16_t, Order>>::kernel;
    case Val::uint32:
      return &ReduceLoops<ArgExtreme<uint32_t, uint32_t, Order>>::kernel;
    case Val::uint64:
      return &ReduceLoops<ArgExtreme<uint64_t, uint64_t, Order>>::kernel;
    case Val::int8:
      return &ReduceLoops<ArgExtreme<int8_t, int8_t, Order>>::kernel;
    case Val::int16:
      return &ReduceLoops<ArgExtreme<int16_t, int16_t, Order>>::kernel;
    case Val::int32:
      return &ReduceLoops<ArgExtreme<int32_t, int32_t, Order>>::kernel;
    case Val::int64:
      return &ReduceLoops<ArgExtreme<int64_t, int64_t, Order>>::kernel;
    case Val::float16:
      return &ReduceLoops<ArgExtreme<Float16, float, Order>>::kernel;
    case Val::bfloat16:
      return &ReduceLoops<ArgExtreme<BFloat16, float, Order>>::kernel;
    case Val::float32:
      return &ReduceLoops<ArgExtreme<float, float, Order>>::kernel;
    case Val::float64:
      return &ReduceLoops<ArgExtreme<double, double, Order>>::kernel;
    case Val::complex64:
      break;
  }
  return &ReduceLoops<ArgExtreme<Complex64, Complex64, Order>>::kernel;
}

const simd::ReduceKernel* find(ReduceOp op, Dtype::Val input) {
  return op == ReduceOp::argmin ? find_order<Less>(input) : find_order<Greater>(input);
}

}  // namespace

extern const simd::ReduceArgKernels reduce_arg_kernels;
const simd::ReduceArgKernels reduce_arg_kernels{find};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
