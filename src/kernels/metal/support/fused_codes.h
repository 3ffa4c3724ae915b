// What the host and the kernels of element-wise programs both speak: read by C++ and by Metal.

// The ops: the rows of elementwise.def in its order, and what conversions are made of. The
// functions are in support/elementwise.h and support/complex.h, but for Select, Copy, Zero and One.
enum class FusedOp : unsigned char {
  Abs,
  Negative,
  Sign,
  Floor,
  Ceil,
  Trunc,
  Round,
  Square,
  Sqrt,
  Rsqrt,
  Exp,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  ArcSin,
  ArcCos,
  ArcTan,
  Sinh,
  Cosh,
  Tanh,
  ArcSinh,
  ArcCosh,
  ArcTanh,
  Sigmoid,
  Erf,
  ErfInv,
  BitwiseInvert,
  LogicalNot,
  IsNaN,
  IsInf,
  IsFinite,
  IsPosInf,
  IsNegInf,
  Real,
  Imag,
  Conjugate,
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Remainder,
  Power,
  Maximum,
  Minimum,
  ArcTan2,
  LogAddExp,
  BitwiseAnd,
  BitwiseOr,
  BitwiseXor,
  LeftShift,
  RightShift,
  Equal,
  NotEqual,
  Greater,
  GreaterEqual,
  Less,
  LessEqual,
  LogicalAnd,
  LogicalOr,
  LogicalXor,
  Select,
  Copy,
  Zero,
  One,
  ToBool,
  ToFloat,
  ToInt8,
  ToInt16,
  ToInt32,
  ToInt64,
  ToUint8,
  ToUint16,
  ToUint32,
  ToUint64,
  ToComplex,
  Turn,
  TurnBack
};

// The type that a value is computed in.
enum class Lane : unsigned char { f32, i32, u32, i64, u64, c64 };

// What makes the result of an op one of its dtype.
enum class Finish : unsigned char { none, float16, bfloat16, int8, int16, uint8, uint16 };

// How elements lie in memory.
enum class ElementType : unsigned char { u8, i8, u16, i16, f16, bf16, b32, b64 };

// Where an operand is: an input, a slot, or the result of the instruction before.
enum : unsigned char { first_slot = 16, previous_result = 0xfe, nowhere = 0xff };

// Lane: of the operands; of Select, any lane of the size of its result.
struct FusedInstruction {
  FusedOp op;
  Lane lane;
  Finish finish;
  unsigned char operands[3];
  unsigned char slot;    // where the result is kept, or nowhere
  unsigned char output;  // which output it is, or nowhere
  ElementType type;      // of that output
  bool aligned;          // as in FusedInput
};

enum class FusedAccess : unsigned char { dense, scalar, strided };

struct FusedInput {
  FusedAccess access;
  ElementType type;
  bool aligned;  // a thread's elements are neighbours that begin at a multiple of 16 bytes, or of
                 // what they take together
  unsigned char unused;
  unsigned short first_extent, dimensions;  // strided
};
