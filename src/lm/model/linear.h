// Products with weights, quantised or not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/array.h>

#include "lm/model/weights.h"

namespace holdfast::lm {

// A matrix (outputs, inputs), or one for each expert (experts, outputs, inputs). Quantised when it
// has scales.
struct Linear {
  array weight;
  std::optional<array> scales, biases, bias;
  int group_size = 0, bits = 0;
  std::string mode;

  bool quantised() const { return scales.has_value(); }
  int outputs() const { return weight.shape(-2); }
  size_t bytes() const;

  // x (…, inputs) → (…, outputs).
  array operator()(const array& x) const;
  // x (tokens, k or 1, inputs), experts (tokens, k) → (tokens, k, outputs): each by its expert's.
  array of_experts(const array& x, const array& experts) const;
  // Rows of the matrix: an embedding.
  array rows(const array& indices, Dtype dtype) const;
};

// "<stem>.weight", and where they are there "<stem>.scales", "<stem>.biases" and "<stem>.bias".
// `experts` above 0: so many matrices.
Linear take_linear(Weights& weights, const std::string& stem, int outputs, int inputs,
                   bool has_bias, Dtype dtype, int experts = 0);
// Evaluates its arrays.
void keep_linear(Weights& weights, Linear& linear, const std::string& name);

// Several products of one input, as one where the formats agree.
class JoinedLinear {
 public:
  JoinedLinear() = default;
  JoinedLinear(Weights& weights, std::vector<Linear> parts, const std::string& name);
  std::vector<array> operator()(const array& x) const;
  std::vector<array> of_experts(const array& x, const array& experts) const;
  const std::vector<Linear>& products() const { return products_; }
  size_t bytes() const;

 private:
  std::vector<array> separate(const array& y) const;

  std::vector<Linear> products_;  // one when they are joined
  Shape ends_;                    // where each part but the last ends
};

}  // namespace holdfast::lm
