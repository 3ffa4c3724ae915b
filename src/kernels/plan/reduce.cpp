#include "kernels/plan/reduce.h"

namespace holdfast::kernels {

bool has_identity(ReduceOp op) {
  return op == ReduceOp::sum || op == ReduceOp::prod || op == ReduceOp::all || op == ReduceOp::any;
}

Dtype::Val reduce_output_type(ReduceOp op, Dtype::Val input) {
  using Val = Dtype::Val;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
      switch (input) {
        case Val::bool_:
        case Val::int8:
        case Val::int16:
          return Val::int32;
        case Val::uint8:
        case Val::uint16:
          return Val::uint32;
        default:
          return input;
      }
    case ReduceOp::min:
    case ReduceOp::max:
      return input;
    case ReduceOp::all:
    case ReduceOp::any:
      return Val::bool_;
    default:
      return Val::uint32;
  }
}

}  // namespace holdfast::kernels
