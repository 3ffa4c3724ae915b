#include "devices/cpu/jit/cross_lane.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/machine.h"

namespace holdfast::jit {
namespace {

using msl::Intrinsic;

constexpr uint32_t width = simdgroup_width;

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<T>(static_cast<uint32_t>(bits));
  } else {
    return std::bit_cast<T>(bits);
  }
}

template <class T>
uint64_t to_bits(T value) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<uint32_t>(value);
  } else {
    return std::bit_cast<uint64_t>(value);
  }
}

// Integers wrap: T is unsigned for add and mul.
struct Add {
  template <class T>
  static constexpr T neutral = T(0);
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Mul {
  template <class T>
  static constexpr T neutral = T(1);
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
// A NaN loses against a number; of two equal values (the zeros) the first one stays.
struct Min {
  template <class T>
  static constexpr T neutral =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                           : std::numeric_limits<T>::max();
  template <class T>
  static T apply(T a, T b) {
    if (a != a) return b;
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static constexpr T neutral =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                           : std::numeric_limits<T>::lowest();
  template <class T>
  static T apply(T a, T b) {
    if (a != a) return b;
    return b > a ? b : a;
  }
};
struct And {
  template <class T>
  static constexpr T neutral = static_cast<T>(~T(0));
  template <class T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static constexpr T neutral = T(0);
  template <class T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static constexpr T neutral = T(0);
  template <class T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};

using Matrix = float[8][8];

struct Bfloat {
  uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

#if defined(__x86_64__)
// As add_product does it, a row of c at a time.
__attribute__((target("avx2,fma"))) void add_product_fma(const Matrix& a, const Matrix& b,
                                                         Matrix& c) {
  for (uint32_t row = 0; row < 8; ++row) {
    __m256 sums = _mm256_loadu_ps(c[row]);
    for (uint32_t k = 0; k < 8; ++k)
      sums = _mm256_fmadd_ps(_mm256_set1_ps(a[row][k]), _mm256_loadu_ps(b[k]), sums);
    _mm256_storeu_ps(c[row], sums);
  }
}
#endif

// c += a * b, each product and sum rounded once.
void add_product(const Matrix& a, const Matrix& b, Matrix& c) {
#if defined(__x86_64__)
  // Without the instruction it is a call of the library for each.
  static const bool has_instruction = machine::supports(machine::InstructionSet::avx2);
  if (has_instruction) return add_product_fma(a, b, c);
#endif
  for (uint32_t row = 0; row < 8; ++row) {
    for (uint32_t k = 0; k < 8; ++k) {
      for (uint32_t column = 0; column < 8; ++column)
        c[row][column] = __builtin_fmaf(a[row][k], b[k][column], c[row][column]);
    }
  }
}

class Operation {
 public:
  Operation(uint32_t active, LaneValues& lanes) : active_(active), lanes_(lanes) {}

  template <class Op, class T>
  void reduce() const {
    T v[width];
    for (uint32_t i = 0; i < width; ++i)
      v[i] = is_active(i) ? from_bits<T>(lanes_.operands[0][i]) : Op::template neutral<T>;
    // Of the butterfly, what lane 0 gets.
    for (uint32_t distance = width / 2; distance > 0; distance /= 2) {
      for (uint32_t i = 0; i < distance; ++i) v[i] = Op::template apply<T>(v[i], v[i + distance]);
    }
    for_active([&](uint32_t i) { lanes_.results[i] = to_bits(v[0]); });
  }

  template <class Op, class T>
  void scan(bool inclusive) const {
    T v[width];
    for_active([&](uint32_t i) { v[i] = from_bits<T>(lanes_.operands[0][i]); });
    for (uint32_t distance = 1; distance < width; distance *= 2) {
      for_active([&](uint32_t i) {
        if ((i & distance) == 0) return;
        const uint32_t end = i & (~distance + 1);
        const uint32_t below = active_ & ((uint32_t{1} << distance) - 1) << (end - distance);
        if (below != 0) v[i] = Op::template apply<T>(v[last_of(below)], v[i]);
      });
    }
    for_active([&](uint32_t i) {
      const uint32_t before = active_ & ((uint32_t{1} << i) - 1);
      const T exclusive = before != 0 ? v[last_of(before)] : Op::template neutral<T>;
      lanes_.results[i] = to_bits(inclusive ? v[i] : exclusive);
    });
  }

  // `source(lane, operand)` is the lane that a value comes from.
  template <class Source>
  void shuffle(Source source) const {
    for_active([&](uint32_t i) {
      uint64_t from = source(uint64_t{i}, lanes_.operands[1][i]);
      lanes_.results[i] =
          lanes_.operands[0][from < width && is_active(static_cast<uint32_t>(from)) ? from : i];
    });
  }

  void ballot() const {
    uint64_t bits = 0;
    for_active([&](uint32_t i) {
      if (lanes_.operands[0][i] != 0) bits |= uint64_t{1} << i;
    });
    for_active([&](uint32_t i) { lanes_.results[i] = bits; });
  }

  void multiply_matrices() const {
    Matrix a = {}, b = {}, c = {};
    for_active([&](uint32_t i) {
      uint32_t row = row_of(i), column = column_of(i);
      for (uint32_t e = 0; e < 2; ++e) {
        a[row][column + e] = from_bits<float>(lanes_.operands[e][i]);
        b[row][column + e] = from_bits<float>(lanes_.operands[2 + e][i]);
        c[row][column + e] = from_bits<float>(lanes_.operands[4 + e][i]);
      }
    });
    add_product(a, b, c);
    for_active([&](uint32_t i) {
      uint32_t column = column_of(i) + (lanes_.operands[6][i] & 1);
      lanes_.results[i] = to_bits(c[row_of(i)][column]);
    });
  }

  // Of the product of 16×16 and 16×8 (msl/include/holdfast/tile.h), the element that is asked for
  // of every lane.
  template <class T>
  void multiply_tiles() const {
    const uint32_t any = static_cast<uint32_t>(std::countr_zero(active_));
    const auto which = static_cast<uint32_t>(lanes_.operands[10][any]);
    const uint32_t lower = which >> 1 & 1;  // rows 8 to 15
    Matrix c = {};
    for_active([&](uint32_t i) {
      for (uint32_t e = 0; e < 2; ++e)
        c[i / 4][i % 4 * 2 + e] = from_bits<float>(lanes_.operands[6 + 2 * lower + e][i]);
    });
    for (uint32_t half = 0; half < 2; ++half) {
      Matrix a = {}, b = {};
      for_active([&](uint32_t i) {
        for (uint32_t e = 0; e < 2; ++e) {
          a[i / 4][i % 4 * 2 + e] = element<T>(lanes_.operands[2 * half + lower][i], e);
          b[i % 4 * 2 + e][i / 4] = element<T>(lanes_.operands[4 + half][i], e);
        }
      });
      add_product(a, b, c);
    }
    for_active([&](uint32_t i) { lanes_.results[i] = to_bits(c[i / 4][i % 4 * 2 + (which & 1)]); });
  }

 private:
  // One of the two 16-bit elements of a word.
  template <class T>
  static float element(uint64_t word, uint32_t which) {
    return static_cast<float>(std::bit_cast<T>(static_cast<uint16_t>(word >> (16 * which))));
  }

  bool is_active(uint32_t lane) const { return (active_ >> lane & 1) != 0; }

  template <class Function>
  void for_active(Function function) const {
    if (active_ == ~uint32_t{0}) {
      for (uint32_t i = 0; i < width; ++i) function(i);
      return;
    }
    for (uint32_t i = 0; i < width; ++i) {
      if (is_active(i)) function(i);
    }
  }

  static uint32_t last_of(uint32_t lanes) {
    return width - 1 - static_cast<uint32_t>(std::countl_zero(lanes));
  }

  static uint32_t row_of(uint32_t lane) { return (lane / 4 & 4) + lane / 2 % 4; }
  static uint32_t column_of(uint32_t lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

  uint32_t active_;
  LaneValues& lanes_;
};

}  // namespace

void perform_cross_lane(Intrinsic operation, uint32_t active, LaneValues& lanes) {
  Operation o(active, lanes);
  auto same = [](uint64_t, uint64_t operand) { return operand; };
  auto exclusive_or = [](uint64_t lane, uint64_t operand) { return lane ^ operand; };
  auto up = [](uint64_t lane, uint64_t operand) { return lane - operand; };
  auto down = [](uint64_t lane, uint64_t operand) { return lane + operand; };
  switch (operation) {
    case Intrinsic::shuffle_u32:
    case Intrinsic::shuffle_u64:
      return o.shuffle(same);
    case Intrinsic::shuffle_xor_u32:
    case Intrinsic::shuffle_xor_u64:
      return o.shuffle(exclusive_or);
    case Intrinsic::shuffle_up_u32:
    case Intrinsic::shuffle_up_u64:
      return o.shuffle(up);
    case Intrinsic::shuffle_down_u32:
    case Intrinsic::shuffle_down_u64:
      return o.shuffle(down);
#define REDUCE(name, Op, T)      \
  case Intrinsic::reduce_##name: \
    return o.reduce<Op, T>();
      REDUCE(add_f32, Add, float)
      REDUCE(mul_f32, Mul, float)
      REDUCE(min_f32, Min, float)
      REDUCE(max_f32, Max, float)
      REDUCE(add_u32, Add, uint32_t)
      REDUCE(mul_u32, Mul, uint32_t)
      REDUCE(min_u32, Min, uint32_t)
      REDUCE(max_u32, Max, uint32_t)
      REDUCE(min_i32, Min, int32_t)
      REDUCE(max_i32, Max, int32_t)
      REDUCE(and_u32, And, uint32_t)
      REDUCE(or_u32, Or, uint32_t)
      REDUCE(xor_u32, Xor, uint32_t)
      REDUCE(add_u64, Add, uint64_t)
      REDUCE(mul_u64, Mul, uint64_t)
      REDUCE(min_u64, Min, uint64_t)
      REDUCE(max_u64, Max, uint64_t)
      REDUCE(min_i64, Min, int64_t)
      REDUCE(max_i64, Max, int64_t)
      REDUCE(and_u64, And, uint64_t)
      REDUCE(or_u64, Or, uint64_t)
      REDUCE(xor_u64, Xor, uint64_t)
#undef REDUCE
#define SCAN(name, Op, T)                \
  case Intrinsic::scan_exclusive_##name: \
    return o.scan<Op, T>(false);         \
  case Intrinsic::scan_inclusive_##name: \
    return o.scan<Op, T>(true);
      SCAN(add_f32, Add, float)
      SCAN(mul_f32, Mul, float)
      SCAN(add_u32, Add, uint32_t)
      SCAN(mul_u32, Mul, uint32_t)
      SCAN(add_u64, Add, uint64_t)
#undef SCAN
    case Intrinsic::ballot:
      return o.ballot();
    case Intrinsic::matrix_multiply_accumulate_f32:
      return o.multiply_matrices();
    case Intrinsic::mma_m16n8k16_f16:
      return o.multiply_tiles<_Float16>();
    case Intrinsic::mma_m16n8k16_bf16:
      return o.multiply_tiles<Bfloat>();
    default:
      break;
  }
  throw std::logic_error("[jit] intrinsic " + std::to_string(static_cast<int>(operation)) +
                         " is no cross-lane operation");
}

}  // namespace holdfast::jit
