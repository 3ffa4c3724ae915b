// Small models of each architecture, with random weights.
#pragma once

#include <string>
#include <vector>

#include <holdfast/lm.h>

namespace holdfast::testing {

// The config.json of a small model.
std::string tiny_config_json(const std::string& architecture);
lm::Config tiny_config(const std::string& architecture);
std::vector<int> tiny_prompt(int length, uint64_t seed, int vocabulary = 128);
// The likeliest tokens one after the other, each from all tokens before it.
std::vector<int> greedy_alone(const lm::Model& model, std::vector<int> tokens, int count);

}  // namespace holdfast::testing
