// Fourier transforms of rows, by Stockham's method: passes that each transform `radix` elements,
// which are far from each other, in threadgroup memory. Short rows are one pass.
//
// A pass takes x[q + stride (p + groups k)], transforms it over k, multiplies with
// exp(-2 pi i p v / (radix groups)) and writes it to y[q + stride (radix p + v)]: after the last
// one, y is in order. For each q + stride p, which is a column, the elements of consecutive columns
// are neighbours. Inside a pass the same is done with small radices and columns for strides.
// Lengths with other factors than 2, 3, 5 and 7 become convolutions (Bluestein), of which
// what goes in and out of a pass makes the products.
#include "support/indexing.h"
#include "support/turns.h"
#include "support/fft_parameters.h"

enum Source { complex_row, real_row, half_row, filter, product };
enum Target { complex_result, real_result };

constant constexpr uint most_elements = 2048;

inline float2 times(float2 a, float2 b) {
  return float2(fma(a.x, b.x, -(a.y * b.y)), fma(a.x, b.y, a.y * b.x));
}
inline float2 conjugate(float2 a) { return float2(a.x, -a.y); }

// exp(-pi i k^2 / n); the square counts modulo 2 n.
inline float2 chirp_of(ulong k, ulong n) {
  const Turn turn = turn_by(double(k * k % (2 * n)) * 2.0L / double(n));
  return float2(float(turn.cosine), -float(turn.sine));
}

// Element i of a row that the first pass transforms.
inline float2 source_element(constant Fft& fft, const device float* in,
                             const device float2* filters, ulong row, ulong i) {
  const device float2* pairs = reinterpret_cast<const device float2*>(in);
  float2 x = 0;
  if (fft.source == filter) {
    const ulong k = i < fft.source_chirp ? i : fft.length - i;
    return k < fft.source_chirp ? conjugate(chirp_of(k, fft.source_chirp)) : float2(0);
  }
  if (fft.source == product) {
    // Conjugated, so that a forward transform goes back.
    return conjugate(times(pairs[row * fft.length + i], filters[i]));
  }
  const ulong length = fft.source_chirp != 0 ? fft.source_chirp : fft.length;
  if (i >= length) return x;
  if (fft.source == real_row) {
    if (i < min(fft.given, fft.expected)) x.x = in[row * fft.given + i];
  } else {
    const bool is_mirrored = fft.source == half_row && i >= fft.expected;
    const ulong k = is_mirrored ? length - i : i;
    if (k < min(fft.given, fft.expected)) x = pairs[row * fft.given + k];
    // The imaginary parts of the ends of a half do not count.
    if (fft.source == half_row && (k == 0 || 2 * k == length)) x.y = 0;
    if (is_mirrored != fft.conjugates_input) x = conjugate(x);
  }
  return fft.source_chirp != 0 ? times(x, chirp_of(i, fft.source_chirp)) : x;
}

// Element i of a row that the last pass has transformed.
inline void put_target(constant Fft& fft, device float* out, ulong row, ulong i, float2 x) {
  if (i >= fft.kept) return;
  if (fft.target_chirp != 0) x = times(conjugate(x), chirp_of(i, fft.target_chirp));
  if (fft.conjugates_output) x = conjugate(x);
  x *= fft.scale;
  if (fft.target == real_result) {
    out[row * fft.kept + i] = x.x;
  } else {
    reinterpret_cast<device float2*>(out)[row * fft.kept + i] = x;
  }
}

// cos and sin of 2 pi j / r for j = 1 … (r - 1) / 2.
template <int radix>
struct Roots;
template <>
struct Roots<3> {
  static constant constexpr float cosines[] = {-0.5f}, sines[] = {0.86602540378443865f};
};
template <>
struct Roots<5> {
  static constant constexpr float cosines[] = {0.30901699437494742f, -0.80901699437494742f},
                                  sines[] = {0.95105651629515357f, 0.58778525229247313f};
};
template <>
struct Roots<7> {
  static constant constexpr float cosines[] = {0.62348980185873353f, -0.22252093395631440f,
                                               -0.90096886790241913f},
                                  sines[] = {0.78183148246802981f, 0.97492791218182361f,
                                             0.43388373911755812f};
};

inline float2 minus_i_times(float2 a) { return float2(a.y, -a.x); }

