// Programs of element-wise ops, interpreted: what a group of ops does before it has a kernel of its
// own (kernels/metal/encode/fused.cpp). A thread takes 4 neighbouring elements through all
// instructions, which are the same for all threads: one value stays in registers, others in the
// thread's slots of threadgroup memory. So that no kernel is large, there is one for each family of
// lanes; and what takes much code goes from element to element in a loop that is not unrolled.
#include "support/indexing.h"
#include "kernels/elementwise/math.h"
#include "kernels/elementwise/complex.h"
#include "kernels/elementwise/codes.h"

constant constexpr int N = 4;  // elements of a thread
constant constexpr uint group_size = 128;

#define ROLLED _Pragma("clang loop unroll(disable)")

struct Program {
  ulong size;
  uint instructions;
  bool is_large;  // 2^31 elements and more
};

// The elements of a value: a word each, or two in families that have 64 bits for some.
template <bool wide>
struct Words {
  static constant constexpr int count = wide ? 2 * N : N;
  uint v[count];
};

template <typename T, bool wide>
inline T value(Words<wide> words, int i) {
  if constexpr (sizeof(T) == 8)
    return as_type<T>(ulong(words.v[2 * i]) | ulong(words.v[2 * i + 1]) << 32);
  else
    return as_type<T>(words.v[i]);
}
template <typename T, bool wide>
inline void set(thread Words<wide>& words, int i, T value) {
  if constexpr (sizeof(T) == 8) {
    words.v[2 * i] = uint(as_type<ulong>(value));
    words.v[2 * i + 1] = uint(as_type<ulong>(value) >> 32);
  } else {
    words.v[i] = as_type<uint>(value);
  }
}
// Registers have no index: in a loop, the elements move up one by one.
template <typename T, bool wide>
inline void push(thread Words<wide>& words, T last) {
  for (int i = 0; i + 1 < N; ++i) set(words, i, value<T>(words, i + 1));
  set(words, N - 1, last);
}
template <typename T, bool wide>
inline T pop(thread Words<wide>& words) {
  const T first = value<T>(words, 0);
  push(words, first);
  return first;
}

// --- Memory. Elements of any type become their bits, a word or two each, and bits elements.

inline int size_of(ElementType type) {
  return type == ElementType::b64   ? 8
         : type == ElementType::b32 ? 4
         : type >= ElementType::u16 ? 2
                                    : 1;
}

template <bool wide>
inline Words<wide> load_block(const device uchar* from, int size) {
  Words<wide> words = {};
  if (size == 1) {
    const uint all = *reinterpret_cast<const device uint*>(from);
    for (int i = 0; i < N; ++i) words.v[i] = all >> (8 * i) & 0xff;
  } else if (size == 2) {
    const uint2 all = *reinterpret_cast<const device uint2*>(from);
    for (int i = 0; i < N; ++i) words.v[i] = all[i / 2] >> (i % 2 * 16) & 0xffff;
  } else {
    const uint4 low = *reinterpret_cast<const device uint4*>(from);
    for (int i = 0; i < 4; ++i) words.v[i] = low[i];
    if constexpr (wide) {
      if (size == 8) {
        const uint4 high = *reinterpret_cast<const device uint4*>(from + 16);
        for (int i = 0; i < 4; ++i) words.v[4 + i] = high[i];
      }
    }
  }
  return words;
}
template <bool wide>
inline void store_block(device uchar* to, int size, Words<wide> words) {
  if (size == 1) {
    uint all = 0;
    for (int i = 0; i < N; ++i) all |= (words.v[i] & 0xff) << (8 * i);
    *reinterpret_cast<device uint*>(to) = all;
  } else if (size == 2) {
    uint2 all = 0;
    for (int i = 0; i < N; ++i) all[i / 2] |= (words.v[i] & 0xffff) << (i % 2 * 16);
    *reinterpret_cast<device uint2*>(to) = all;
  } else {
    *reinterpret_cast<device uint4*>(to) = uint4(words.v[0], words.v[1], words.v[2], words.v[3]);
    if constexpr (wide) {
      if (size == 8)
        *reinterpret_cast<device uint4*>(to + 16) =
            uint4(words.v[4], words.v[5], words.v[6], words.v[7]);
    }
  }
}

