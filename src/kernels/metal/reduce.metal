// Reductions over any axes. A State takes in elements, several at a time, in a tree: that of a
// thread, then of its row or column of threads, then of chunks of a long reduction, in a second
// dispatch. All depends on the shape alone.
#include "support/indexing.h"
#include "support/reduction.h"
#include "support/reduce_parameters.h"
// Sums of blocks are added in double precision, as on the host, and products are computed in it.
#undef double

// Of several dimensions there are fewer than 2^31 positions.
inline long position_of(long index, constant Extent* extents, int dimensions) {
  if (dimensions <= 1) return dimensions == 1 ? index * extents[0].stride : 0;
  return offset_of(uint(index), extents, dimensions);
}

// --- what is reduced ---
// T: elements. `add` takes in n elements, numbered first, first + step, ….

template <typename T, typename S>
inline void put(device uchar* out, ulong index, S value) {
  reinterpret_cast<device T*>(out)[index] = T(value);
}

// Sum of v[0 … n), in pairs.
template <int n, typename F>
inline F tree_sum(thread F* v) {
  for (int half = n / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) v[i] += v[i + half];
  }
  return v[0];
}

// What sums and products of complex numbers are computed in.
struct DoublePair {
  double real, imag;
  DoublePair from_lane(uint lane) const {
    return {::from_lane(real, lane), ::from_lane(imag, lane)};
  }
};
inline DoublePair operator+(DoublePair a, DoublePair b) {
  return {a.real + b.real, a.imag + b.imag};
}
inline DoublePair operator*(DoublePair a, DoublePair b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
template <typename S, typename E>
inline S widened(E value) {
  if constexpr (is_same_v<S, DoublePair>)
    return {double(value.x), double(value.y)};
  else if constexpr (is_same_v<S, double>)
    return double(float(value));
  else
    return S(value);
}

// S: unsigned, of 32 or 64 bits, where integers wrap; else double or pairs of it.
template <bool is_product, typename E, typename S>
struct Arithmetic {
  using T = E;
  using State = S;
  static State identity() {
    if constexpr (is_same_v<S, DoublePair>)
      return {double(is_product), 0};
    else
      return S(is_product);
  }
  static State combine(State a, State b) {
    if constexpr (is_product)
      return a * b;
    else
      return a + b;
  }
  template <int n>
  static void add(thread State& state, const thread T* v, ulong, ulong, constant Reduction&) {
    if constexpr (is_product || is_integral_v<T>) {
      for (int i = 0; i < n; ++i) state = combine(state, widened<S>(v[i]));
    } else {
      using Single = conditional_t<is_same_v<S, DoublePair>, float2, float>;
      Single x[n];
      for (int i = 0; i < n; ++i) x[i] = Single(v[i]);
      state = state + widened<S>(tree_sum<n>(x));
    }
  }
  static void store(device uchar* out, ulong index, State state, constant Reduction& r) {
    if constexpr (is_same_v<S, DoublePair>)
      reinterpret_cast<device float2*>(out)[index] = float2(float(state.real), float(state.imag));
    else if constexpr (is_integral_v<T>)
      put<S>(out, index, state);
    else if (sizeof(T) == 2 && r.widens)
      put<float>(out, index, float(state));
    else
      put<T>(out, index, float(state));
  }
};

// all and any: whether some element decides the result. Bits that do not count are the signs of
// zeros. U: unsigned.
template <typename U>
struct Truth {
  using T = U;
  using State = uint;
  static State identity() { return 0; }
  static State combine(State a, State b) { return a | b; }
  template <int n>
  static void add(thread State& state, const thread T* v, ulong, ulong, constant Reduction& r) {
    for (int i = 0; i < n; ++i) state |= uint(((v[i] & T(r.mask)) != 0) != r.is_all);
  }
  static void store(device uchar* out, ulong index, State state, constant Reduction& r) {
    out[index] = uchar((state != 0) != r.is_all);
  }
};

// Keys are numbers of which the least is looked for: `key` makes them, `value` is its inverse.
template <typename U>
struct IntegerKeys {
  using T = U;
  using Key = conditional_t<sizeof(U) == 8, ulong, uint>;
  static constant constexpr bool covers_range = sizeof(U) >= 4;  // any key may be of an element
  static Key last() { return ~Key(0); }
  static Key key(T value, constant Reduction& r) { return T(value ^ T(r.mask)); }
  static T value(Key key, constant Reduction& r) { return T(T(key) ^ T(r.mask)); }
  static bool is_less(Key a, Key b) { return a < b; }
  static bool is_equal(Key a, Key b) { return a == b; }
  static bool is_nan(Key) { return false; }
};
template <typename E>
struct FloatKeys {
  using T = E;
  using Key = float;
  static constant constexpr bool covers_range = true;
  static Key last() { return INFINITY; }
  static Key key(T value, constant Reduction& r) { return float(value) * r.sign; }
  static T value(Key key, constant Reduction& r) { return T(key * r.sign); }
  static bool is_less(Key a, Key b) { return a < b; }
  static bool is_equal(Key a, Key b) { return a == b; }
  static bool is_nan(Key a) { return a != a; }
};
struct ComplexKeys {
  using T = float2;
  using Key = float2;
  static constant constexpr bool covers_range = true;
  static Key last() { return float2(INFINITY, INFINITY); }
  static Key key(T value, constant Reduction& r) { return value * r.sign; }
  static T value(Key key, constant Reduction& r) { return key * r.sign; }
  static bool is_less(Key a, Key b) {
    return !is_nan(b) && (a.x < b.x || (a.x == b.x && a.y < b.y));
  }
  static bool is_equal(Key a, Key b) { return a.x == b.x && a.y == b.y; }
  static bool is_nan(Key a) { return a.x != a.x || a.y != a.y; }
};

// The least key, or the first NaN.
template <typename Keys>
struct Extreme {
  using T = typename Keys::T;
  using State = typename Keys::Key;
  static State identity() { return Keys::last(); }
  static State combine(State a, State b) {
    return Keys::is_less(b, a) || (Keys::is_nan(b) && !Keys::is_nan(a)) ? b : a;
  }
  template <int n>
  static void add(thread State& state, const thread T* v, ulong, ulong, constant Reduction& r) {
    for (int i = 0; i < n; ++i) {
      const State key = Keys::key(v[i], r);
      state = Keys::is_less(key, state) || Keys::is_nan(key) ? key : state;
    }
  }
  static void store(device uchar* out, ulong index, State state, constant Reduction& r) {
    reinterpret_cast<device T*>(out)[index] = Keys::value(state, r);
  }
};

// The index of the first element with the least key, or of the first NaN.
template <typename Keys>
struct ArgExtreme {
  using T = typename Keys::T;
  using Key = typename Keys::Key;
  struct State {
    Key key;
    uint index;  // ~0: no element yet
    State from_lane(uint lane) const { return {::from_lane(key, lane), ::from_lane(index, lane)}; }
  };
  static constant constexpr uint none = ~0u;
  static State identity() { return {Keys::last(), none}; }
  static State combine(State a, State b) {
    const bool a_nan = Keys::is_nan(a.key), b_nan = Keys::is_nan(b.key);
    const bool before = a_nan || b_nan ? b_nan && !a_nan : Keys::is_less(b.key, a.key);
    const bool same = a_nan || b_nan ? a_nan && b_nan : Keys::is_equal(b.key, a.key);
    return before || (same && b.index < a.index) ? b : a;
  }
  // Of a thread that takes several at a time, indices grow.
  template <int n>
  static void add(thread State& state, const thread T* v, ulong first, ulong step,
                  constant Reduction& r) {
    if (n == 1) {
      state = combine(state, {Keys::key(v[0], r), uint(first)});
      return;
    }
    int found = -1;
    if (Keys::covers_range && state.index == none) found = 0, state.key = Keys::key(v[0], r);
    for (int i = 0; i < n; ++i) {
      const Key key = Keys::key(v[i], r);
      const bool takes =
          Keys::is_less(key, state.key) || (Keys::is_nan(key) && !Keys::is_nan(state.key));
      state.key = takes ? key : state.key;
      found = takes ? i : found;
    }
    if (found >= 0) state.index = uint(first) + uint(found) * uint(step);
  }
  static void store(device uchar* out, ulong index, State state, constant Reduction&) {
    put<uint>(out, index, state.index);
  }
};

template <typename Op>
inline void finish(device uchar* out, ulong output, ulong chunk, typename Op::State state,
                   constant Reduction& r) {
  if (r.writes_states)
    reinterpret_cast<device typename Op::State*>(out)[output * r.chunks + chunk] = state;
  else
    Op::store(out, output, state, r);
}

// --- rows: a thread takes neighbours along the reduced axes ---

template <typename Op>
KERNEL(256)
reduce_rows(const device uchar* in, device uchar* out, constant Reduction& r, constant Extent* kept,
            constant Extent* reduced, IN_GROUPS) {
  using T = typename Op::T;
  using State = typename Op::State;
  constexpr long per_block = Block<T>::size;
  threadgroup State scratch[8];
  const ulong unit = group_number(group, groups) * (256 / r.threads) + t / r.threads;
  const uint lane = t % r.threads;
  const ulong output = r.chunks == 1 ? unit : unit / r.chunks;
  const ulong chunk = r.chunks == 1 ? 0 : unit % r.chunks;
  State state = Op::identity();
  if (output < r.outputs && r.reads_states) {
    const device State* states = reinterpret_cast<const device State*>(in) + output * r.length;
    for (ulong i = lane; i < r.length; i += r.threads) state = Op::combine(state, states[i]);
  } else if (output < r.outputs && r.length > 0) {
    const long offset = position_of(output, kept, r.kept_dimensions);
    const device T* row = reinterpret_cast<const device T*>(in) + r.base + offset;
    const long length = r.length, step = r.threads;
    // Elements of the chunk are taken by themselves from `tail` on, those before in blocks.
    const long begin = chunk * r.chunk * per_block;
    const long end = min(begin + long(r.chunk) * per_block, length);
    long tail = begin;
    if (r.vector) {
      const bool is_straight = r.reduced_dimensions <= 1;
      const uint misalignment = is_straight ? uint(r.misalignment + offset) & (per_block - 1) : 0;
      const auto load = [&](long position) {
        return load_shifted(row + position_of(position, reduced, r.reduced_dimensions),
                            misalignment);
      };
      tail = begin + (end - begin) / per_block * per_block;
      const long apart = step * per_block;
      for (long position = begin + lane * per_block; position < tail; position += 2 * apart) {
        const bool both = position + apart < tail;
        const long next = both ? position + apart : position;
        const Block<T> one = load(position), other = load(next);
        Op::template add<per_block>(state, one.values, position, 1, r);
        if (both) Op::template add<per_block>(state, other.values, next, 1, r);
      }
    }
    for (long position = tail + lane; position < end; position += step) {
      const T value = row[position_of(position, reduced, r.reduced_dimensions)];
      Op::template add<1>(state, &value, position, 1, r);
    }
  }
  state = reduce_row<Op>(state, r.threads, t, scratch);
  if (lane == 0 && output < r.outputs) finish<Op>(out, output, chunk, state, r);
}

// --- columns: a thread takes neighbours along the innermost kept axis, and goes down ---

// 16 bytes, or 8 of bytes: their states would fill the registers.
template <typename T, int n>
struct Columns {
  T values[n];
};

template <typename Op>
KERNEL(256)
reduce_columns(const device uchar* in, device uchar* out, constant Reduction& r,
               constant Extent* kept, constant Extent* reduced, IN_GROUPS) {
  using T = typename Op::T;
  using State = typename Op::State;
  constexpr int per_block = sizeof(T) == 1 ? 8 : Block<T>::size, together = 4;
  threadgroup State scratch[per_block][128];
  const ulong number = group_number(group, groups);
  const ulong block = number / r.chunks % r.column_blocks;
  const ulong outer = number / r.chunks / r.column_blocks, chunk = number % r.chunks;
  const ulong first_output = outer * r.columns;
  if (first_output >= r.outputs) return;  // the whole threadgroup
  const uint x = t % r.threads, y = t / r.threads, height = 256 / r.threads;
  const ulong column = (block * r.threads + x) * per_block;
  State states[per_block];
  for (int i = 0; i < per_block; ++i) states[i] = Op::identity();
  if (column < r.columns) {
    const device T* from = reinterpret_cast<const device T*>(in) + r.base +
                           position_of(first_output + column, kept, r.kept_dimensions);
    const uint width = uint(min(ulong(per_block), r.columns - column));
    const bool whole = r.vector && width == per_block;
    const ulong end = min(r.length, (chunk + 1) * r.chunk);
    const auto load = [&](ulong row) {
      const device T* at = from + position_of(row, reduced, r.reduced_dimensions);
      Columns<T, per_block> loaded;
      if (!whole) {
        for (uint i = 0; i < per_block; ++i) loaded.values[i] = at[i < width ? i : 0];
      } else if constexpr (sizeof(T) == 1) {
        const ulong word = *reinterpret_cast<const device ulong*>(at);
        for (int i = 0; i < per_block; ++i) loaded.values[i] = T(word >> (8 * i));
      } else {
        const Block<T> block = load_block(at);
        for (int i = 0; i < per_block; ++i) loaded.values[i] = block.values[i];
      }
      return loaded;
    };
    ulong row = chunk * r.chunk + y;
    for (; row + (together - 1) * height < end; row += together * height) {
      Columns<T, per_block> rows[together];
      for (int j = 0; j < together; ++j) rows[j] = load(row + j * height);
      for (int i = 0; i < per_block; ++i) {
        T values[together];
        for (int j = 0; j < together; ++j) values[j] = rows[j].values[i];
        Op::template add<together>(states[i], values, row, height, r);
      }
    }
    for (; row < end; row += height) {
      const Columns<T, per_block> values = load(row);
      for (int i = 0; i < per_block; ++i)
        Op::template add<1>(states[i], &values.values[i], row, height, r);
    }
  }
  for (uint half = height / 2; half > 0; half /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (y >= half && y < 2 * half) {
      for (int i = 0; i < per_block; ++i) scratch[i][t - half * r.threads] = states[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (y < half) {
      for (int i = 0; i < per_block; ++i) states[i] = Op::combine(states[i], scratch[i][t]);
    }
  }
  if (y > 0) return;
  for (int i = 0; i < per_block; ++i) {
    if (column + i < r.columns) finish<Op>(out, first_output + column + i, chunk, states[i], r);
  }
}

#define ROWS(name, ...) ENTRY("reduce_rows_" #name, reduce_rows<__VA_ARGS__>)
#define COLUMNS(name, ...) ENTRY("reduce_columns_" #name, reduce_columns<__VA_ARGS__>)
#define BOTH(name, ...) ROWS(name, __VA_ARGS__) COLUMNS(name, __VA_ARGS__)

#define ARITHMETIC(FORM, name, is_product)                      \
  FORM(name##_uint8, Arithmetic<is_product, uchar, uint>)       \
  FORM(name##_uint16, Arithmetic<is_product, ushort, uint>)     \
  FORM(name##_uint32, Arithmetic<is_product, uint, uint>)       \
  FORM(name##_uint64, Arithmetic<is_product, ulong, ulong>)     \
  FORM(name##_int8, Arithmetic<is_product, char, uint>)         \
  FORM(name##_int16, Arithmetic<is_product, short, uint>)       \
  FORM(name##_float16, Arithmetic<is_product, half, double>)    \
  FORM(name##_bfloat16, Arithmetic<is_product, bfloat, double>) \
  FORM(name##_float32, Arithmetic<is_product, float, double>)   \
  FORM(name##_complex64, Arithmetic<is_product, float2, DoublePair>)
ARITHMETIC(BOTH, sum, false)
ARITHMETIC(ROWS, prod, true)

#define ORDER(name, Op)                        \
  BOTH(name##_1, Op<IntegerKeys<uchar>>)       \
  BOTH(name##_2, Op<IntegerKeys<ushort>>)      \
  BOTH(name##_4, Op<IntegerKeys<uint>>)        \
  BOTH(name##_8, Op<IntegerKeys<ulong>>)       \
  BOTH(name##_float16, Op<FloatKeys<half>>)    \
  BOTH(name##_bfloat16, Op<FloatKeys<bfloat>>) \
  BOTH(name##_float32, Op<FloatKeys<float>>)   \
  BOTH(name##_complex64, Op<ComplexKeys>)
ORDER(extreme, Extreme)
ORDER(arg, ArgExtreme)
BOTH(truth_1, Truth<uchar>)
BOTH(truth_2, Truth<ushort>)
BOTH(truth_4, Truth<uint>)
BOTH(truth_8, Truth<ulong>)
