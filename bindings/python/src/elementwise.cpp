// Element-wise functions.
#include <holdfast/ops.h>

#include "arguments.h"
#include "ops.h"
#include "ops/inner.h"

namespace holdfast::python {

namespace {

template <array (*function)(array, StreamOrDevice)>
PyObject* unary(Arguments& a) {
  return give(function(a.operand_at(0), a.stream(1)));
}
template <array (*function)(const array&, StreamOrDevice)>
PyObject* unary(Arguments& a) {
  return give(function(a.operand_at(0), a.stream(1)));
}
template <array (*function)(array, array, StreamOrDevice)>
PyObject* binary(Arguments& a) {
  auto [x, y] = a.operands(0, 1);
  return give(function(std::move(x), std::move(y), a.stream(2)));
}

// name, the function's name in C++, what it does, an argument
#define UNARY(name, function, summary, argument)                                   \
  {name, "(a, /, *, stream=None)", summary, "mx." name "(mx.array(" argument "))", \
   unary<&holdfast::function>}
#define BINARY(name, function, summary, arguments)                        \
  {name, "(a, b, *, stream=None)", summary, "mx." name "(" arguments ")", \
   binary<&holdfast::function>}

constexpr Row rows[] = {
    UNARY("abs", abs, "The absolute value; the modulus of a complex number.", "[-1.5, 2.0]"),
    UNARY("negative", negative, "-a.", "[-1.5, 2.0]"),
    UNARY("positive", positive, "The array itself.", "[-1.5, 2.0]"),
    UNARY("sign", sign, "-1, 0 or 1; a / |a| for complex numbers.", "[-1.5, 0.0, 2.0]"),
    UNARY("reciprocal", reciprocal, "1 / a.", "[0.5, 2.0]"),
    UNARY("floor", floor, "The largest integer that is not above a.", "[-1.5, 1.5]"),
    UNARY("ceil", ceil, "The smallest integer that is not below a.", "[-1.5, 1.5]"),
    UNARY("trunc", trunc, "a without its fraction.", "[-1.5, 1.5]"),
    UNARY("square", square, "a * a.", "[-1.5, 2.0]"),
    UNARY("sqrt", sqrt, "The square root.", "[0.25, 2.0]"),
    UNARY("rsqrt", rsqrt, "1 / sqrt(a).", "[0.25, 2.0]"),
    UNARY("exp", exp, "e to the power of a.", "[-0.5, 1.0]"),
    UNARY("expm1", expm1, "exp(a) - 1, exact near 0.", "[-0.5, 1e-6]"),
    UNARY("log", log, "The natural logarithm.", "[0.5, 2.0]"),
    UNARY("log2", log2, "The logarithm to base 2.", "[0.5, 3.0]"),
    UNARY("log10", log10, "The logarithm to base 10.", "[0.5, 100.0]"),
    UNARY("log1p", log1p, "log(1 + a), exact near 0.", "[0.5, 1e-6]"),
    UNARY("sin", sin, "The sine.", "[0.5, 2.0]"),
    UNARY("cos", cos, "The cosine.", "[0.5, 2.0]"),
    UNARY("tan", tan, "The tangent.", "[0.5, 1.0]"),
    UNARY("arcsin", arcsin, "The inverse sine.", "[0.5, -1.0]"),
    UNARY("arccos", arccos, "The inverse cosine.", "[0.5, -1.0]"),
    UNARY("arctan", arctan, "The inverse tangent.", "[0.5, -1.0]"),
    UNARY("sinh", sinh, "The hyperbolic sine.", "[0.5, -1.0]"),
    UNARY("cosh", cosh, "The hyperbolic cosine.", "[0.5, -1.0]"),
    UNARY("tanh", tanh, "The hyperbolic tangent.", "[0.5, -1.0]"),
    UNARY("arcsinh", arcsinh, "The inverse hyperbolic sine.", "[0.5, -1.0]"),
    UNARY("arccosh", arccosh, "The inverse hyperbolic cosine.", "[1.5, 2.0]"),
    UNARY("arctanh", arctanh, "The inverse hyperbolic tangent.", "[0.5, -0.25]"),
    UNARY("asin", arcsin, "The inverse sine.", "[0.5, -1.0]"),
    UNARY("acos", arccos, "The inverse cosine.", "[0.5, -1.0]"),
    UNARY("atan", arctan, "The inverse tangent.", "[0.5, -1.0]"),
    UNARY("asinh", arcsinh, "The inverse hyperbolic sine.", "[0.5, -1.0]"),
    UNARY("acosh", arccosh, "The inverse hyperbolic cosine.", "[1.5, 2.0]"),
    UNARY("atanh", arctanh, "The inverse hyperbolic tangent.", "[0.5, -0.25]"),
    UNARY("degrees", degrees, "Radians as degrees.", "[0.5, 3.0]"),
    UNARY("radians", radians, "Degrees as radians.", "[90.0, 180.0]"),
    UNARY("sigmoid", sigmoid, "1 / (1 + exp(-a)).", "[0.5, -1.0]"),
    UNARY("erf", erf, "The error function.", "[0.5, -1.0]"),
    UNARY("erfinv", erfinv, "The inverse of the error function.", "[0.5, -0.25]"),
    UNARY("bitwise_invert", bitwise_invert, "All bits inverted; logical not for bool.", "[5, -2]"),
    UNARY("logical_not", logical_not, "not a.", "[True, False]"),
    UNARY("isnan", isnan, "Is it NaN?", "[1.0, float(\"nan\")]"),
    UNARY("isinf", isinf, "Is it infinite?", "[1.0, float(\"inf\")]"),
    UNARY("isfinite", isfinite, "Is it neither infinite nor NaN?", "[1.0, float(\"inf\")]"),
    UNARY("isposinf", isposinf, "Is it plus infinity?", "[float(\"-inf\"), float(\"inf\")]"),
    UNARY("isneginf", isneginf, "Is it minus infinity?", "[float(\"-inf\"), float(\"inf\")]"),
    UNARY("real", real, "The real part.", "[1 + 2j, 3]"),
    UNARY("imag", imag, "The imaginary part.", "[1 + 2j, 3]"),
    UNARY("conj", conjugate, "The complex conjugate.", "[1 + 2j, 3]"),
    UNARY("conjugate", conjugate, "The complex conjugate.", "[1 + 2j, 3]"),
    UNARY("stop_gradient", stop_gradient, "The same values, without derivatives.", "[1.0, 2.0]"),

    BINARY("add", add, "a + b; logical or for bool.", "mx.array([1, 2]), 3"),
    BINARY("subtract", subtract, "a - b.", "mx.array([1.0, 2.0]), mx.array([3, 4])"),
    BINARY("multiply", multiply, "a * b; logical and for bool.", "mx.array([1, 2]), 2.5"),
    BINARY("divide", divide, "a / b.", "mx.array([1, 2]), 4"),
    BINARY("floor_divide", floor_divide, "a / b, rounded down.", "mx.array([-7, 7]), 2"),
    BINARY("remainder", remainder, "What floor_divide leaves, with the sign of b.",
           "mx.array([-7, 7]), 3"),
    BINARY("power", power, "a to the power of b.", "mx.array([1.5, 2.0]), 3"),
    BINARY("pow", power, "a to the power of b.", "2, mx.array([1.5, 2.0])"),
    BINARY("maximum", maximum, "The larger one; NaN if either is.", "mx.array([1, 5]), 3"),
    BINARY("minimum", minimum, "The smaller one; NaN if either is.", "mx.array([1, 5]), 3"),
    BINARY("arctan2", arctan2, "The angle of the point (b, a).",
           "mx.array([1.0, -1.0]), mx.array([1.0, -1.0])"),
    BINARY("atan2", arctan2, "The angle of the point (b, a).", "mx.array([1.0, -1.0]), 2.0"),
    BINARY("logaddexp", logaddexp, "log(exp(a) + exp(b)), without overflow.",
           "mx.array([1.0, 100.0]), 100.0"),
    BINARY("bitwise_and", bitwise_and, "a & b.", "mx.array([5, 6]), 3"),
    BINARY("bitwise_or", bitwise_or, "a | b.", "mx.array([5, 6]), 3"),
    BINARY("bitwise_xor", bitwise_xor, "a ^ b.", "mx.array([5, 6]), 3"),
    BINARY("left_shift", left_shift, "a << b.", "mx.array([5, 6]), 3"),
    BINARY("right_shift", right_shift, "a >> b.", "mx.array([50, 60]), 3"),
    BINARY("bitwise_left_shift", left_shift, "a << b.", "mx.array([5, 6]), 3"),
    BINARY("bitwise_right_shift", right_shift, "a >> b.", "mx.array([50, 60]), 3"),
    BINARY("equal", equal, "a == b.", "mx.array([1, 2]), 2"),
    BINARY("not_equal", not_equal, "a != b.", "mx.array([1, 2]), 2"),
    BINARY("greater", greater, "a > b.", "mx.array([1, 2]), 1"),
    BINARY("greater_equal", greater_equal, "a >= b.", "mx.array([1, 2]), 2"),
    BINARY("less", less, "a < b.", "mx.array([1, 2]), 2"),
    BINARY("less_equal", less_equal, "a <= b.", "mx.array([1, 2]), 1"),
    BINARY("logical_and", logical_and, "a and b.",
           "mx.array([True, False]), mx.array([True, True])"),
    BINARY("logical_or", logical_or, "a or b.",
           "mx.array([True, False]), mx.array([False, False])"),
    BINARY("logical_xor", logical_xor, "a xor b.",
           "mx.array([True, False]), mx.array([True, True])"),

    {"where", "(condition, x, y, /, *, stream=None)", "x where the condition holds, else y.",
     "mx.where(mx.array([True, False]), mx.array([1, 2]), 0.5)\nmx.where(True, 1, 2)",
     [](Arguments& a) {
       auto [x, y] = a.operands(1, 2);
       return give(where(a.array_at(0), std::move(x), std::move(y), a.stream(3)));
     }},
    {"divmod", "(a, b, *, stream=None)", "Quotient, rounded down, and remainder.",
     "mx.divmod(mx.array([-7, 8]), 3)",
     [](Arguments& a) {
       auto [x, y] = a.operands(0, 1);
       return give_list(divmod(x, y, a.stream(2)));
     }},
    {"round", "(a, /, decimals=0, *, stream=None)",
     "To so many digits behind the point, halves to even.",
     "mx.round(mx.array([1.26, -2.5]))\nmx.round(mx.array([1.26, -2.55]), 1)",
     [](Arguments& a) { return give(round(a.operand_at(0), a.integer(1), a.stream(2))); }},
    {"nan_to_num", "(a, nan=0, posinf=None, neginf=None, *, stream=None)",
     "NaN and infinities replaced, by default with 0 and the limits of the dtype.",
     "mx.nan_to_num(mx.array([1.0, float(\"nan\"), float(\"inf\")]), 5.0, 9.0)",
     [](Arguments& a) {
       auto limit = [&](int place) {
         return a.is_none(place) ? std::nullopt : std::optional<double>(a.real(place));
       };
       return give(nan_to_num(a.array_at(0), a.real(1), limit(2), limit(3), a.stream(4)));
     }},
    {"clip", "(a, /, a_min, a_max, *, stream=None)",
     "a between two limits; one of them may be None.",
     "mx.clip(mx.array([1, 5, 9]), 2, 6)\nmx.clip(mx.array([1.0, 5.0]), None, 2)",
     [](Arguments& a) {
       std::optional<array> low, high;
       if (!a.is_none(1)) low = a.operands(0, 1).second;
       if (!a.is_none(2)) high = a.operands(0, 2).second;
       return give(clip(a.array_at(0), low, high, a.stream(3)));
     }},
    {"array_equal", "(a, b, equal_nan=False, *, stream=None)", "Are shapes and all elements equal?",
     "mx.array_equal(mx.array([1, 2]), mx.array([1.0, 2.0]))",
     [](Arguments& a) {
       auto [x, y] = a.operands(0, 1);
       return give(array_equal(x, y, a.truth(2), a.stream(3)));
     }},
    {"isclose", "(a, b, /, rtol=1e-05, atol=1e-08, *, equal_nan=False, stream=None)",
     "Is |a - b| <= atol + rtol * |b|?", "mx.isclose(mx.array([1.0, 2.0]), mx.array([1.0, 2.1]))",
     [](Arguments& a) {
       auto [x, y] = a.operands(0, 1);
       return give(isclose(x, y, a.real(2), a.real(3), a.truth(4), a.stream(5)));
     }},
    {"allclose", "(a, b, /, rtol=1e-05, atol=1e-08, *, equal_nan=False, stream=None)",
     "Is |a - b| <= atol + rtol * |b| everywhere?",
     "mx.allclose(mx.array([1.0, 2.0]), mx.array([1.0, 2.0000001]))",
     [](Arguments& a) {
       auto [x, y] = a.operands(0, 1);
       return give(allclose(x, y, a.real(2), a.real(3), a.truth(4), a.stream(5)));
     }},
};
#undef UNARY
#undef BINARY

}  // namespace

void add_elementwise(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