inline long place_of(constant FusedInput& input, constant Extent* extents,
                     constant Program& program, ulong index) {
  if (input.access == FusedAccess::scalar) return 0;  // of one element
  if (input.access == FusedAccess::dense) return long(index);
  extents += input.first_extent;
  return program.is_large ? offset_of(index, extents, input.dimensions)
                          : offset_of(uint(index), extents, input.dimensions);
}
inline bool is_block(constant FusedInput& input, constant Program& program, ulong first) {
  return input.aligned && first + N <= program.size;
}
template <bool wide>
inline Words<wide> load_elements(const device uchar* from, constant FusedInput& input,
                                 constant Extent* extents, constant Program& program, ulong first) {
  const int size = size_of(input.type);
  const bool is_scalar = input.access == FusedAccess::scalar;
  Words<wide> words = {};
  ROLLED for (int i = is_scalar ? N - 1 : 0; i < N; ++i) {
    const ulong index = min(first + i, program.size - 1);
    const device uchar* at = from + place_of(input, extents, program, index) * size;
    if (size == 1) {
      push(words, uint(*at));
    } else if (size == 2) {
      push(words, uint(*reinterpret_cast<const device ushort*>(at)));
    } else if (wide && size == 8) {
      push(words, *reinterpret_cast<const device ulong*>(at));
    } else {
      push(words, *reinterpret_cast<const device uint*>(at));
    }
  }
  if (is_scalar && wide && size == 8) {
    for (int i = 0; i + 1 < N; ++i) set(words, i, value<ulong>(words, N - 1));
  } else if (is_scalar) {
    for (int i = 0; i + 1 < N; ++i) set(words, i, value<uint>(words, N - 1));
  }
  return words;
}
template <bool wide>
inline void store_elements(device uchar* to, int size, ulong first, ulong end, Words<wide> words) {
  ROLLED for (ulong i = first; i < min(first + N, end); ++i) {
    if (wide && size == 8) {
      reinterpret_cast<device ulong*>(to)[i] = pop<ulong>(words);
      continue;
    }
    const uint bits = pop<uint>(words);
    if (size == 1) {
      to[i] = uchar(bits);
    } else if (size == 2) {
      reinterpret_cast<device ushort*>(to)[i] = ushort(bits);
    } else {
      reinterpret_cast<device uint*>(to)[i] = bits;
    }
  }
}

// From bits to a lane's values, and back.
#define EACH(T, ...)                \
  for (int i = 0; i < N; ++i) {     \
    const T x = value<T>(words, i); \
    set(words, i, __VA_ARGS__);     \
  }                                 \
  break;
template <bool wide>
inline Words<wide> decoded(Words<wide> words, ElementType type) {
  switch (type) {
    case ElementType::i8:
      EACH(uint, int(char(x)))
    case ElementType::i16:
      EACH(uint, int(short(x)))
    case ElementType::f16:
      EACH(uint, float(as_type<half>(ushort(x))))
    case ElementType::bf16:
      EACH(uint, x << 16)
    default:
      break;
  }
  return words;
}
template <bool wide>
inline Words<wide> encoded(Words<wide> words, ElementType type) {
  switch (type) {
    case ElementType::f16:
      EACH(float, uint(as_type<ushort>(half(x))))
    case ElementType::bf16:
      EACH(float, uint(as_type<ushort>(bfloat(x))))
    default:
      break;
  }
  return words;
}
template <bool wide>
inline Words<wide> finished(Words<wide> words, Finish finish) {
  switch (finish) {
    case Finish::float16:
      EACH(float, finish_float16(x))
    case Finish::bfloat16:
      EACH(float, finish_bfloat16(x))
    case Finish::int8:
      EACH(int, finish_int8(x))
    case Finish::int16:
      EACH(int, finish_int16(x))
    case Finish::uint8:
      EACH(uint, finish_uint8(x))
    case Finish::uint16:
      EACH(uint, finish_uint16(x))
    default:
      break;
  }
  return words;
}
#undef EACH

