// Scans, compiled once per instruction set.
//
// Along a line, each register is scanned by itself in log2(lanes) steps of shifting and combining,
// and then takes in the carry: the chain from register to register is one operation long.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/scan_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

constexpr int64_t block = 1024;  // elements converted at a time
// Rows that columns take at a time: few, since neighbours in a column often fall into one set of
// the cache.
constexpr int together = 4;

template <typename C>
using VectorOf [[gnu::vector_size(vector_bytes)]] = C;
template <typename C>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(C));
template <typename C>
constexpr bool is_vectorised = !is_same<C, Complex>;
template <typename C>
constexpr bool is_floating = is_same<C, float> || is_same<C, double>;

// --- ops: `later` is combined into `earlier`, for registers and elements alike ---

struct Sum {
  template <typename V>
  HOLDFAST_INLINE V apply(V earlier, V later) {
    return static_cast<V>(earlier + later);
  }
  HOLDFAST_INLINE Complex apply(Complex a, Complex b) { return {a.real + b.real, a.imag + b.imag}; }
  template <typename C>
  HOLDFAST_INLINE C identity() {
    return C{};
  }
};

struct Prod {
  template <typename V>
  HOLDFAST_INLINE V apply(V earlier, V later) {
    return static_cast<V>(earlier * later);
  }
  // As an int the product of two of these can overflow.
  HOLDFAST_INLINE uint16_t apply(uint16_t earlier, uint16_t later) {
    return static_cast<uint16_t>(uint32_t{earlier} * later);
  }
  HOLDFAST_INLINE Complex apply(Complex a, Complex b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }
  template <typename C>
  HOLDFAST_INLINE C identity() {
    if constexpr (is_same<C, Complex>)
      return {1, 0};
    else
      return C(1);
  }
};

// NaN stays once it was met.
template <bool is_max>
struct Extreme {
  template <typename V>
  HOLDFAST_INLINE V apply(V earlier, V later) {
    if constexpr (is_max)
      return ((later > earlier) | (later != later)) ? later : earlier;
    else
      return ((later < earlier) | (later != later)) ? later : earlier;
  }
  HOLDFAST_INLINE Complex apply(Complex a, Complex b) {
    if (a.real != a.real || a.imag != a.imag) return a;
    if (b.real != b.real || b.imag != b.imag) return b;
    bool less = a.real < b.real || (a.real == b.real && a.imag < b.imag);
    return less == is_max ? b : a;
  }
  template <typename C>
  HOLDFAST_INLINE C identity() {
    if constexpr (is_same<C, Complex>) {
      float far = is_max ? -__builtin_inff() : __builtin_inff();
      return {far, far};
    } else if constexpr (is_floating<C>) {
      return static_cast<C>(is_max ? -__builtin_inf() : __builtin_inf());
    } else {
      constexpr bool is_signed = static_cast<C>(-1) < static_cast<C>(0);
      constexpr C ones = static_cast<C>(~C{0});
      constexpr C sign = static_cast<C>(uint64_t{1} << (sizeof(C) * 8 - 1));
      if constexpr (is_signed)
        return is_max ? sign : static_cast<C>(~sign);
      else
        return is_max ? C{0} : ones;
    }
  }
};

// Where no later element is NaN (an earlier one may be): one instruction.
template <bool is_max>
struct PlainExtreme : Extreme<is_max> {
  template <typename V>
  HOLDFAST_INLINE V apply(V earlier, V later) {
    if constexpr (is_max)
      return later > earlier ? later : earlier;
    else
      return later < earlier ? later : earlier;
  }
};

template <typename Op>
struct WithoutNaN {
  using Type = Op;
};
template <bool is_max>
struct WithoutNaN<Extreme<is_max>> {
  using Type = PlainExtreme<is_max>;
};

template <typename C>
bool has_nan(const C* in, int64_t count) {
  VectorOf<C> found{};
  int64_t i = 0;
  for (; i + lanes<C> <= count; i += lanes<C>) {
    auto value = load_vector<VectorOf<C>>(in + i);
    found += value - value;  // infinities count too: they only cost the slower path
  }
  C sum{};
  for (int lane = 0; lane < lanes<C>; ++lane) sum += found[lane];
  for (; i < count; ++i) sum += in[i] - in[i];
  return sum != C{};
}

