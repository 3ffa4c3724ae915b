// Byte-pair encoding: a word is a row of characters, and the pair of neighbours of the smallest
// rank is merged until none is left.
#include <algorithm>
#include <queue>

#include "lm/text/flat_map.h"
#include "lm/text/model.h"
#include "lm/text/pre_tokenizer.h"
#include "lm/text/utf8.h"
#include "lm/text/word_cache.h"

namespace holdfast::lm::tokenizing {
namespace {

class Bpe : public Model {
 public:
  Bpe(const Vocabulary& vocabulary, const std::vector<Merge>& merges, BpeOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)) {
    if (options_.unknown.as_bytes) bytes_ = byte_tokens(vocabulary);
    splits_at_spaces_ = vocabulary.find(metaspace) != Vocabulary::none &&
                        options_.continuing_prefix.empty() && options_.end_suffix.empty() &&
                        !options_.ignores_merges;
    for (const Merge& merge : merges) {
      merges_.insert(key(merge.left, merge.right), {merge.result, merge.rank});
      if (space_after_other(vocabulary.token(merge.result), 0) != std::string::npos)
        splits_at_spaces_ = false;
    }
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    if (options_.ignores_merges) {
      if (int32_t id = vocabulary_.find(word); id != Vocabulary::none) {
        ids.push_back(id);
        return;
      }
    }
    if (splits_at_spaces_) {
      // No merge crosses the beginning of a word: so a text that nothing has cut is many short
      // words for the cache.
      for (size_t begin = 0; begin < word.size();) {
        size_t end = std::min(space_after_other(word, begin), word.size());
        encode_cached(word.substr(begin, end - begin), ids);
        begin = end;
      }
    } else {
      encode_cached(word, ids);
    }
  }

 private:
  struct Symbol {
    int32_t id, previous,
        next;  // positions of neighbours, or -1; merged into its left neighbour: id is -1
  };
  struct Candidate {
    int32_t rank, position, left, right, result;
    bool operator<(const Candidate& other) const {  // the greatest is merged first
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  struct Result {
    int32_t id, rank;
  };

  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  // Where the next written space is, after `from`, that follows another character.
  static size_t space_after_other(std::string_view text, size_t from) {
    constexpr std::string_view space = metaspace;
    for (size_t at = text.find(space, from); at != std::string_view::npos;
         at = text.find(space, at + space.size())) {
      bool after_space = at >= from + space.size() && text.substr(at - space.size(), 3) == space;
      if (at > from && !after_space) return at;
    }
    return std::string_view::npos;
  }

  void encode_cached(std::string_view word, std::vector<int32_t>& ids) const {
    bool cached = word.size() <= WordCache::longest_word;
    if (cached && cache_.find(word, ids)) return;
    size_t before = ids.size();
    encode_word(word, ids);
    if (cached) cache_.insert(word, ids.data() + before, ids.data() + ids.size());
  }

  void encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    std::vector<Symbol> symbols;
    add_characters(word, symbols);
    for (size_t i = 0; i < symbols.size(); ++i) {
      symbols[i].previous = static_cast<int32_t>(i) - 1;
      symbols[i].next = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
    }
    std::vector<Candidate> candidates;
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      add_candidate(symbols, static_cast<int32_t>(i), candidates);
    std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
    std::vector<Candidate> found;
    while (!queue.empty()) {
      Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<size_t>(best.position)];
      // One of the two may have been merged with another neighbour since.
      if (left.id != best.left || left.next < 0) continue;
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      if (right.id != best.right) continue;
      left.id = best.result;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.position;
      found.clear();
      if (left.previous >= 0) add_candidate(symbols, left.previous, found);
      if (left.next >= 0) add_candidate(symbols, best.position, found);
      for (const Candidate& candidate : found) queue.push(candidate);
    }
    for (const Symbol& symbol : symbols) {
      if (symbol.id >= 0) ids.push_back(symbol.id);
    }
  }

  void add_candidate(const std::vector<Symbol>& symbols, int32_t position,
                     std::vector<Candidate>& candidates) const {
    const Symbol& left = symbols[static_cast<size_t>(position)];
    int32_t right = symbols[static_cast<size_t>(left.next)].id;
    if (const Result* merge = merges_.find(key(left.id, right)))
      candidates.push_back({merge->rank, position, left.id, right, merge->id});
  }

  void add_characters(std::string_view word, std::vector<Symbol>& symbols) const {
    if (word.size() > size_t{1} << 30)
      throw RequestError(message("[Tokenizer] a word of ", word.size(),
                                 " bytes; a text without breaks may have ", size_t{1} << 30));
    bool is_after_unknown = false;
    std::string changed;
    for (size_t begin = 0; begin < word.size();) {
      size_t length = character_length(word[begin]);
      std::string_view character = word.substr(begin, length);
      bool is_first = begin == 0, is_last = begin + length == word.size();
      begin += length;
      if ((!is_first && !options_.continuing_prefix.empty()) ||
          (is_last && !options_.end_suffix.empty())) {
        changed = is_first ? "" : options_.continuing_prefix;
        changed += character;
        if (is_last) changed += options_.end_suffix;
        character = changed;
      }
      int32_t id = vocabulary_.find(character);
      bool is_unknown = false;
      if (id != Vocabulary::none) {
        symbols.push_back({id, -1, -1});
      } else if (!bytes_.empty()) {
        for (unsigned char byte : character) symbols.push_back({bytes_[byte], -1, -1});
      } else if (options_.unknown.id != Vocabulary::none) {
        is_unknown = true;
        if (!is_after_unknown || !options_.unknown.fused)
          symbols.push_back({options_.unknown.id, -1, -1});
      }
      is_after_unknown = is_unknown;
    }
  }

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  FlatMap<Result> merges_;
  std::vector<int32_t> bytes_;
  bool splits_at_spaces_;
  mutable WordCache cache_;
};

}  // namespace

std::unique_ptr<Model> make_bpe(const Vocabulary& vocabulary, const std::vector<Merge>& merges,
                                BpeOptions options) {
  return std::make_unique<Bpe>(vocabulary, merges, std::move(options));
}

std::string byte_token(unsigned char byte) {
  constexpr char digits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

std::vector<int32_t> byte_tokens(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (int byte = 0; byte < 256; ++byte) {
    ids.push_back(vocabulary.find(byte_token(static_cast<unsigned char>(byte))));
    if (ids.back() == Vocabulary::none) return {};
  }
  return ids;
}

}  // namespace holdfast::lm::tokenizing
