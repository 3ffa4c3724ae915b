// Rotary embedding with the ways in which models stretch it.
#pragma once

#include <optional>

#include <holdfast/array.h>

#include <holdfast/lm/config.h>

namespace holdfast::lm {

class Rope {
 public:
  // `factors`: for each pair, by how much its frequency is divided; as GGUF files have it.
  explicit Rope(const RopeConfig& config, const std::optional<array>& factors = std::nullopt);
  // x (tokens, heads, features), positions (tokens).
  array operator()(const array& x, const array& positions) const;

 private:
  int dims_;
  bool traditional_;
  std::optional<float> base_;
  float scale_ = 1.0f;
  float magnitude_ = 1.0f;  // of the features that turn
  std::optional<array> periods_;
};

}  // namespace holdfast::lm
