// Building models from tensors.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "lm/model/weights.h"

namespace holdfast::lm {

// Takes every tensor; ModelError when one is missing, left, or wrong.
std::unique_ptr<Model::Parts> build_model(Weights& weights, Config config, Dtype dtype);

// All tensors of a model by the names that they have in files, with random contents, not evaluated.
std::unordered_map<std::string, array> random_tensors(const Config& config,
                                                      const RandomOptions& options);

}  // namespace holdfast::lm
