// sum and prod, compiled once per instruction set.
#include "kernels/cpu/simd/reduce_support.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

template <typename F, typename T>
inline F to_compute(T value) {
  if constexpr (is_same<F, T>)
    return value;
  else
    return to_float(value);
}

// Sums of a block in a fixed number of lanes, whatever the vector width: the same bits on every
// instruction set. `keep` neighbouring lanes stay apart (2 for complex numbers).
template <typename F, int keep, typename T>
inline void sum_block(const T* x, int64_t count, F* result) {
  using V = typename NativeVector<F>::type;
  constexpr int lanes = 128 / sizeof(F);
  constexpr int width = vector_bytes / sizeof(F);
  constexpr int vectors = lanes / width;
  int64_t i = 0;
  for (int k = 0; k < keep; ++k) result[k] = 0;
  if (count >= lanes) {
    V sum[vectors];
    fetch_far<lanes * sizeof(T)>(x);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sum[v] = load_lanes<F>(x + v * width);
    // In pairs: a sum waits for the one before it.
    for (i = lanes; i + 2 * lanes <= count; i += 2 * lanes) {
      fetch_far<2 * lanes * sizeof(T)>(x + i);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const T* at = x + i + v * width;
        sum[v] += load_lanes<F>(at) + load_lanes<F>(at + lanes);
      }
    }
    if (i + lanes <= count) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[v] += load_lanes<F>(x + i + v * width);
      i += lanes;
    }
#pragma GCC unroll 4
    for (int half = vectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
      for (int v = 0; v < half; ++v) sum[v] += sum[v + half];
    }
    V folded = fold_lanes<width, keep>(sum[0], [](V a, V b) { return a + b; });
    for (int k = 0; k < keep; ++k) result[k] = folded[k];
  }
  for (; i < count; i += keep) {
    for (int k = 0; k < keep; ++k) result[k] += to_compute<F>(x[i + k]);
  }
}

// Eight rows of one column, in pairs.
template <typename F>
inline F sum_of_eight(const F* const* rows, int64_t i) {
  return ((rows[0][i] + rows[1][i]) + (rows[2][i] + rows[3][i])) +
         ((rows[4][i] + rows[5][i]) + (rows[6][i] + rows[7][i]));
}

template <typename F>
inline void sum_columns(double* states, const F* const* row_pointers, int row_count,
                        int64_t count) {
  if (row_count == rows_at_once) {
    const F* rows[rows_at_once];
    for (int r = 0; r < rows_at_once; ++r) rows[r] = row_pointers[r];
    HOLDFAST_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
      states[i] += static_cast<double>(sum_of_eight(rows, i) + sum_of_eight(rows + 8, i));
    }
    return;
  }
  for (int r = 0; r < row_count; ++r) {
    const F* row = row_pointers[r];
    HOLDFAST_VECTORISE
    for (int64_t i = 0; i < count; ++i) states[i] += static_cast<double>(row[i]);
  }
}

// `sum`, of one column or of a register of columns, with `rows` rows added: four at a time, in
// pairs.
template <int rows, typename S, typename LoadRow>
inline S add_rows(S sum, LoadRow load_row) {
  if constexpr (rows == 1) return sum + load_row(0);
  for (int r = 0; r < rows; r += 4)
    sum += (load_row(r) + load_row(r + 1)) + (load_row(r + 2) + load_row(r + 3));
  return sum;
}

