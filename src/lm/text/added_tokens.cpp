#include "lm/text/added_tokens.h"

#include <algorithm>

#include "lm/text/unicode.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::tokenizing {
namespace {

bool has_word_before(std::string_view text, size_t position) {
  if (position == 0) return false;
  do --position;
  while ((static_cast<unsigned char>(text[position]) & 0xc0) == 0x80);
  return is_word_character(next_code_point(text, position));
}

bool has_word_after(std::string_view text, size_t position) {
  return position < text.size() && is_word_character(next_code_point(text, position));
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  if (token.content.empty()) return;
  if (const AddedToken* known = find(token.id)) {
    if (known->content != token.content)
      throw ModelError(message("[Tokenizer] the added tokens \"", known->content, "\" and \"",
                               token.content, "\" have the same number ", token.id));
    tokens_[by_id_[token.id]] = std::move(token);
    return;
  }
  by_id_.emplace(token.id, tokens_.size());
  by_content_.emplace(token.content, tokens_.size());
  tokens_.push_back(std::move(token));
}

void AddedTokens::prepare(const Normalizer* normalizer) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.is_normalised && normalizer) {
      normalised_.insert(normalizer->apply(token.content), static_cast<int32_t>(i));
    } else {
      (token.is_normalised ? normalised_ : raw_).insert(token.content, static_cast<int32_t>(i));
    }
  }
}

const AddedToken* AddedTokens::find(int32_t id) const {
  auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

void AddedTokens::split(std::string_view text, bool after_normalization, bool with_special,
                        OnText on_text, OnToken on_token) const {
  const Trie& trie = after_normalization ? normalised_ : raw_;
  size_t done = 0;
  if (!trie.empty()) {
    for (size_t at = 0; at < text.size();) {
      size_t length = 0;
      int32_t longest = Trie::none;
      trie.walk(text, at, [&](size_t with, int32_t index) { length = with, longest = index; });
      if (longest == Trie::none) {
        ++at;
        continue;
      }
      const AddedToken& token = tokens_[static_cast<size_t>(longest)];
      size_t begin = at, end = at + length;
      at = end;
      if (token.is_special && !with_special) continue;
      if (token.is_single_word && (has_word_before(text, begin) || has_word_after(text, end)))
        continue;
      // White space that an earlier token took is not taken twice.
      if (token.strips_left)
        begin = std::max(done, without_trailing_whitespace(text.substr(0, begin)).size());
      begin = std::max(begin, done);
      if (token.strips_right)
        end = text.size() - without_leading_whitespace(text.substr(end)).size();
      if (begin > done) on_text(text.substr(done, begin - done), done == 0);
      on_token(token.id);
      done = std::max(done, end);
    }
  }
  if (done < text.size()) on_text(text.substr(done), done == 0);
}

}  // namespace holdfast::lm::tokenizing
