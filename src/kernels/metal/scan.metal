// Running sums, products, extremes and logarithms of sums, along the middle of a dense
// [outer, length, inner] array. Long lines are cut into chunks: their totals first, then what comes
// before each, then the scan itself. The trees depend on the shape alone.
#include "support/indexing.h"
#include "support/reduction.h"
#include "support/rows.h"
#include "support/scan_parameters.h"

// --- what is scanned ---
// T: elements; State: in what they are computed. `combine` takes the earlier one first.

template <typename E, typename S>
struct Sum {
  using T = E;
  using State = S;
  static State identity(constant Scan&) { return State(0); }
  static State combine(State a, State b) { return a + b; }
  static State of(T value, constant Scan&) { return State(value); }
  static T value(State state, constant Scan&) { return T(state); }
};
template <typename E, typename S>
struct Prod : Sum<E, S> {
  static S identity(constant Scan&) { return S(1); }
  static S combine(S a, S b) { return a * b; }
};
struct ProdComplex : Sum<float2, float2> {
  static State identity(constant Scan&) { return float2(1, 0); }
  static State combine(State a, State b) {
    return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
  }
};

// The least so far, of what mask or sign make of the elements; NaN stays.
template <typename E, typename K>
struct Extreme {
  using T = E;
  using State = K;
  static State of(T value, constant Scan& scan) {
    if constexpr (is_integral_v<T>)
      return T(value ^ T(scan.mask));
    else
      return State(value) * scan.sign;
  }
  static T value(State state, constant Scan& scan) {
    if constexpr (is_integral_v<T>)
      return T(T(state) ^ T(scan.mask));
    else
      return T(state * scan.sign);
  }
  static State identity(constant Scan&) {
    if constexpr (is_integral_v<T>)
      return ~State(0);
    else
      return INFINITY;
  }
  static State combine(State a, State b) { return b < a || b != b ? b : a; }
};
struct ExtremeComplex {
  using T = float2;
  using State = float2;
  static State identity(constant Scan&) { return float2(INFINITY, INFINITY); }
  static bool is_nan(float2 a) { return a.x != a.x || a.y != a.y; }
  static State combine(State a, State b) {
    const bool before = b.x < a.x || (b.x == a.x && b.y < a.y);
    return !is_nan(a) && (before || is_nan(b)) ? b : a;
  }
  static State of(T value, constant Scan& scan) { return value * scan.sign; }
  static T value(State state, constant Scan& scan) { return state * scan.sign; }
};

inline float log_of_1_plus(float x) { return __hf::log1p(x); }
template <typename E>
struct LogAddExp : Sum<E, float> {
  static float identity(constant Scan&) { return -INFINITY; }
  static float combine(float a, float b) {
    const float larger = max(a, b);
    const float sum = larger + log_of_1_plus(exp(-abs(a - b)));
    return a != a || b != b ? a + b : isinf(larger) ? larger : sum;
  }
};
struct LogAddExpComplex : Sum<float2, float2> {
  static State identity(constant Scan&) { return float2(-INFINITY, 0); }
  static State combine(State a, State b) {
    const bool a_is_larger = a.x > b.x || (a.x == b.x && a.y >= b.y);
    const float2 large = a_is_larger ? a : b, small = a_is_larger ? b : a;
    const float size = exp(small.x - large.x), angle = small.y - large.y;
    const float x = size * cos(angle), y = size * sin(angle);
    const float2 sum = large + float2(0.5f * log_of_1_plus(x * (2 + x) + y * y), atan2(y, 1 + x));
    if (a.x != a.x || a.y != a.y) return a;
    if (b.x != b.x || b.y != b.y) return b;
    return isinf(small.x) || isinf(large.x) ? large : sum;
  }
};

// --- lines whose elements are neighbours ---

// What comes before the thread in its row of `threads` threads; `total`: what all have.
template <typename Op, typename State>
inline State scan_row(State state, thread State& total, uint threads, uint t,
                      threadgroup State* scratch, constant Scan& scan) {
  const uint lane = t % 32, in_group = min(threads, 32u), first = lane & ~(in_group - 1);
  for (uint distance = 1; distance < in_group; distance *= 2) {
    const State other = from_lane(state, lane - distance);
    if (lane - first >= distance) state = Op::combine(other, state);
  }
  State before = from_lane(state, lane - 1);
  if (lane == first) before = Op::identity(scan);
  total = from_lane(state, first + in_group - 1);
  if (threads <= 32) return before;
  threadgroup_barrier(mem_flags::mem_threadgroup);  // those that read the scratch before
  if (lane == 31) scratch[t / 32] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint group = t / threads * (threads / 32);
  total = Op::identity(scan);
  State earlier = total;
  for (uint i = 0; i < threads / 32; ++i) {
    if (group + i == t / 32) earlier = total;
    total = Op::combine(total, scratch[group + i]);
  }
  return Op::combine(earlier, before);
}