// Adds `rows` rows, `apart` from each other, of which the first is at `a`, to the sums of the
// columns. The lines `ahead` of each row are fetched, near its end those at the beginning of the
// next one, `stride` away. Of each whole line, `partial` is in the order of load_pair.
template <int rows, typename F, typename T>
inline void add_rows_at(F* partial, const T* a, int64_t apart, int64_t stride, int64_t count) {
  using V = typename NativeVector<F>::type;
  constexpr int64_t line = 64 / sizeof(T), width = vector_bytes / sizeof(F);
  constexpr int64_t most_ahead = 2048 / sizeof(T);
  int64_t ahead = count < most_ahead ? count : most_ahead;
  int64_t i = 0;
  for (; i + line <= count; i += line) {
    const T* next = i + ahead < count ? a + i + ahead : a + stride + (i + ahead - count);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) __builtin_prefetch(next + r * apart);
    if constexpr (comes_split<T, F>) {
#pragma GCC unroll 8
      for (int64_t k = i; k < i + line; k += 2 * width) {
        LanePair<F> pairs[rows];
        for (int r = 0; r < rows; ++r) pairs[r] = load_pair<F>(a + r * apart + k);
        store_vector(partial + k, add_rows<rows>(load_vector<V>(partial + k),
                                                 [&](int r) { return pairs[r].first; }));
        store_vector(partial + k + width, add_rows<rows>(load_vector<V>(partial + k + width),
                                                         [&](int r) { return pairs[r].second; }));
      }
      continue;
    }
#pragma GCC unroll 8
    for (int64_t k = i; k < i + line; k += width) {
      V sum = add_rows<rows>(load_vector<V>(partial + k),
                             [&](int r) { return load_lanes<F>(a + r * apart + k); });
      store_vector(partial + k, sum);
    }
  }
  for (; i < count; ++i) {
    partial[i] = add_rows<rows>(partial[i], [&](int r) { return to_compute<F>(a[r * apart + i]); });
  }
}

// Sums of many rows, column by column, into a block that stays in the first-level cache; to double
// after at most 64 rows.
template <typename F, typename T>
inline void sum_many_rows(double* states, const T* input, int64_t rows, int64_t stride,
                          int64_t columns) {
  constexpr int64_t block = 16384 / sizeof(F);
  constexpr int64_t rows_in_block = 64;
  alignas(64) F partial[block];
  for (int64_t c = 0; c < columns; c += block) {
    int64_t count = columns - c < block ? columns - c : block;
    for (int64_t r = 0; r < rows; r += rows_in_block) {
      int64_t end = rows - r < rows_in_block ? rows : r + rows_in_block;
      for (int64_t i = 0; i < count; ++i) partial[i] = 0;
      // Eight rows at once, so that `partial` costs little, each the next one of an eighth of all:
      // eight places in memory at which it is read on and on, as processors foresee it.
      const int64_t eighth = (end - r) / 8;
      for (int64_t row = r; row < r + eighth; ++row)
        add_rows_at<8>(partial, input + row * stride + c, eighth * stride, stride, count);
      for (int64_t row = r + 8 * eighth; row < end; ++row)
        add_rows_at<1>(partial, input + row * stride + c, 0, stride, count);
      constexpr int64_t line = 64 / sizeof(T);
      join_lanes<T, F>(partial, count / line * line);
      double* to = states + c;
      HOLDFAST_VECTORISE
      for (int64_t i = 0; i < count; ++i) to[i] += static_cast<double>(partial[i]);
    }
  }
}

inline void store_output(double value, float& to) { to = static_cast<float>(value); }
inline void store_output(double value, double& to) { to = value; }
template <typename Half>
inline void store_output(double value, Half& to) {
  from_float(static_cast<float>(value), to);
}

template <typename T, typename F>
struct SumFloat {
  using Element = T;
  using Compute = F;
  using State = double;
  using Output = T;
  static constexpr bool has_index = false;
  static State identity() { return 0; }
  static inline void block(State& state, const F* x, int64_t count, int64_t) {
    F sum;
    sum_block<F, 1>(x, count, &sum);
    state += static_cast<double>(sum);
  }
  // Half types: converted in registers.
  static inline void row(const T* x, int64_t length, int64_t, State& state)
    requires(!is_same<T, F>)
  {
    for (int64_t i = 0; i < length; i += reduce_block) {
      F sum;
      sum_block<F, 1>(x + i, length - i < reduce_block ? length - i : reduce_block, &sum);
      state += static_cast<double>(sum);
    }
  }
  static inline void columns(State* states, const F* const* rows, int row_count, int64_t count) {
    sum_columns(states, rows, row_count, count);
  }
  static inline void many_rows(State* states, const T* input, int64_t rows, int64_t stride,
                               int64_t count) {
    sum_many_rows<F>(states, input, rows, stride, count);
  }
  static void combine(State& into, const State& from) { into += from; }
  static void finish(const State& state, Output& to) { store_output(state, to); }
};

