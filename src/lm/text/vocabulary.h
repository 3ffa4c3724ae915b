// The tokens of a model: their texts and their numbers.
#pragma once

#include <holdfast/lm/errors.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lm/support.h"

namespace holdfast::lm::tokenizing {

class Vocabulary {
 public:
  static constexpr int32_t none = -1, most = 1 << 24;

  // Throws when the number is negative, beyond `most`, or another text's. A text has its first
  // number.
  void add(std::string token, int32_t id) {
    if (id < 0 || id >= most)
      throw ModelError(message("[Tokenizer] token \"", token, "\" has the number ", id,
                               ", which is not from 0 to ", most - 1));
    auto index = static_cast<size_t>(id);
    if (index >= tokens_.size()) {
      tokens_.resize(index + 1);
      used_.resize(index + 1);
    }
    if (used_[index]) {
      if (tokens_[index] == token) return;
      throw ModelError(message("[Tokenizer] the tokens \"", tokens_[index], "\" and \"", token,
                               "\" have the same number ", id));
    }
    used_[index] = true;
    ids_.emplace(token, id);
    tokens_[index] = std::move(token);
  }

  int32_t find(std::string_view token) const {
    auto found = ids_.find(token);
    return found == ids_.end() ? none : found->second;
  }
  bool has(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < used_.size() && used_[static_cast<size_t>(id)];
  }
  // Of a number that no token has: the empty text.
  const std::string& token(int32_t id) const {
    static const std::string empty;
    return has(id) ? tokens_[static_cast<size_t>(id)] : empty;
  }
  // One more than the greatest number.
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::vector<std::string> tokens_;
  std::vector<bool> used_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace holdfast::lm::tokenizing