template <typename Op>
KERNEL(256)
scan_lines(const device typename Op::T* in, device typename Op::T* out,
           device typename Op::State* states, constant Scan& scan, constant Rows& rows, IN_GROUPS) {
  using T = typename Op::T;
  using State = typename Op::State;
  constexpr int per_block = Block<T>::size;
  threadgroup State scratch[8];
  const ulong unit = group_number(group, groups) * (256 / rows.threads) + t / rows.threads;
  const ulong number = unit / rows.chunks, chunk = unit % rows.chunks;
  const bool is_there = number < rows.count;
  const ulong first = (is_there ? number : 0) * rows.length;
  const uint misalignment = uint(rows.in_misalignment + first) & (per_block - 1);
  in += first;
  out += first;
  const uint lane = t % rows.threads;
  State carry = Op::identity(scan);
  if (is_there && scan.carries) carry = states[unit];
  // Blocks count along the scan.
  const ulong blocks = (rows.length + per_block - 1) / per_block;
  const ulong end = min((chunk + 1) * rows.chunk, blocks);
  for (ulong begin = chunk * rows.chunk; begin < end; begin += rows.threads) {
    const ulong position = (begin + lane) * per_block;
    const bool is_mine = is_there && begin + lane < end;
    const bool whole = is_mine && position + per_block <= rows.length;
    // In memory: of a whole block the place of its lowest element.
    const ulong low = scan.reverse ? rows.length - position - per_block : position;
    const bool aligned = ((misalignment + uint(low)) & (per_block - 1)) == 0;
    State x[per_block];
    for (int i = 0; i < per_block; ++i) x[i] = Op::identity(scan);
    if (whole && aligned) {
      const Block<T> values = load_block(in + low);
      for (int i = 0; i < per_block; ++i) {
        const T value = scan.reverse ? values.values[per_block - 1 - i] : values.values[i];
        x[i] = Op::of(value, scan);
      }
    } else if (is_mine) {
      for (int i = 0; i < per_block; ++i) {
        const ulong at = position + i;
        if (at < rows.length) x[i] = Op::of(in[scan.reverse ? rows.length - 1 - at : at], scan);
      }
    }
    for (int i = 1; i < per_block; ++i) x[i] = Op::combine(x[i - 1], x[i]);
    State total;
    State before = scan_row<Op>(x[per_block - 1], total, rows.threads, t, scratch, scan);
    before = Op::combine(carry, before);
    carry = Op::combine(carry, total);
    if (scan.totals || !is_mine) continue;
    T y[per_block];
    for (int i = 0; i < per_block; ++i) {
      const State state = scan.inclusive ? Op::combine(before, x[i])
                          : i == 0       ? before
                                         : Op::combine(before, x[max(i - 1, 0)]);
      y[i] = Op::value(state, scan);
    }
    if (whole && aligned) {
      Block<T> values;
      for (int i = 0; i < per_block; ++i)
        values.values[i] = scan.reverse ? y[per_block - 1 - i] : y[i];
      store_block(out + low, values);
    } else {
      for (int i = 0; i < per_block; ++i) {
        const ulong at = position + i;
        if (at < rows.length) out[scan.reverse ? rows.length - 1 - at : at] = y[i];
      }
    }
  }
  if (scan.totals && is_there && lane == 0) states[unit] = carry;
}

// Totals of `rows.length` chunks of each line become what comes before each of them.
template <typename Op>
KERNEL(256)
scan_states(device typename Op::State* states, constant Scan& scan, constant Rows& rows,
            IN_GROUPS) {
  using State = typename Op::State;
  threadgroup State scratch[8];
  const ulong number = group_number(group, groups);
  if (number >= rows.count) return;  // the whole threadgroup
  states += number * rows.length;
  State carry = Op::identity(scan);
  for (ulong begin = 0; begin < rows.length; begin += 256) {
    const ulong at = begin + t;
    State state = carry, total;
    if (at < rows.length) state = states[at];
    const State before =
        scan_row<Op>(at < rows.length ? state : Op::identity(scan), total, 256, t, scratch, scan);
    if (at < rows.length) states[at] = Op::combine(carry, before);
    carry = Op::combine(carry, total);
  }
}

// --- lines side by side: a thread has 16 bytes of them, or 8 of bytes, and goes along ---

