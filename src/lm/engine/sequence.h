// A request on its way. Used by the engine's thread alone, but for `channel`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/lm/engine.h>

#include "lm/engine/channel.h"

namespace holdfast::lm::engine {

struct Sequence {
  std::shared_ptr<Channel> channel;
  Request request;
  uint64_t number = 0;  // in the order of arrival
  uint64_t seed = 0;

  std::vector<int> tokens;  // the prompt and what was generated
  size_t prompt_size = 0;
  size_t computed = 0;  // tokens that the cache holds

  std::vector<int> blocks;
  uint64_t chain = 0;        // of the published blocks
  size_t published = 0;      // blocks
  int state = -1;            // the row of its states; -1: none
  bool has_started = false;  // was admitted before
  int failed_steps = 0;

  std::optional<Detokenizer> detokenizer;
  std::optional<StopMatcher> stops;

  size_t generated() const { return tokens.size() - prompt_size; }
  size_t remaining() const { return tokens.size() - computed; }
};

}  // namespace holdfast::lm::engine