// --- The ops, by the lane of the operands.

#define UNARY(name)                                                   \
  case FusedOp::name:                                                 \
    for (int i = 0; i < N; ++i) set(result, i, name(value<T>(a, i))); \
    break;
#define BINARY(name)                                                                  \
  case FusedOp::name:                                                                 \
    for (int i = 0; i < N; ++i) set(result, i, name(value<T>(a, i), value<T>(b, i))); \
    break;
#define LARGE_UNARY(name)                                             \
  case FusedOp::name:                                                 \
    ROLLED for (int i = 0; i < N; ++i) push(result, name(pop<T>(a))); \
    break;
#define LARGE_BINARY(name)               \
  case FusedOp::name:                    \
    ROLLED for (int i = 0; i < N; ++i) { \
      const T x = pop<T>(a);             \
      push(result, name(x, pop<T>(b)));  \
    }                                    \
    break;
#define COMPARISONS BINARY(Equal) BINARY(NotEqual) BINARY(Less) BINARY(LessEqual)

inline Words<false> float_op(FusedOp op, Words<false> a, Words<false> b) {
  using T = float;
  Words<false> result = {};
  // clang-format off
  switch (op) {
    UNARY(Abs) UNARY(Negative) UNARY(Sign) UNARY(Floor) UNARY(Ceil) UNARY(Trunc) UNARY(Round)
    UNARY(Square) UNARY(Sqrt) UNARY(Rsqrt) LARGE_UNARY(Exp) LARGE_UNARY(Expm1) LARGE_UNARY(Log)
    LARGE_UNARY(Log2) LARGE_UNARY(Log10) LARGE_UNARY(Log1p) LARGE_UNARY(Sin) LARGE_UNARY(Cos)
    LARGE_UNARY(Tan) LARGE_UNARY(ArcSin) LARGE_UNARY(ArcCos) LARGE_UNARY(ArcTan) LARGE_UNARY(Sinh)
    LARGE_UNARY(Cosh) LARGE_UNARY(Tanh) LARGE_UNARY(ArcSinh) LARGE_UNARY(ArcCosh)
    LARGE_UNARY(ArcTanh) LARGE_UNARY(Sigmoid) LARGE_UNARY(Erf) LARGE_UNARY(ErfInv) UNARY(IsNaN)
    UNARY(IsInf) UNARY(IsFinite) UNARY(IsPosInf) UNARY(IsNegInf)
    BINARY(Add) BINARY(Subtract) BINARY(Multiply) BINARY(Divide) LARGE_BINARY(FloorDivide)
    LARGE_BINARY(Remainder) LARGE_BINARY(Power) BINARY(Maximum) BINARY(Minimum)
    LARGE_BINARY(ArcTan2) LARGE_BINARY(LogAddExp) COMPARISONS
    UNARY(ToBool) LARGE_UNARY(ToInt8) LARGE_UNARY(ToInt16) LARGE_UNARY(ToInt32)
    LARGE_UNARY(ToUint8) LARGE_UNARY(ToUint16) LARGE_UNARY(ToUint32)
    default: break;
  }
  // clang-format on
  return result;
}

