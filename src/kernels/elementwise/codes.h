// What the host and the kernels of element-wise programs both speak: read by C++ and by Metal.

// The ops: the rows of elementwise.def, and what conversions are made of. The functions are in
// math.h and complex.h, but for Select, Copy, Zero and One.
enum class FusedOp : unsigned char {
#define UNARY(function, Primitive, ...) Primitive,
#define BINARY(function, Primitive, ...) Primitive,
#define TERNARY(function, Primitive, ...) Primitive,
#include <holdfast/elementwise.def>
// clang-format off: it wraps these lines anew each time.
#define FUSED_CONVERSIONS(ROW) \
  ROW(Copy) ROW(Zero) ROW(One) ROW(ToBool) ROW(ToFloat) ROW(ToDouble) ROW(ToInt8) ROW(ToInt16) \
  ROW(ToInt32) ROW(ToInt64) ROW(ToUint8) ROW(ToUint16) ROW(ToUint32) ROW(ToUint64) \
  ROW(ToComplex) ROW(Turn) ROW(TurnBack)
// clang-format on
#define ROW(name) name,
  FUSED_CONVERSIONS(ROW)
#undef ROW
};

// The type that a value is computed in.
enum class Lane : unsigned char { f32, i32, u32, i64, u64, c64, f64 };

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
