#include "lm/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <holdfast/eval.h>
#include <holdfast/fast.h>
#include <holdfast/ops.h>

namespace holdfast::lm {
namespace {

// Pair i turns by position / periods[i].
std::vector<double> plain_periods(const RopeConfig& config) {
  std::vector<double> periods;
  for (int i = 0; i < config.dims / 2; ++i)
    periods.push_back(std::pow(static_cast<double>(config.base), 2.0 * i / config.dims));
  return periods;
}

// Low frequencies are stretched by the factor, high ones are not, those between in part.
void stretch_as_llama3(const RopeConfig& config, std::vector<double>& periods) {
  double low = config.low_frequency_factor, high = config.high_frequency_factor;
  for (double& period : periods) {
    double turns = config.original_positions / (2 * std::numbers::pi * period);
    if (turns < low) {
      period *= config.factor;
    } else if (turns <= high) {
      double smooth = (turns - low) / (high - low);
      period /= (1 - smooth) / config.factor + smooth;
    }
  }
}

// YaRN (arXiv 2309.00071): as above, by the number of the pair between those that turn beta_fast
// and beta_slow times in the original positions.
void stretch_as_yarn(const RopeConfig& config, std::vector<double>& periods) {
  auto pair_of = [&](double turns) {
    return config.dims * std::log(config.original_positions / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(static_cast<double>(config.base)));
  };
  double low = std::max(std::floor(pair_of(config.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_of(config.beta_slow)), config.dims - 1.0);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < periods.size(); ++i) {
    double kept = 1 - std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    periods[i] = 1 / (kept / periods[i] + (1 - kept) / (periods[i] * config.factor));
  }
}

}  // namespace

Rope::Rope(const RopeConfig& config, const std::optional<array>& factors)
    : dims_(config.dims), traditional_(config.traditional) {
  if (config.scaling == "linear") scale_ = 1.0f / config.factor;
  bool plain = config.scaling == "default" || config.scaling == "linear";
  if (plain && !factors) {
    base_ = config.base;
    return;
  }
  std::vector<double> periods = plain_periods(config);
  if (config.scaling == "llama3") stretch_as_llama3(config, periods);
  if (config.scaling == "yarn") {
    stretch_as_yarn(config, periods);
    magnitude_ = config.attention_factor;
    if (magnitude_ == 0)
      magnitude_ = config.factor > 1 ? 0.1f * std::log(config.factor) + 1.0f : 1.0f;
  }
  array all(periods.begin(), {static_cast<int>(periods.size())}, float32);
  periods_ = factors ? multiply(all, *factors) : all;
  eval(*periods_);
}

array Rope::operator()(const array& x, const array& positions) const {
  array rows = expand_dims(x, 2);
  if (magnitude_ != 1.0f) {
    if (dims_ == x.shape(-1)) {
      rows = multiply(rows, array(magnitude_, x.dtype()));
    } else {
      std::vector<array> parts = split(rows, Shape{dims_}, -1);
      rows = concatenate({multiply(parts[0], array(magnitude_, x.dtype())), parts[1]}, -1);
    }
  }
  return squeeze(fast::rope(rows, dims_, traditional_, base_, scale_, positions, periods_), 2);
}

}  // namespace holdfast::lm