// Of integers: what goes by the sign, and what does not.
template <typename T, bool wide>
inline Words<wide> signed_op(FusedOp op, Words<wide> a, Words<wide> b) {
  Words<wide> result = {};
  // clang-format off
  switch (op) {
    UNARY(Abs) UNARY(Sign) LARGE_BINARY(FloorDivide) LARGE_BINARY(Remainder) LARGE_BINARY(Power)
    BINARY(Maximum) BINARY(Minimum) BINARY(RightShift) BINARY(Less) BINARY(LessEqual) UNARY(ToFloat)
    default: break;
  }
  // clang-format on
  return result;
}
template <typename T, bool wide>
inline Words<wide> bitwise_op(FusedOp op, Words<wide> a, Words<wide> b) {
  Words<wide> result = {};
  // clang-format off
  switch (op) {
    UNARY(Negative) UNARY(Square) UNARY(BitwiseInvert) BINARY(Add) BINARY(Subtract) BINARY(Multiply)
    BINARY(BitwiseAnd) BINARY(BitwiseOr) BINARY(BitwiseXor) BINARY(LeftShift) BINARY(Equal)
    BINARY(NotEqual) UNARY(ToBool) UNARY(ToUint32) UNARY(LogicalNot)
    default: break;
  }
  // clang-format on
  return result;
}
inline bool goes_by_sign(FusedOp op) {
  return op == FusedOp::Abs || op == FusedOp::Sign || op == FusedOp::FloorDivide ||
         op == FusedOp::Remainder || op == FusedOp::Power || op == FusedOp::Maximum ||
         op == FusedOp::Minimum || op == FusedOp::RightShift || op == FusedOp::Less ||
         op == FusedOp::LessEqual || op == FusedOp::ToFloat;
}
template <typename Signed, typename Unsigned, bool wide>
inline Words<wide> integer_op(FusedOp op, bool is_signed, Words<wide> a, Words<wide> b) {
  if (!goes_by_sign(op)) return bitwise_op<Unsigned>(op, a, b);
  return is_signed ? signed_op<Signed>(op, a, b) : signed_op<Unsigned>(op, a, b);
}

inline Words<true> complex_op(FusedOp op, Words<true> a, Words<true> b) {
  using T = Complex;
  Words<true> result = {};
  // clang-format off
  switch (op) {
    UNARY(Negative) LARGE_UNARY(Abs) LARGE_UNARY(Sign) UNARY(Floor) UNARY(Ceil) UNARY(Trunc)
    UNARY(Round) UNARY(Square) LARGE_UNARY(Sqrt) LARGE_UNARY(Rsqrt) LARGE_UNARY(Exp)
    LARGE_UNARY(Expm1) LARGE_UNARY(Log1p) LARGE_UNARY(ArcSin) LARGE_UNARY(ArcCos)
    LARGE_UNARY(Sinh) LARGE_UNARY(Cosh) LARGE_UNARY(Tanh) LARGE_UNARY(ArcCosh) LARGE_UNARY(ArcTanh)
    LARGE_UNARY(Sigmoid) UNARY(IsNaN) UNARY(IsInf) UNARY(IsFinite) UNARY(Real) UNARY(Imag)
    UNARY(Conjugate) UNARY(Turn) UNARY(TurnBack)
    case FusedOp::Log: case FusedOp::Log2: case FusedOp::Log10: {
      const double factor = op == FusedOp::Log    ? 1.0_d
                            : op == FusedOp::Log2 ? log2_of_e
                                                  : log10_of_e;
      ROLLED for (int i = 0; i < N; ++i) push(result, scaled_logarithm(pop<T>(a), factor));
      break;
    }
    BINARY(Add) BINARY(Subtract) BINARY(Multiply) LARGE_BINARY(Divide) LARGE_BINARY(Remainder)
    LARGE_BINARY(Power) LARGE_BINARY(Maximum) LARGE_BINARY(Minimum) LARGE_BINARY(LogAddExp)
    COMPARISONS UNARY(ToBool)
    default: break;
  }
  // clang-format on
  return result;
}

