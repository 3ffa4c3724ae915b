#include "kernels/plan/elementwise.h"

#include <cstddef>

namespace holdfast::kernels {
namespace {

struct ElementwiseName {
  const char* name;
  int operand_count;
};

constexpr ElementwiseName names[] = {
#define UNARY(function, Primitive, ...) {#Primitive, 1},
#define BINARY(function, Primitive, ...) {#Primitive, 2},
#define TERNARY(function, Primitive, ...) {#Primitive, 3},
#include <holdfast/elementwise.def>
};

}  // namespace

int elementwise_operand_count(ElementwiseOp op) {
  return names[static_cast<size_t>(op)].operand_count;
}

const char* elementwise_name(ElementwiseOp op) { return names[static_cast<size_t>(op)].name; }

}  // namespace holdfast::kernels