struct LogAddExpOp {
  HOLDFAST_INLINE FloatVector apply(FloatVector a, FloatVector b) { return log_add_exp(a, b); }
  HOLDFAST_INLINE DoubleVector apply(DoubleVector a, DoubleVector b) { return log_add_exp(a, b); }
  HOLDFAST_INLINE Complex apply(Complex a, Complex b) { return complex_logaddexp(a, b); }
  template <typename C>
  HOLDFAST_INLINE C identity() {
    if constexpr (is_same<C, Complex>)
      return {-__builtin_inff(), 0};
    else
      return static_cast<C>(-__builtin_inf());
  }
};

// --- registers ---

template <int... I>
struct Lanes {};
template <int count, int... I>
struct MakeLanes : MakeLanes<count - 1, count - 1, I...> {};
template <int... I>
struct MakeLanes<0, I...> {
  using Type = Lanes<I...>;
};
template <typename C>
using LanesOf = typename MakeLanes<lanes<C>>::Type;

// Lane i of the result is lane i - step of `value`, or of `fill` where there is none.
template <int step, typename V, int... I>
HOLDFAST_INLINE V shifted(V value, V fill, Lanes<I...>) {
  constexpr int count = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(fill, value, (I < step ? I : count + I - step)...);
}
template <typename V, int... I>
HOLDFAST_INLINE V reversed(V value, Lanes<I...>) {
  constexpr int count = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(value, value, (count - 1 - I)...);
}
template <typename V, int... I>
HOLDFAST_INLINE V last_everywhere(V value, Lanes<I...>) {
  constexpr int count = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(value, value, (I * 0 + count - 1)...);
}

template <typename C>
HOLDFAST_INLINE VectorOf<C> everywhere(C value) {
  return value - VectorOf<C>{};
}

template <typename Op, int step, typename C>
HOLDFAST_INLINE VectorOf<C> prefix(VectorOf<C> value, VectorOf<C> identity) {
  if constexpr (step >= lanes<C>) {
    return value;
  } else {
    value = Op::apply(shifted<step>(value, identity, LanesOf<C>{}), value);
    return prefix<Op, 2 * step, C>(value, identity);
  }
}

// Scans one register that stands in scan order; `carry` holds the state in every lane.
template <typename Op, typename C>
HOLDFAST_INLINE VectorOf<C> scan_register(VectorOf<C> value, bool inclusive, VectorOf<C>& carry) {
  const VectorOf<C> identity = everywhere<C>(Op::template identity<C>());
  VectorOf<C> local = prefix<Op, 1, C>(value, identity);
  VectorOf<C> before = carry;
  carry = Op::apply(before, last_everywhere(local, LanesOf<C>{}));
  if (inclusive) return Op::apply(before, local);
  return Op::apply(before, shifted<1>(local, identity, LanesOf<C>{}));
}

// One element of an op that is written for registers only.
template <typename Op, typename C>
HOLDFAST_INLINE C apply_one(C earlier, C later) {
  if constexpr (is_same<Op, LogAddExpOp> && is_vectorised<C>)
    return Op::apply(everywhere<C>(earlier), everywhere<C>(later))[0];
  else
    return Op::apply(earlier, later);
}

// --- lines ---

template <typename Op, typename C, bool is_reverse>
void scan_part(const C* in, C* out, int64_t count, bool inclusive, C& state) {
  if constexpr (is_vectorised<C>) {
    constexpr int64_t width = lanes<C>;
    VectorOf<C> carry = everywhere<C>(state);
    int64_t i = 0;
    for (; i + width <= count; i += width) {
      int64_t at = is_reverse ? count - i - width : i;
      auto value = load_vector<VectorOf<C>>(in + at);
      if constexpr (is_reverse) value = reversed(value, LanesOf<C>{});
      value = scan_register<Op, C>(value, inclusive, carry);
      if constexpr (is_reverse) value = reversed(value, LanesOf<C>{});
      store_vector(out + at, value);
    }
    if (i < count) {
      // The rest in scan order, filled up with what changes nothing.
      C rest[static_cast<size_t>(width)];
      int64_t left = count - i;
      for (int64_t j = 0; j < width; ++j) rest[j] = Op::template identity<C>();
      for (int64_t j = 0; j < left; ++j) rest[j] = in[is_reverse ? left - 1 - j : i + j];
      auto value = scan_register<Op, C>(load_vector<VectorOf<C>>(rest), inclusive, carry);
      store_vector(rest, value);
      for (int64_t j = 0; j < left; ++j) out[is_reverse ? left - 1 - j : i + j] = rest[j];
    }
    state = carry[0];
  } else {
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = is_reverse ? count - 1 - i : i;
      C next = Op::apply(state, in[at]);
      out[at] = inclusive ? next : state;
      state = next;
    }
  }
}

