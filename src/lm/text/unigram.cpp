// The unigram model: of all ways to cut a word into tokens, the one with the greatest sum of
// scores.
#include <algorithm>
#include <limits>

#include "lm/text/model.h"
#include "lm/text/trie.h"
#include "lm/text/utf8.h"
#include "lm/text/word_cache.h"

namespace holdfast::lm::tokenizing {
namespace {

class Unigram : public Model {
 public:
  Unigram(const Vocabulary& vocabulary, std::vector<double> scores, Unknown unknown)
      : scores_(std::move(scores)), unknown_(unknown) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < scores_.size(); ++i) {
      trie_.insert(vocabulary.token(static_cast<int32_t>(i)), static_cast<int32_t>(i));
      least = std::min(least, scores_[i]);
    }
    // So much worse than any token that it is taken only where there is no other way.
    unknown_score_ = least - 10;
    if (unknown.as_bytes) bytes_ = byte_tokens(vocabulary);
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    bool cached = word.size() <= WordCache::longest_word;
    if (cached && cache_.find(word, ids)) return;
    size_t before = ids.size();
    encode_word(word, ids);
    if (cached) cache_.insert(word, ids.data() + before, ids.data() + ids.size());
  }

 private:
  // The best way to a position.
  struct Step {
    double score = 0;
    size_t begin = 0;
    int32_t id = Vocabulary::none;  // none: unknown
    bool reached = false;
  };

  void encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    std::vector<Step> steps(word.size() + 1);
    steps[0].reached = true;
    for (size_t at = 0; at < word.size(); at += character_length(word[at])) {
      size_t length = character_length(word[at]);
      double score = steps[at].score;
      bool has_character = false;
      auto reach = [&](size_t end, double with, int32_t id) {
        if (!steps[end].reached || with > steps[end].score) steps[end] = {with, at, id, true};
      };
      trie_.walk(word, at, [&](size_t token_length, int32_t id) {
        if (token_length == length) has_character = true;
        reach(at + token_length, score + scores_[static_cast<size_t>(id)], id);
      });
      if (!has_character) reach(at + length, score + unknown_score_, unknown_.id);
    }
    std::vector<std::pair<size_t, size_t>> ranges;
    std::vector<int32_t> tokens;
    for (size_t end = word.size(); end > 0; end = steps[end].begin) {
      ranges.emplace_back(steps[end].begin, end);
      tokens.push_back(steps[end].id);
    }
    for (size_t i = tokens.size(); i-- > 0;) {
      if (tokens[i] != unknown_.id) {
        ids.push_back(tokens[i]);
        continue;
      }
      size_t begin = ranges[i].first;
      while (i > 0 && tokens[i - 1] == unknown_.id) --i;
      if (!bytes_.empty()) {
        for (unsigned char byte : word.substr(begin, ranges[i].second - begin))
          ids.push_back(bytes_[byte]);
      } else if (unknown_.id != Vocabulary::none) {
        ids.push_back(unknown_.id);
      } else {
        throw RequestError(message("[Tokenizer] the vocabulary has no token for \"",
                                   word.substr(begin, ranges[i].second - begin),
                                   "\" and none for unknown text"));
      }
    }
  }

  Trie trie_;
  std::vector<double> scores_;
  Unknown unknown_;
  double unknown_score_;
  std::vector<int32_t> bytes_;
  mutable WordCache cache_;
};

}  // namespace

std::unique_ptr<Model> make_unigram(const Vocabulary& vocabulary, std::vector<double> scores,
                                    Unknown unknown) {
  return std::make_unique<Unigram>(vocabulary, std::move(scores), unknown);
}

}  // namespace holdfast::lm::tokenizing
