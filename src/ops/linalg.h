// The primitive of the factorisations.
#pragma once

#include <vector>

#include "kernels/plan/factorise.h"
#include "ops/support.h"

namespace holdfast {

using Method = kernels::FactorisationMethod;

// Inputs: matrices (batch..., m, n), and right sides where there are such; of one dtype.
class Factorisation final : public Recorded<Factorisation, Op> {
 public:
  Factorisation(Stream stream, Method method, bool upper)
      : Recorded(stream), method_(method), upper_(upper) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Factorisation>(stream(), method_, upper_);
  }
  const char* name() const override;
  static constexpr const char* recorded_as = "Factorisation";
  auto members() const { return std::tie(method_, upper_); }

 private:
  array of_matrix(const array& a, const std::vector<array>& cotangents,
                  const std::vector<array>& outputs);

  Method method_;
  bool upper_;
};

}  // namespace holdfast