// `count` elements in the type of computation.
template <typename Op, typename C, bool is_reverse>
void scan_line(const C* in, C* out, int64_t count, bool inclusive, C& state) {
  using Plain = typename WithoutNaN<Op>::Type;
  if constexpr (is_same<Op, Plain> || !is_floating<C>) {
    scan_part<Op, C, is_reverse>(in, out, count, inclusive, state);
  } else {
    for (int64_t i = 0; i < count; i += block) {
      int64_t part = smaller(block, count - i);
      int64_t at = is_reverse ? count - i - part : i;
      auto* scan =
          has_nan(in + at, part) ? scan_part<Op, C, is_reverse> : scan_part<Plain, C, is_reverse>;
      scan(in + at, out + at, part, inclusive, state);
    }
  }
}

template <typename Op, typename C>
C part_state(const C* in, int64_t count, C state) {
  if constexpr (is_vectorised<C>) {
    constexpr int64_t width = lanes<C>;
    constexpr int chains = 4;
    const C identity = Op::template identity<C>();
    VectorOf<C> total[chains];
    for (auto& chain : total) chain = everywhere<C>(identity);
    int64_t i = 0;
    for (; i + chains * width <= count; i += chains * width) {
#pragma GCC unroll 4
      for (int j = 0; j < chains; ++j)
        total[j] = Op::apply(total[j], load_vector<VectorOf<C>>(in + i + j * width));
    }
    for (; i < count; i += width) {
      C rest[static_cast<size_t>(width)];
      int64_t left = count - i < width ? count - i : width;
      for (int64_t j = 0; j < width; ++j) rest[j] = j < left ? in[i + j] : identity;
      total[0] = Op::apply(total[0], load_vector<VectorOf<C>>(rest));
    }
    for (int j = 1; j < chains; ++j) total[0] = Op::apply(total[0], total[j]);
    for (int64_t j = 0; j < width; ++j) state = apply_one<Op, C>(state, total[0][j]);
    return state;
  } else {
    for (int64_t i = 0; i < count; ++i) state = Op::apply(state, in[i]);
    return state;
  }
}

// The state behind `count` elements. The order of the elements does not matter here.
template <typename Op, typename C>
C line_state(const C* in, int64_t count, C state) {
  using Plain = typename WithoutNaN<Op>::Type;
  if constexpr (is_same<Op, Plain> || !is_floating<C>) {
    return part_state<Op, C>(in, count, state);
  } else {
    for (int64_t i = 0; i < count; i += block) {
      int64_t part = smaller(block, count - i);
      auto* total = has_nan(in + i, part) ? part_state<Op, C> : part_state<Plain, C>;
      state = total(in + i, part, state);
    }
    return state;
  }
}

// out[i] = earlier[i] combined with later[i]
template <typename Op, typename C>
void combine_arrays(const C* earlier, const C* later, C* out, int64_t count) {
  int64_t i = 0;
  if constexpr (is_vectorised<C>) {
    constexpr int64_t width = lanes<C>;
    for (; i + width <= count; i += width) {
      store_vector(out + i, Op::apply(load_vector<VectorOf<C>>(earlier + i),
                                      load_vector<VectorOf<C>>(later + i)));
    }
  }
  for (; i < count; ++i) out[i] = apply_one<Op, C>(earlier[i], later[i]);
}

