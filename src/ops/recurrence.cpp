#include "ops/recurrence.h"

#include "ops/dynamic_shape.h"

namespace holdfast {

namespace {

class LinearRecurrence final : public Recorded<LinearRecurrence, Op> {
 public:
  LinearRecurrence(Stream stream, int axis, bool reverse)
      : Recorded(stream), axis_(axis), reverse_(reverse) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<LinearRecurrence>(stream(), axis_ + 1, reverse_);
  }
  const char* name() const override { return "LinearRecurrence"; }
  auto members() const { return std::tie(axis_, reverse_); }

 private:
  int axis_;
  bool reverse_;
};

void LinearRecurrence::encode(Encoder& encoder, const std::vector<array>& inputs,
                              std::vector<array>& outputs) {
  kernels::backend_of(encoder).recurrence(encoder, axis_, reverse_, inputs[0], inputs[1],
                                          outputs[0]);
}

// Each element one place further along the axis, or one back; what comes in is zero.
array shifted(const array& a, int axis, bool back, StreamOrDevice s) {
  array kept = slice_by(a, back ? cut_of(a, axis, 1, to_the_end) : cut_of(a, axis, 0, -1), s);
  return pad(kept, {axis}, {back ? 0 : 1}, {back ? 1 : 0}, array(0, a.dtype()), "constant", s);
}

// The cotangent of a term is that of its element, and what the next one hands back.
std::vector<array> LinearRecurrence::vjp_rule(const std::vector<array>& primals,
                                              const std::vector<array>& cotangents,
                                              const std::vector<int>& argnums,
                                              const std::vector<array>& outputs) {
  Stream s = stream();
  if (outputs[0].size() == 0) {
    std::vector<array> result;
    for (int argnum : argnums) result.push_back(primals[static_cast<size_t>(argnum)]);
    return result;
  }
  const array& factors = primals[0];
  array next =
      shifted(factors.dtype() == complex64 ? conjugate(factors, s) : factors, axis_, !reverse_, s);
  array of_terms = linear_recurrence(next, cotangents[0], axis_, !reverse_, s);
  std::vector<array> result;
  for (int argnum : argnums) {
    result.push_back(argnum == 1
                         ? of_terms
                         : scaled_cotangent(of_terms, shifted(outputs[0], axis_, reverse_, s), s));
  }
  return result;
}

}  // namespace

array linear_recurrence(const array& factors, const array& terms, int axis, bool reverse,
                        StreamOrDevice s) {
  if (factors.shape() != terms.shape() || factors.dtype() != terms.dtype() ||
      !issubdtype(terms.dtype(), inexact)) {
    throw std::invalid_argument(text(
        "[linear_recurrence] expected factors and terms of one shape and one floating or "
        "complex dtype, got ",
        factors.shape(), " of ", factors.dtype(), " and ", terms.shape(), " of ", terms.dtype()));
  }
  int at = checked_axis("linear_recurrence", axis, terms.ndim());
  return make_node<LinearRecurrence>(terms.shape(), terms.dtype(), {factors, terms}, s, at,
                                     reverse);
}

}  // namespace holdfast
