// The derivatives of element-wise ops: one formula for each argument of each row of elementwise.def
// that has one.
//
// Complex cotangents are those of the real inner product Re(conj(u) v): where out = f(z) with
// derivative d, the cotangent of z is that of out times conj(d).
#include <cmath>

#include "ops/dynamic_shape.h"
#include "ops/elementwise.h"

namespace holdfast {

namespace {

using kernels::ElementwiseOp;

struct Formulas {
  const std::vector<array>& inputs;
  const array& out;
  const array& g;  // the cotangent of out
  Stream s;

  const array& x() const { return inputs[0]; }
  const array& y() const { return inputs[1]; }
  array number(double value, const array& like) const { return array(value, like.dtype()); }
  array times(double value, const array& a) const { return multiply(number(value, a), a, s); }
  array plus(double value, const array& a) const { return add(number(value, a), a, s); }
  array squared(const array& a) const { return multiply(a, a, s); }
  array scaled(const array& factor) const { return scaled_cotangent(g, factor, s); }
  array divided(const array& by) const { return scaled(reciprocal(by, s)); }
  array zero() const { return array(0, g.dtype()); }

  array sign() const {
    if (x().dtype() != complex64) return zeros_like(x(), s);
    // On the unit circle only what is tangent to it changes the result.
    array along = astype(real(multiply(conjugate(out, s), g, s), s), complex64, s);
    array across = subtract(g, multiply(out, along, s), s);
    return divide(across, astype(abs(x(), s), complex64, s), s);
  }
  array imaginary() const {
    if (x().dtype() != complex64) return zeros_like(x(), s);
    return multiply(g, array(complex64_t(0, 1)), s);
  }
  // 0 to the power of 0 and logarithms of 0 do not spoil what does not depend on them.
  array power(bool of_base) const {
    if (of_base) {
      array is_zero = equal(y(), number(0, y()), s);
      array exponent = where(is_zero, number(1, y()), plus(-1, y()), s);
      return scaled(multiply(y(), holdfast::power(x(), exponent, s), s));
    }
    array is_zero = equal(x(), number(0, x()), s);
    return scaled(multiply(out, log(where(is_zero, number(1, x()), x(), s), s), s));
  }
  // Of two equal arguments the second has the gradient.
  array chosen(const array& first, bool is_first) const {
    return is_first ? where(first, g, zero(), s) : where(first, zero(), g, s);
  }