// What the kernels compute: the lanes of 32 bits; those of 64-bit integers, and conversions to
// them; complex numbers, and conversions to them. All can move values of any lane.
struct Narrow {
  static constant constexpr bool wide = false;
  static Words<wide> run(FusedOp op, Lane lane, Words<wide> a, Words<wide> b) {
    if (lane == Lane::f32) return float_op(op, a, b);
    return integer_op<int, uint>(op, lane == Lane::i32, a, b);
  }
};
struct Long {
  static constant constexpr bool wide = true;
  static Words<wide> run(FusedOp op, Lane lane, Words<wide> a, Words<wide> b) {
    if (lane >= Lane::i64) return integer_op<long, ulong>(op, lane == Lane::i64, a, b);
    Words<wide> result = {};
    ROLLED for (int i = 0; i < N; ++i) {
      const uint x = pop<uint>(a);
      if (lane == Lane::f32)
        push(result, op == FusedOp::ToInt64 ? ulong(ToInt64(as_type<float>(x)))
                                            : ToUint64(as_type<float>(x)));
      else
        push(result, lane == Lane::i32 ? ulong(long(int(x))) : ulong(x));
    }
    return result;
  }
};
struct Complexes {
  static constant constexpr bool wide = true;
  static Words<wide> run(FusedOp op, Lane lane, Words<wide> a, Words<wide> b) {
    if (lane == Lane::c64) return complex_op(op, a, b);
    Words<wide> result = {};
    for (int i = 0; i < N; ++i) set(result, i, ToComplex(value<float>(a, i)));
    return result;
  }
};

template <typename Family, bool wide>
inline Words<wide> result_of(FusedOp op, Lane lane, Words<wide> a, Words<wide> b, Words<wide> c) {
  if (op == FusedOp::Copy) return a;
  if (op == FusedOp::Zero || op == FusedOp::One) {
    Words<wide> result = {};
    for (int i = 0; i < N; ++i) result.v[i] = uint(op == FusedOp::One);
    return result;
  }
  if (op != FusedOp::Select) return Family::run(op, lane, a, b);
  Words<wide> result;
  for (int i = 0; i < Words<wide>::count; ++i) {
    const uint condition = a.v[wide && lane >= Lane::i64 ? i / 2 : i % N];
    result.v[i] = condition != 0 ? b.v[i] : c.v[i];
  }
  return result;
}

// --- The walk over the program.