struct ComplexState {
  double real, imag;
};

struct SumComplex {
  using Element = Complex64;
  using Compute = Complex64;
  using State = ComplexState;
  using Output = Complex64;
  static constexpr bool has_index = false;
  static State identity() { return {0, 0}; }
  static inline void block(State& state, const Complex64* x, int64_t count, int64_t) {
    float sum[2];
    sum_block<float, 2>(&x->real, 2 * count, sum);
    state.real += static_cast<double>(sum[0]);
    state.imag += static_cast<double>(sum[1]);
  }
  static inline void columns(State* states, const Complex64* const* rows, int row_count,
                             int64_t count) {
    const float* parts[rows_at_once];
    for (int r = 0; r < row_count; ++r) parts[r] = &rows[r]->real;
    sum_columns(&states->real, parts, row_count, 2 * count);
  }
  static void combine(State& into, const State& from) {
    into.real += from.real;
    into.imag += from.imag;
  }
  static void finish(const State& state, Output& to) {
    to = {static_cast<float>(state.real), static_cast<float>(state.imag)};
  }
};

struct Add {
  template <typename S>
  static S apply(S a, S b) {
    return a + b;
  }
  static constexpr int identity = 0;
};
struct Multiply {
  template <typename S>
  static S apply(S a, S b) {
    return a * b;
  }
  static constexpr int identity = 1;
};

// Integers: S is unsigned, so that overflow wraps.
template <typename T, typename S, typename Op>
struct FoldInteger {
  using Element = T;
  using Compute = T;
  using State = S;
  using Output = S;
  static constexpr bool has_index = false;
  static State identity() { return Op::identity; }
  static inline void block(State& state, const T* x, int64_t count, int64_t) {
    S total = Op::identity;
    for (int64_t i = 0; i < count; ++i) total = Op::apply(total, static_cast<S>(x[i]));
    state = Op::apply(state, total);
  }
  static inline void columns(State* states, const T* const* rows, int row_count, int64_t count) {
    for (int r = 0; r < row_count; ++r) {
      const T* row = rows[r];
      HOLDFAST_VECTORISE
      for (int64_t i = 0; i < count; ++i) states[i] = Op::apply(states[i], static_cast<S>(row[i]));
    }
  }
  static void combine(State& into, const State& from) { into = Op::apply(into, from); }
  static void finish(const State& state, Output& to) { to = state; }
};

// Products of floats run in double: no spurious overflow, and one rounding at the end.
template <typename T>
struct ProdFloat {
  using Element = T;
  using Compute = double;
  using State = double;
  using Output = T;
  static constexpr bool has_index = false;
  static State identity() { return 1; }
  static inline void block(State& state, const double* x, int64_t count, int64_t) {
    constexpr int lanes = 16;
    double lane[lanes];
    for (int l = 0; l < lanes; ++l) lane[l] = 1;
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      for (int l = 0; l < lanes; ++l) lane[l] *= x[i + l];
    }
    for (int half = lanes / 2; half >= 1; half /= 2) {
      for (int l = 0; l < half; ++l) lane[l] *= lane[l + half];
    }
    for (; i < count; ++i) lane[0] *= x[i];
    state *= lane[0];
  }
  static inline void columns(State* states, const double* const* rows, int row_count,
                             int64_t count) {
    for (int r = 0; r < row_count; ++r) {
      const double* row = rows[r];
      HOLDFAST_VECTORISE
      for (int64_t i = 0; i < count; ++i) states[i] *= row[i];
    }
  }
  static void combine(State& into, const State& from) { into *= from; }
  static void finish(const State& state, Output& to) { store_output(state, to); }
};