// Transforms in registers.
template <int radix>
inline void transform(thread float2 (&x)[radix]) {
  if constexpr (radix == 2) {
    const float2 a = x[0], b = x[1];
    x[0] = a + b;
    x[1] = a - b;
  } else if constexpr (radix == 4) {
    const float2 a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3];
    const float2 d = minus_i_times(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  } else if constexpr (radix == 8) {
    float2 even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    transform<4>(even);
    transform<4>(odd);
    constexpr float half_root = 0.70710678118654752f;
    odd[1] = float2(odd[1].x + odd[1].y, odd[1].y - odd[1].x) * half_root;
    odd[2] = minus_i_times(odd[2]);
    odd[3] = float2(odd[3].y - odd[3].x, -odd[3].x - odd[3].y) * half_root;
    for (int i = 0; i < 4; ++i) {
      x[i] = even[i] + odd[i];
      x[i + 4] = even[i] - odd[i];
    }
  } else {
    constexpr int half_way = radix / 2;
    float2 sums[half_way], differences[half_way], first = x[0];
    for (int j = 1; j <= half_way; ++j) {
      sums[j - 1] = x[j] + x[radix - j];
      differences[j - 1] = minus_i_times(x[j] - x[radix - j]);
      first += sums[j - 1];
    }
    for (int k = 1; k <= half_way; ++k) {
      float2 even = x[0], odd = 0;
      for (int j = 1; j <= half_way; ++j) {
        const int turn = j * k % radix, at = turn <= half_way ? turn : radix - turn;
        even += sums[j - 1] * Roots<radix>::cosines[at - 1];
        odd += differences[j - 1] *
               (turn <= half_way ? Roots<radix>::sines[at - 1] : -Roots<radix>::sines[at - 1]);
      }
      // Elements that are still needed stay: results go to the places of sums and differences.
      x[k] = even;
      x[radix - k] = odd;
    }
    x[0] = first;
    for (int k = 1; k <= half_way; ++k) {
      const float2 even = x[k], odd = x[radix - k];
      x[k] = even + odd;
      x[radix - k] = even - odd;
    }
  }
}

// Where element i is in threadgroup memory: elements a radix apart are in different banks.
inline uint cell(uint i) { return i ^ (i >> 4 & 15); }

// Stockham's step with a small radix, from one half of threadgroup memory to the other.
template <int radix>
inline void step_in_threadgroup(const threadgroup float2* from, threadgroup float2* to, uint size,
                                uint stride, uint groups, uint t) {
  for (uint number = t; number < size / radix; number += 256) {
    const uint q = number % stride, p = number / stride;
    float2 x[radix];
    for (int k = 0; k < radix; ++k) x[k] = from[cell(number + k * groups * stride)];
    transform<radix>(x);
    // Powers of a root, in double: twiddle factors are right to the last bit.
    const Turn root = turn_by(double(p) * 4.0L / double(radix * groups));
    double c = 1, s = 0;
    for (int v = 0; v < radix; ++v) {
      if (v > 0) {
        const double next = c * root.cosine - s * root.sine;
        s = c * root.sine + s * root.cosine;
        c = next;
        x[v] = times(x[v], float2(float(c), -float(s)));
      }
      to[cell(q + stride * (radix * p + v))] = x[v];
    }
  }
}

// One pass. What is between passes are complex rows.
KERNEL(256)
fft_pass(const device float* in, device float* out, const device float2* filters, constant Fft& fft,
         constant Extent* counts, IN_GROUP(uint)) {
  threadgroup float2 memory[2][most_elements];
  const ulong first_column = ulong(group) * fft.together;
  const uint together = uint(min(ulong(fft.together), fft.columns - first_column));
  const uint size = fft.radix * together;
  // Neighbours in memory go to neighbouring threads: columns, or the elements of a whole row.
  const bool by_rows = fft.step == 1;
  for (uint i = t; i < size; i += 256) {
    const uint k = by_rows ? i % fft.radix : i / together;
    const uint c = by_rows ? i / fft.radix : i % together;
    ulong row = first_column + c;
    const ulong at = take_last(row, counts[0]) + fft.step * k;
    float2 x;
    if (fft.is_first) {
      x = source_element(fft, in, filters, row, at);
    } else {
      x = reinterpret_cast<const device float2*>(in)[row * fft.length + at];
    }
    memory[0][cell(k * together + c)] = x;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint groups = fft.radix, stride = together, half_number = 0;
  for (uint factors = fft.factors; factors != 0; factors >>= 4) {
    const uint radix = factors & 15;
    groups /= radix;
    const threadgroup float2* from = memory[half_number];
    threadgroup float2* to = memory[1 - half_number];
    if (radix == 8) step_in_threadgroup<8>(from, to, size, stride, groups, t);
    if (radix == 4) step_in_threadgroup<4>(from, to, size, stride, groups, t);
    if (radix == 2) step_in_threadgroup<2>(from, to, size, stride, groups, t);
    if (radix == 3) step_in_threadgroup<3>(from, to, size, stride, groups, t);
    if (radix == 5) step_in_threadgroup<5>(from, to, size, stride, groups, t);
    if (radix == 7) step_in_threadgroup<7>(from, to, size, stride, groups, t);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    stride *= radix;
    half_number = 1 - half_number;
  }
  // Neighbours are columns where there is a stride, else the elements of a column.
  const bool by_columns = fft.stride > 1;
  for (uint i = t; i < size; i += 256) {
    const uint v = by_columns ? i / together : i % fft.radix;
    const uint c = by_columns ? i % together : i / fft.radix;
    ulong row = first_column + c;
    const ulong column = take_last(row, counts[0]);
    ulong p = column;
    const ulong q = take_last(p, counts[1]);
    float2 x = memory[half_number][cell(v * together + c)];
    if (fft.groups > 1) {
      const Turn turn = turn_by(double(p * v) * 4.0L / (double(fft.radix) * double(fft.groups)));
      x = times(x, float2(float(turn.cosine), -float(turn.sine)));
    }
    const ulong at = q + fft.stride * (fft.radix * p + v);
    if (fft.is_last) {
      put_target(fft, out, row, at, x);
    } else {
      reinterpret_cast<device float2*>(out)[row * fft.length + at] = x;
    }
  }
}
