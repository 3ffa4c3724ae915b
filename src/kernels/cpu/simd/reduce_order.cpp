// min, max, all and any, compiled once per instruction set.
#include "kernels/cpu/simd/reduce_compare.h"
#include "kernels/cpu/simd/reduce_support.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

template <typename C, typename T>
inline void store_value(C value, T& to) {
  if constexpr (is_same<C, T>) {
    to = value;
  } else {
    from_float(value, to);
  }
}

// The element that no other comes before, where one exists: the identity of the order.
template <typename Order, typename C>
inline C last_in_order() {
  constexpr bool least = is_same<Order, Less>;
  if constexpr (is_real_float<C>) {
    return least ? static_cast<C>(__builtin_inf()) : static_cast<C>(-__builtin_inf());
  } else if constexpr (is_same<C, Complex64>) {
    float infinity = least ? __builtin_inff() : -__builtin_inff();
    return {infinity, infinity};
  } else {
    constexpr bool is_signed = static_cast<C>(-1) < static_cast<C>(0);
    constexpr C all_ones = static_cast<C>(~static_cast<C>(0));
    constexpr C sign_bit = static_cast<C>(static_cast<uint64_t>(1) << (sizeof(C) * 8 - 1));
    if constexpr (is_signed) {
      return least ? static_cast<C>(~sign_bit) : sign_bit;
    } else {
      return least ? all_ones : C{0};
    }
  }
}

template <typename T, typename C, typename Order>
struct Extreme {
  using Element = T;
  using Compute = C;
  using State = C;
  using Output = T;
  static constexpr bool has_index = false;
  static State identity() { return last_in_order<Order, C>(); }
  static inline void block(State& state, const C* x, int64_t count, int64_t) {
    combine(state, best_of<Order>(x, count));
  }
  static inline void columns(State* states, const C* const* rows, int row_count, int64_t count) {
    if constexpr (is_real_float<C>) {
      // One vector of states at a time, down all rows.
      using V = typename NativeVector<C>::type;
      constexpr int width = vector_bytes / sizeof(C);
      int64_t i = 0;
      for (; i + width <= count; i += width) {
        V state = load_vector<V>(states + i);
        for (int r = 0; r < row_count; ++r) {
          V value = load_vector<V>(rows[r] + i);
          auto wins = is_same<Order, Less> ? value < state : value > state;
          state = (wins | (value != value)) ? value : state;
        }
        store_vector(states + i, state);
      }
      for (; i < count; ++i) {
        for (int r = 0; r < row_count; ++r) states[i] = pick(rows[r][i], states[i]);
      }
      return;
    }
    for (int r = 0; r < row_count; ++r) {
      const C* row = rows[r];
      HOLDFAST_VECTORISE
      for (int64_t i = 0; i < count; ++i) states[i] = pick(row[i], states[i]);
    }
  }
  static inline C pick(C value, C state) {
    if constexpr (is_real_float<C>) {
      return (Order::before(value, state) | (value != value)) ? value : state;
    } else if constexpr (is_same<C, Complex64>) {
      return replaces<Order>(value, state) ? value : state;
    } else {
      return Order::before(value, state) ? value : state;
    }
  }
  static void combine(State& into, const State& from) { into = pick(from, into); }
  static void finish(const State& state, Output& to) { store_value(state, to); }
};

template <typename T>
inline bool is_true(T value) {
  return value != 0;
}
inline bool is_true(Float16 value) { return (value.bits & 0x7fff) != 0; }
inline bool is_true(BFloat16 value) { return (value.bits & 0x7fff) != 0; }
inline bool is_true(Complex64 value) { return value.real != 0 || value.imag != 0; }