template <int count>
struct Inputs {
  const device uchar* all[count];
};
template <int count>
struct Outputs {
  device uchar* all[count];
};
// Counts are powers of two.
template <int count>
inline const device uchar* chosen(Inputs<count> in, uint index) {
  for (int half = count / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) in.all[i] = (index & half) != 0 ? in.all[i + half] : in.all[i];
  return in.all[0];
}
template <int count>
inline device uchar* chosen(Outputs<count> out, uint index) {
  for (int half = count / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      out.all[i] = (index & half) != 0 ? out.all[i + half] : out.all[i];
  return out.all[0];
}

// Slot s of a thread: blocks of 16 bytes that are group_size apart.
template <bool wide>
inline Words<wide> load_slot(threadgroup uint4* slots, uint s, uint t) {
  Words<wide> words;
  constexpr uint parts = Words<wide>::count / 4;
  for (uint part = 0; part < parts; ++part) {
    const uint4 all = slots[(s * parts + part) * group_size + t];
    for (uint i = 0; i < 4; ++i) words.v[4 * part + i] = all[i];
  }
  return words;
}
template <bool wide>
inline void store_slot(threadgroup uint4* slots, uint s, uint t, Words<wide> words) {
  constexpr uint parts = Words<wide>::count / 4;
  for (uint part = 0; part < parts; ++part)
    slots[(s * parts + part) * group_size + t] = uint4(
        words.v[4 * part], words.v[4 * part + 1], words.v[4 * part + 2], words.v[4 * part + 3]);
}

template <typename Family, int inputs, int outputs>
inline void run(Inputs<inputs> in, Outputs<outputs> out, constant Program& program,
                constant FusedInstruction* instructions, constant FusedInput* accesses,
                constant Extent* extents, threadgroup uint4* slots, ulong first, uint t) {
  constexpr bool wide = Family::wide;
  if (first >= program.size) return;
  Words<wide> previous = {};
  for (uint k = 0; k < program.instructions; ++k) {
    constant FusedInstruction& instruction = instructions[k];
    Words<wide> operands[3] = {};
    // Blocks of all operands are on their way before the first is used.
    for (int i = 0; i < 3; ++i) {
      const uint from = instruction.operands[i];
      if (from >= first_slot || !is_block(accesses[from], program, first)) continue;
      const int size = size_of(accesses[from].type);
      const device uchar* memory = chosen(in, from);
      memory += place_of(accesses[from], extents, program, first) * size;
      operands[i] = load_block<wide>(memory, size);
    }
    ROLLED for (int i = 0; i < 3; ++i) {
      const uint from = instruction.operands[i];
      if (from == nowhere) break;
      Words<wide> words = i == 0 ? operands[0] : i == 1 ? operands[1] : operands[2];
      if (from == previous_result) {
        words = previous;
      } else if (from >= first_slot) {
        words = load_slot<wide>(slots, from - first_slot, t);
      } else {
        constant FusedInput& input = accesses[from];
        if (!is_block(input, program, first))
          words = load_elements<wide>(chosen(in, from), input, extents, program, first);
        words = decoded(words, input.type);
      }
      for (int j = 0; j < 3; ++j)
        for (int w = 0; w < Words<wide>::count; ++w)
          operands[j].v[w] = i == j ? words.v[w] : operands[j].v[w];
    }
    previous =
        result_of<Family>(instruction.op, instruction.lane, operands[0], operands[1], operands[2]);
    previous = finished(previous, instruction.finish);
    if (instruction.slot != nowhere) store_slot(slots, instruction.slot, t, previous);
    if (instruction.output == nowhere) continue;
    const int size = size_of(instruction.type);
    device uchar* to = chosen(out, instruction.output);
    const Words<wide> bits = encoded(previous, instruction.type);
    if (instruction.aligned && first + N <= program.size)
      store_block(to + first * size, size, bits);
    else
      store_elements(to, size, first, program.size, bits);
  }
}

#define IN(i) const device uchar* in##i
#define OUT(i) device uchar* out##i
#define POSITION IN_GRID, uint t [[thread_index_in_threadgroup]]

// The same for one output and few inputs: fewer arguments to bind.
template <typename Family>
KERNEL(128)
fused_small(constant Program& program, constant FusedInstruction* instructions,
            constant FusedInput* accesses, constant Extent* extents, IN(0), IN(1), IN(2), IN(3),
            OUT(0), threadgroup uint4* slots [[threadgroup(0)]], POSITION) {
  run<Family>(Inputs<4>{{in0, in1, in2, in3}}, Outputs<1>{{out0}}, program, instructions, accesses,
              extents, slots, thread_number(position, grid) * N, t);
}
template <typename Family>
KERNEL(128)
fused(constant Program& program, constant FusedInstruction* instructions,
      constant FusedInput* accesses, constant Extent* extents, IN(0), IN(1), IN(2), IN(3), IN(4),
      IN(5), IN(6), IN(7), IN(8), IN(9), IN(10), IN(11), IN(12), IN(13), IN(14), IN(15), OUT(0),
      OUT(1), OUT(2), OUT(3), OUT(4), OUT(5), OUT(6), OUT(7),
      threadgroup uint4* slots [[threadgroup(0)]], POSITION) {
  run<Family>(Inputs<16>{{in0, in1, in2, in3, in4, in5, in6, in7, in8, in9, in10, in11, in12, in13,
                          in14, in15}},
              Outputs<8>{{out0, out1, out2, out3, out4, out5, out6, out7}}, program, instructions,
              accesses, extents, slots, thread_number(position, grid) * N, t);
}

#define FUSED(size, family, Family) ENTRY(#size "_" #family, size<Family>)
FUSED(fused_small, narrow, Narrow)
FUSED(fused, narrow, Narrow)
FUSED(fused, long, Long)
FUSED(fused, complex, Complexes)