struct ProdComplex {
  using Element = Complex64;
  using Compute = Complex64;
  using State = ComplexState;
  using Output = Complex64;
  static constexpr bool has_index = false;
  static State identity() { return {1, 0}; }
  static State times(State a, State b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }
  static State of(Complex64 x) {
    return {static_cast<double>(x.real), static_cast<double>(x.imag)};
  }
  static inline void block(State& state, const Complex64* x, int64_t count, int64_t) {
    for (int64_t i = 0; i < count; ++i) state = times(state, of(x[i]));
  }
  static inline void columns(State* states, const Complex64* const* rows, int row_count,
                             int64_t count) {
    for (int r = 0; r < row_count; ++r) {
      for (int64_t i = 0; i < count; ++i) states[i] = times(states[i], of(rows[r][i]));
    }
  }
  static void combine(State& into, const State& from) { into = times(into, from); }
  static void finish(const State& state, Output& to) {
    to = {static_cast<float>(state.real), static_cast<float>(state.imag)};
  }
};

template <typename Op>
const simd::ReduceKernel* find_integer(Dtype::Val input) {
  using Val = Dtype::Val;
  switch (input) {
    case Val::bool_:
      return &ReduceLoops<FoldInteger<uint8_t, uint32_t, Op>>::kernel;
    case Val::uint8:
      return &ReduceLoops<FoldInteger<uint8_t, uint32_t, Op>>::kernel;
    case Val::uint16:
      return &ReduceLoops<FoldInteger<uint16_t, uint32_t, Op>>::kernel;
    case Val::uint32:
      return &ReduceLoops<FoldInteger<uint32_t, uint32_t, Op>>::kernel;
    case Val::uint64:
      return &ReduceLoops<FoldInteger<uint64_t, uint64_t, Op>>::kernel;
    case Val::int8:
      return &ReduceLoops<FoldInteger<int8_t, uint32_t, Op>>::kernel;
    case Val::int16:
      return &ReduceLoops<FoldInteger<int16_t, uint32_t, Op>>::kernel;
    case Val::int32:
      return &ReduceLoops<FoldInteger<uint32_t, uint32_t, Op>>::kernel;
    default:
      return &ReduceLoops<FoldInteger<uint64_t, uint64_t, Op>>::kernel;
  }
}

// The states are the same: only the last step differs.
template <typename Half>
constexpr simd::ReduceKernel widening_sum = [] {
  simd::ReduceKernel kernel = ReduceLoops<SumFloat<Half, float>>::kernel;
  kernel.finish = ReduceLoops<SumFloat<float, float>>::kernel.finish;
  return kernel;
}();

const simd::ReduceKernel* find(ReduceOp op, Dtype::Val input, bool widens) {
  using Val = Dtype::Val;
  bool sum = op == ReduceOp::sum;
  if (sum && widens) {
    if (input == Val::float16) return &widening_sum<Float16>;
    if (input == Val::bfloat16) return &widening_sum<BFloat16>;
  }
  switch (input) {
    case Val::float16:
      return sum ? &ReduceLoops<SumFloat<Float16, float>>::kernel
                 : &ReduceLoops<ProdFloat<Float16>>::kernel;
    case Val::bfloat16:
      return sum ? &ReduceLoops<SumFloat<BFloat16, float>>::kernel
                 : &ReduceLoops<ProdFloat<BFloat16>>::kernel;
    case Val::float32:
      return sum ? &ReduceLoops<SumFloat<float, float>>::kernel
                 : &ReduceLoops<ProdFloat<float>>::kernel;
    case Val::float64:
      return sum ? &ReduceLoops<SumFloat<double, double>>::kernel
                 : &ReduceLoops<ProdFloat<double>>::kernel;
    case Val::complex64:
      return sum ? &ReduceLoops<SumComplex>::kernel : &ReduceLoops<ProdComplex>::kernel;
    default:
      return sum ? find_integer<Add>(input) : find_integer<Multiply>(input);
  }
}

}  // namespace

extern const simd::ReduceSumKernels reduce_sum_kernels;
const simd::ReduceSumKernels reduce_sum_kernels{find};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