template <typename Op>
KERNEL(256)
scan_columns(const device typename Op::T* in, device typename Op::T* out,
             device typename Op::State* states, constant Scan& scan, constant Rows& rows, IN_GRID) {
  using T = typename Op::T;
  using State = typename Op::State;
  constexpr int width = sizeof(T) == 1 ? 8 : Block<T>::size, together = 2;
  const ulong blocks = (scan.inner + width - 1) / width, number = thread_number(position, grid);
  const ulong column = number % blocks * width, chunk = number / blocks % rows.chunks;
  const ulong outer = number / blocks / rows.chunks;
  if (outer >= rows.count) return;
  const int there = int(min(ulong(width), scan.inner - column));
  const bool vector = scan.vector && there == width;
  const ulong line = outer * scan.inner + column;
  State state[width];
  for (int i = 0; i < width; ++i) {
    state[i] =
        scan.carries && i < there ? states[(line + i) * rows.chunks + chunk] : Op::identity(scan);
  }
  const ulong end = min((chunk + 1) * scan.chunk, rows.length);
  for (ulong row = chunk * scan.chunk; row < end; row += together) {
    T x[together][width];
    ulong at[together];
    for (int j = 0; j < together; ++j) {
      const ulong along = min(row + j, end - 1);
      const ulong memory_row = scan.reverse ? rows.length - 1 - along : along;
      at[j] = (outer * rows.length + memory_row) * scan.inner + column;
      if (!vector) {
        for (int i = 0; i < width; ++i) x[j][i] = in[at[j] + (i < there ? i : 0)];
      } else if constexpr (sizeof(T) == 1) {
        const ulong word = *reinterpret_cast<const device ulong*>(in + at[j]);
        for (int i = 0; i < width; ++i) x[j][i] = T(word >> (8 * i));
      } else {
        const Block<T> block = load_block(in + at[j]);
        for (int i = 0; i < width; ++i) x[j][i] = block.values[i];
      }
    }
    for (int j = 0; j < together; ++j) {
      if (row + j >= end) break;
      for (int i = 0; i < width; ++i) {
        const State next = Op::combine(state[i], Op::of(x[j][i], scan));
        x[j][i] = Op::value(scan.inclusive ? next : state[i], scan);
        state[i] = next;
      }
      if (scan.totals) continue;
      if (!vector) {
        for (int i = 0; i < there; ++i) out[at[j] + i] = x[j][i];
      } else if constexpr (sizeof(T) == 1) {
        ulong word = 0;
        for (int i = 0; i < width; ++i) word |= ulong(uchar(x[j][i])) << (8 * i);
        *reinterpret_cast<device ulong*>(out + at[j]) = word;
      } else {
        Block<T> block;
        for (int i = 0; i < width; ++i) block.values[i] = x[j][i];
        store_block(out + at[j], block);
      }
    }
  }
  if (!scan.totals) return;
  for (int i = 0; i < there; ++i) states[(line + i) * rows.chunks + chunk] = state[i];
}

// h = factor * h + term, one line a thread, in the order in which the host computes: products of
// factors alone could overflow where h does not.
template <typename T, typename State>
[[kernel]] void recurrence(const device T* factors, const device T* terms, device T* out,
                           constant Scan& scan, constant Rows& rows, IN_GRID) {
  const ulong line = thread_number(position, grid);
  if (line >= rows.count) return;
  const ulong first = line / scan.inner * scan.inner * rows.length + line % scan.inner;
  State state = 0;
  for (ulong k = 0; k < rows.length; ++k) {
    const ulong at = first + (scan.reverse ? rows.length - 1 - k : k) * scan.inner;
    const State factor = State(factors[at]), term = State(terms[at]);
    State product;
    if constexpr (sizeof(State) == 8)
      product = ProdComplex::combine(factor, state);
    else
      product = factor * state;
    state = k == 0 ? term : product + term;
    out[at] = T(state);
  }
}

#define SCAN(name, ...)                               \
  ENTRY("scan_lines_" #name, scan_lines<__VA_ARGS__>) \
  ENTRY("scan_columns_" #name, scan_columns<__VA_ARGS__>)
#define STATES(name, ...) ENTRY("scan_states_" #name, scan_states<__VA_ARGS__>)
#define ARITHMETIC(name, Op)               \
  SCAN(name##_1, Op<uchar, uint>)          \
  SCAN(name##_2, Op<ushort, uint>)         \
  SCAN(name##_4, Op<uint, uint>)           \
  SCAN(name##_8, Op<ulong, ulong>)         \
  SCAN(name##_float16, Op<half, float>)    \
  SCAN(name##_bfloat16, Op<bfloat, float>) \
  SCAN(name##_float32, Op<float, float>)   \
  STATES(name##_uint, Op<uint, uint>)      \
  STATES(name##_ulong, Op<ulong, ulong>)   \
  STATES(name##_float, Op<float, float>)
#define COMPLEX(name, ...)            \
  SCAN(name##_complex64, __VA_ARGS__) \
  STATES(name##_float2, __VA_ARGS__)
ARITHMETIC(sum, Sum)
ARITHMETIC(prod, Prod)
ARITHMETIC(extreme, Extreme)
COMPLEX(sum, Sum<float2, float2>)
COMPLEX(prod, ProdComplex)
COMPLEX(extreme, ExtremeComplex)
SCAN(log_float16, LogAddExp<half>)
SCAN(log_bfloat16, LogAddExp<bfloat>)
SCAN(log_float32, LogAddExp<float>)
STATES(log_float, LogAddExp<float>)
COMPLEX(log, LogAddExpComplex)

#define RECURRENCE(name, T) ENTRY("recurrence_" #name, recurrence<T, float>)
FOR_FLOATS(RECURRENCE)
ENTRY("recurrence_complex64", recurrence<float2, float2>)