  array of(ElementwiseOp op, int argument) const;
};

array Formulas::of(ElementwiseOp op, int argument) const {
  bool is_first = argument == 0;
  switch (op) {
    case ElementwiseOp::Abs:
      return multiply(astype(g, x().dtype(), s), holdfast::sign(x(), s), s);
    case ElementwiseOp::Negative:
      return negative(g, s);
    case ElementwiseOp::Sign:
      return sign();
    case ElementwiseOp::Floor:
    case ElementwiseOp::Ceil:
    case ElementwiseOp::Trunc:
    case ElementwiseOp::Round:
    case ElementwiseOp::FloorDivide:
      return zeros_like(inputs[static_cast<size_t>(argument)], s);
    case ElementwiseOp::Square:
      return scaled(times(2, x()));
    case ElementwiseOp::Sqrt:
      return divided(times(2, out));
    case ElementwiseOp::Rsqrt:
      return scaled(divide(times(-0.5, out), x(), s));
    case ElementwiseOp::Exp:
      return scaled(out);
    case ElementwiseOp::Expm1:
      return scaled(plus(1, out));
    case ElementwiseOp::Log:
      return divided(x());
    case ElementwiseOp::Log2:
      return divided(times(M_LN2, x()));
    case ElementwiseOp::Log10:
      return divided(times(M_LN10, x()));
    case ElementwiseOp::Log1p:
      return divided(plus(1, x()));
    case ElementwiseOp::Sin:
      return scaled(cos(x(), s));
    case ElementwiseOp::Cos:
      return scaled(negative(sin(x(), s), s));
    case ElementwiseOp::Tan:
      return scaled(plus(1, squared(out)));
    case ElementwiseOp::ArcSin:
      return scaled(rsqrt(plus(1, negative(squared(x()), s)), s));
    case ElementwiseOp::ArcCos:
      return scaled(negative(rsqrt(plus(1, negative(squared(x()), s)), s), s));
    case ElementwiseOp::ArcTan:
      return divided(plus(1, squared(x())));
    case ElementwiseOp::Sinh:
      return scaled(cosh(x(), s));
    case ElementwiseOp::Cosh:
      return scaled(sinh(x(), s));
    case ElementwiseOp::Tanh:
      return scaled(plus(1, negative(squared(out), s)));
    case ElementwiseOp::ArcSinh:
      return scaled(rsqrt(plus(1, squared(x())), s));
    case ElementwiseOp::ArcCosh:
      return scaled(multiply(rsqrt(plus(-1, x()), s), rsqrt(plus(1, x()), s), s));
    case ElementwiseOp::ArcTanh:
      return divided(plus(1, negative(squared(x()), s)));
    case ElementwiseOp::Sigmoid:
      return scaled(multiply(out, plus(1, negative(out, s)), s));
    case ElementwiseOp::Erf:
      return scaled(times(M_2_SQRTPI, exp(negative(squared(x()), s), s)));
    case ElementwiseOp::ErfInv:
      return scaled(times(1 / M_2_SQRTPI, exp(squared(out), s)));
    case ElementwiseOp::Real:
      return astype(g, x().dtype(), s);
    case ElementwiseOp::Imag:
      return imaginary();
    case ElementwiseOp::Conjugate:
      return conjugate(g, s);
    case ElementwiseOp::Add:
      return g;
    case ElementwiseOp::Subtract:
      return is_first ? g : negative(g, s);
    case ElementwiseOp::Multiply:
      return scaled(is_first ? y() : x());
    case ElementwiseOp::Divide:
      return is_first ? divided(y()) : scaled(negative(divide(out, y(), s), s));
    case ElementwiseOp::Remainder:
      return is_first ? g : scaled(negative(divide(subtract(x(), out, s), y(), s), s));
    case ElementwiseOp::Power:
      return power(is_first);
    case ElementwiseOp::Maximum:
      return chosen(greater(x(), y(), s), is_first);
    case ElementwiseOp::Minimum:
      return chosen(less(x(), y(), s), is_first);
    case ElementwiseOp::ArcTan2: {
      array length = add(squared(x()), squared(y()), s);
      return scaled(divide(is_first ? y() : negative(x(), s), length, s));
    }
    case ElementwiseOp::LogAddExp:
      return scaled(sigmoid(is_first ? subtract(x(), y(), s) : subtract(y(), x(), s), s));
    case ElementwiseOp::Select:
      return chosen(x(), argument == 1);
    // No others take or give numbers with a derivative.
    default:
      throw std::logic_error(text("[vjp] ", kernels::elementwise_name(op), " has no derivative"));
  }
}

}  // namespace

std::vector<array> detail::Elementwise::vjp_rule(const std::vector<array>& primals,
                                                 const std::vector<array>& cotangents,
                                                 const std::vector<int>& argnums,
                                                 const std::vector<array>& outputs) {
  auto op = static_cast<ElementwiseOp>(traits_.elementwise);
  Formulas formulas{primals, outputs[0], cotangents[0], stream()};
  std::vector<array> result;
  for (int argnum : argnums) {
    array whole = formulas.of(op, argnum);
    bool may_repeat = primals.size() > 1;
    result.push_back(may_repeat ? sum_like(whole, primals[static_cast<size_t>(argnum)], stream())
                                : whole);
  }
  return result;
}

// The imaginary part that a real dtype drops has no influence.
std::vector<array> AsType::vjp_rule(const std::vector<array>& primals,
                                    const std::vector<array>& cotangents, const std::vector<int>&,
                                    const std::vector<array>&) {
  return {astype(cotangents[0], primals[0].dtype(), stream())};
}

std::vector<array> DivMod::decomposed(const std::vector<array>& inputs) {
  return {floor_divide(inputs[0], inputs[1], stream()), remainder(inputs[0], inputs[1], stream())};
}

}  // namespace holdfast
