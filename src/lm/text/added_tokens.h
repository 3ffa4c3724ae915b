// Tokens that are found in a text before anything cuts it into words: special ones, and those that
// were added after training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lm/text/function_ref.h"
#include "lm/text/normalizer.h"
#include "lm/text/trie.h"
#include "lm/text/vocabulary.h"

namespace holdfast::lm::tokenizing {

struct AddedToken {
  int32_t id;
  std::string content;
  bool is_special = false;
  bool is_single_word = false;                     // only where no character of a word is beside it
  bool strips_left = false, strips_right = false;  // takes the white space beside it
  bool is_normalised = false;                      // is looked for after normalization
};

class AddedTokens {
 public:
  // Where a token with this number is already, throws unless it has the same text.
  void add(AddedToken token);
  // Afterwards they can be found. The normalizer may be null.
  void prepare(const Normalizer* normalizer);

  const AddedToken* find(int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  const std::vector<AddedToken>& all() const { return tokens_; }

  using OnText = FunctionRef<void(std::string_view text, bool is_first)>;
  using OnToken = FunctionRef<void(int32_t id)>;
  // Of a text before or after normalization, in order, the tokens of that kind and the texts
  // between them that are not empty.
  void split(std::string_view text, bool after_normalization, bool with_special, OnText on_text,
             OnToken on_token) const;

 private:
  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, size_t> by_content_;
  Trie raw_, normalised_;  // positions in tokens_
};

}  // namespace holdfast::lm::tokenizing