// state[i] takes in x[r * stride + i] for each row r; out gets the states, after that or before.
// `out` may be `x`.
template <typename Op, typename C, int rows, bool inclusive>
void scan_rows(C* state, const C* x, C* out, int64_t stride, int64_t count) {
  int64_t i = 0;
  if constexpr (is_vectorised<C>) {
    constexpr int64_t width = lanes<C>;
    for (; i + width <= count; i += width) {
      auto now = load_vector<VectorOf<C>>(state + i);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        auto next = Op::apply(now, load_vector<VectorOf<C>>(x + r * stride + i));
        store_vector(out + r * stride + i, inclusive ? next : now);
        now = next;
      }
      store_vector(state + i, now);
    }
  }
  for (; i < count; ++i) {
    for (int r = 0; r < rows; ++r) {
      C next = apply_one<Op, C>(state[i], x[r * stride + i]);
      out[r * stride + i] = inclusive ? next : state[i];
      state[i] = next;
    }
  }
}

template <typename Op, typename C, int rows>
void total_rows(C* state, const C* x, int64_t stride, int64_t count) {
  int64_t i = 0;
  if constexpr (is_vectorised<C>) {
    for (; i + lanes<C> <= count; i += lanes<C>) {
      auto now = load_vector<VectorOf<C>>(state + i);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r)
        now = Op::apply(now, load_vector<VectorOf<C>>(x + r * stride + i));
      store_vector(state + i, now);
    }
  }
  for (; i < count; ++i) {
    for (int r = 0; r < rows; ++r) state[i] = apply_one<Op, C>(state[i], x[r * stride + i]);
  }
}

// T: as stored; C: as computed.
template <typename Op, typename T, typename C>
struct Scan {
  static void initialise(void* states, int64_t count) {
    C* to = static_cast<C*>(states);
    for (int64_t i = 0; i < count; ++i) to[i] = Op::template identity<C>();
  }

  template <bool is_reverse>
  static void line_in(const T* in, T* out, int64_t count, bool inclusive, C& state) {
    if constexpr (is_same<T, C>) {
      scan_line<Op, C, is_reverse>(in, out, count, inclusive, state);
    } else {
      C buffer[block];
      for (int64_t i = 0; i < count; i += block) {
        int64_t part = smaller(block, count - i);
        int64_t at = is_reverse ? count - i - part : i;
        widen(in + at, part, buffer);
        scan_line<Op, C, is_reverse>(buffer, buffer, part, inclusive, state);
        narrow(buffer, part, out + at);
      }
    }
  }
  static void line(const void* in, void* out, int64_t count, bool reverse, bool inclusive,
                   void* state) {
    auto* function = reverse ? line_in<true> : line_in<false>;
    function(static_cast<const T*>(in), static_cast<T*>(out), count, inclusive,
             *static_cast<C*>(state));
  }

  static void line_total(const void* in, int64_t count, bool, void* state) {
    const T* from = static_cast<const T*>(in);
    C& total = *static_cast<C*>(state);
    if constexpr (is_same<T, C>) {
      total = line_state<Op, C>(from, count, total);
    } else {
      C buffer[block];
      for (int64_t i = 0; i < count; i += block) {
        int64_t part = smaller(block, count - i);
        widen(from + i, part, buffer);
        total = line_state<Op, C>(buffer, part, total);
      }
    }
  }

  static void columns(const void* in, void* out, int64_t rows, int64_t stride, int64_t count,
                      bool inclusive, void* states) {
    const T* from = static_cast<const T*>(in);
    T* to = static_cast<T*>(out);
    C* state = static_cast<C*>(states);
    if constexpr (is_same<T, C>) {
      auto* many = inclusive ? scan_rows<Op, C, together, true> : scan_rows<Op, C, together, false>;
      auto* one = inclusive ? scan_rows<Op, C, 1, true> : scan_rows<Op, C, 1, false>;
      int64_t r = 0;
      for (; r + together <= rows; r += together)
        many(state, from + r * stride, to + r * stride, stride, count);
      for (; r < rows; ++r) one(state, from + r * stride, to + r * stride, stride, count);
    } else {
      auto* one = inclusive ? scan_rows<Op, C, 1, true> : scan_rows<Op, C, 1, false>;
      C buffer[block];
      for (int64_t r = 0; r < rows; ++r, from += stride, to += stride) {
        for (int64_t c = 0; c < count; c += block) {
          int64_t part = smaller(block, count - c);
          widen(from + c, part, buffer);
          one(state + c, buffer, buffer, 0, part);
          narrow(buffer, part, to + c);
        }
      }
    }
  }