template <typename T, bool is_all>
struct Truth {
  using Element = T;
  using Compute = T;
  using State = uint8_t;
  using Output = uint8_t;
  static constexpr bool has_index = false;
  static State identity() { return is_all; }
  static inline void block(State& state, const T* x, int64_t count, int64_t) {
    if (state != is_all) return;
    uint8_t found = 0;
    for (int64_t i = 0; i < count; ++i) found |= static_cast<uint8_t>(is_true(x[i]) != is_all);
    state = static_cast<uint8_t>(found != 0) ^ static_cast<uint8_t>(is_all);
  }
  static inline void columns(State* states, const T* const* rows, int row_count, int64_t count) {
    for (int r = 0; r < row_count; ++r) {
      const T* row = rows[r];
      HOLDFAST_VECTORISE
      for (int64_t i = 0; i < count; ++i) {
        auto value = static_cast<uint8_t>(is_true(row[i]));
        states[i] = is_all ? states[i] & value : states[i] | value;
      }
    }
  }
  static void combine(State& into, const State& from) { into = is_all ? into & from : into | from; }
  static void finish(const State& state, Output& to) { to = state; }
};

template <typename Order>
const simd::ReduceKernel* find_extreme(Dtype::Val input) {
  using Val = Dtype::Val;
  switch (input) {
    case Val::bool_:
    case Val::uint8:
      return &ReduceLoops<Extreme<uint8_t, uint8_t, Order>>::kernel;
    case Val::uint16:
      return &ReduceLoops<Extreme<uint16_t, uint16_t, Order>>::kernel;
    case Val::uint32:
      return &ReduceLoops<Extreme<uint32_t, uint32_t, Order>>::kernel;
    case Val::uint64:
      return &ReduceLoops<Extreme<uint64_t, uint64_t, Order>>::kernel;
    case Val::int8:
      return &ReduceLoops<Extreme<int8_t, int8_t, Order>>::kernel;
    case Val::int16:
      return &ReduceLoops<Extreme<int16_t, int16_t, Order>>::kernel;
    case Val::int32:
      return &ReduceLoops<Extreme<int32_t, int32_t, Order>>::kernel;
    case Val::int64:
      return &ReduceLoops<Extreme<int64_t, int64_t, Order>>::kernel;
    case Val::float16:
      return &ReduceLoops<Extreme<Float16, float, Order>>::kernel;
    case Val::bfloat16:
      return &ReduceLoops<Extreme<BFloat16, float, Order>>::kernel;
    case Val::float32:
      return &ReduceLoops<Extreme<float, float, Order>>::kernel;
    case Val::float64:
      return &ReduceLoops<Extreme<double, double, Order>>::kernel;
    case Val::complex64:
      break;
  }
  return &ReduceLoops<Extreme<Complex64, Complex64, Order>>::kernel;
}

template <bool is_all>
const simd::ReduceKernel* find_truth(Dtype::Val input) {
  using Val = Dtype::Val;
  switch (input) {
    case Val::bool_:
    case Val::uint8:
    case Val::int8:
      return &ReduceLoops<Truth<uint8_t, is_all>>::kernel;
    case Val::uint16:
    case Val::int16:
      return &ReduceLoops<Truth<uint16_t, is_all>>::kernel;
    case Val::uint32:
    case Val::int32:
      return &ReduceLoops<Truth<uint32_t, is_all>>::kernel;
    case Val::uint64:
    case Val::int64:
      return &ReduceLoops<Truth<uint64_t, is_all>>::kernel;
    case Val::float16:
      return &ReduceLoops<Truth<Float16, is_all>>::kernel;
    case Val::bfloat16:
      return &ReduceLoops<Truth<BFloat16, is_all>>::kernel;
    case Val::float32:
      return &ReduceLoops<Truth<float, is_all>>::kernel;
    case Val::float64:
      return &ReduceLoops<Truth<double, is_all>>::kernel;
    case Val::complex64:
      break;
  }
  return &ReduceLoops<Truth<Complex64, is_all>>::kernel;
}

const simd::ReduceKernel* find(ReduceOp op, Dtype::Val input) {
  switch (op) {
    case ReduceOp::min:
      return find_extreme<Less>(input);
    case ReduceOp::max:
      return find_extreme<Greater>(input);
    case ReduceOp::all:
      return find_truth<true>(input);
    default:
      return find_truth<false>(input);
  }
}

}  // namespace

extern const simd::ReduceOrderKernels reduce_order_kernels;
const simd::ReduceOrderKernels reduce_order_kernels{find};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