  static void column_totals(const void* in, int64_t rows, int64_t stride, int64_t count,
                            void* states) {
    const T* from = static_cast<const T*>(in);
    C* state = static_cast<C*>(states);
    if constexpr (is_same<T, C>) {
      int64_t r = 0;
      for (; r + together <= rows; r += together)
        total_rows<Op, C, together>(state, from + r * stride, stride, count);
      for (; r < rows; ++r) total_rows<Op, C, 1>(state, from + r * stride, stride, count);
    } else {
      C buffer[block];
      for (int64_t r = 0; r < rows; ++r, from += stride) {
        for (int64_t c = 0; c < count; c += block) {
          int64_t part = smaller(block, count - c);
          widen(from + c, part, buffer);
          total_rows<Op, C, 1>(state + c, buffer, 0, part);
        }
      }
    }
  }

  static void combine(const void* from, int64_t count, void* into) {
    C* state = static_cast<C*>(into);
    combine_arrays<Op>(state, static_cast<const C*>(from), state, count);
  }

  static constexpr simd::ScanKernel kernel = {sizeof(C), initialise,    line,   line_total,
                                              columns,   column_totals, combine};
};

template <typename Op>
const simd::ScanKernel* find_inexact(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::float16:
      return &Scan<Op, Float16, float>::kernel;
    case Dtype::Val::bfloat16:
      return &Scan<Op, BFloat16, float>::kernel;
    case Dtype::Val::float64:
      return &Scan<Op, double, double>::kernel;
    case Dtype::Val::complex64:
      return &Scan<Op, Complex, Complex>::kernel;
    default:
      return &Scan<Op, float, float>::kernel;
  }
}

// Sums and products wrap: the same bits, signed or not.
template <typename Op>
const simd::ScanKernel* find_arithmetic(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
    case Dtype::Val::int8:
      return &Scan<Op, uint8_t, uint8_t>::kernel;
    case Dtype::Val::uint16:
    case Dtype::Val::int16:
      return &Scan<Op, uint16_t, uint16_t>::kernel;
    case Dtype::Val::uint32:
    case Dtype::Val::int32:
      return &Scan<Op, uint32_t, uint32_t>::kernel;
    case Dtype::Val::uint64:
    case Dtype::Val::int64:
      return &Scan<Op, uint64_t, uint64_t>::kernel;
    default:
      return find_inexact<Op>(dtype);
  }
}

template <typename Op>
const simd::ScanKernel* find_order(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return &Scan<Op, uint8_t, uint8_t>::kernel;
    case Dtype::Val::uint16:
      return &Scan<Op, uint16_t, uint16_t>::kernel;
    case Dtype::Val::uint32:
      return &Scan<Op, uint32_t, uint32_t>::kernel;
    case Dtype::Val::uint64:
      return &Scan<Op, uint64_t, uint64_t>::kernel;
    case Dtype::Val::int8:
      return &Scan<Op, int8_t, int8_t>::kernel;
    case Dtype::Val::int16:
      return &Scan<Op, int16_t, int16_t>::kernel;
    case Dtype::Val::int32:
      return &Scan<Op, int32_t, int32_t>::kernel;
    case Dtype::Val::int64:
      return &Scan<Op, int64_t, int64_t>::kernel;
    default:
      return find_inexact<Op>(dtype);
  }
}

const simd::ScanKernel* find(ScanOp op, Dtype::Val dtype) {
  switch (op) {
    case ScanOp::sum:
      return find_arithmetic<Sum>(dtype);
    case ScanOp::prod:
      return find_arithmetic<Prod>(dtype);
    case ScanOp::min:
      // Of 0 and 1 the product is the smaller one, and its identity is the largest bool.
      if (dtype == Dtype::Val::bool_) return find_arithmetic<Prod>(dtype);
      return find_order<Extreme<false>>(dtype);
    case ScanOp::max:
      return find_order<Extreme<true>>(dtype);
    case ScanOp::log_add_exp:
      break;
  }
  return find_inexact<LogAddExpOp>(dtype);
}

}  // namespace

extern const simd::ScanKernels scan_kernels;
const simd::ScanKernels scan_kernels{find};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
