#include "lm/text/pre_tokenizer.h"

#include <algorithm>
#include <vector>

#include "lm/text/normalizer.h"
#include "lm/text/regex.h"
#include "lm/text/unicode.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::tokenizing {
namespace {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

// What becomes of the matches of a pattern and of the text between them.
enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behaviour read_behaviour(const JsonView& json) {
  const std::string& name = json.string();
  if (name == "Removed") return Behaviour::removed;
  if (name == "Isolated") return Behaviour::isolated;
  if (name == "MergedWithPrevious") return Behaviour::merged_with_previous;
  if (name == "MergedWithNext") return Behaviour::merged_with_next;
  if (name == "Contiguous") return Behaviour::contiguous;
  json.fail("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

struct Part {
  size_t begin, end;
  bool matches;
};

// The text as matches and what is between them. `inverted` exchanges the two.
std::vector<Part> parts_of(std::string_view text, const Pattern& pattern, bool inverted) {
  std::vector<Range> ranges;
  pattern.find_all(text, ranges);
  std::vector<Part> parts;
  parts.reserve(2 * ranges.size() + 1);
  size_t done = 0;
  for (const Range& range : ranges) {
    if (range.begin > done) parts.push_back({done, range.begin, inverted});
    parts.push_back({range.begin, range.end, !inverted});
    done = range.end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), inverted});
  return parts;
}

// Parts that belong together made one. None but `removed` leaves any out.
void merge_parts(std::vector<Part>& parts, Behaviour behaviour) {
  std::vector<Part> merged;
  merged.reserve(parts.size());
  switch (behaviour) {
    case Behaviour::isolated:
      return;
    case Behaviour::removed:
      for (const Part& part : parts) {
        if (!part.matches) merged.push_back(part);
      }
      break;
    case Behaviour::contiguous:
      for (const Part& part : parts) {
        if (!merged.empty() && merged.back().matches == part.matches) {
          merged.back().end = part.end;
        } else {
          merged.push_back(part);
        }
      }
      break;
    case Behaviour::merged_with_previous: {
      bool after_match = false;
      for (const Part& part : parts) {
        if (part.matches && !after_match && !merged.empty()) {
          merged.back().end = part.end;
        } else {
          merged.push_back(part);
        }
        after_match = part.matches;
      }
      break;
    }
    case Behaviour::merged_with_next: {
      bool before_match = false;
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (part->matches && !before_match && !merged.empty()) {
          merged.back().begin = part->begin;
        } else {
          merged.push_back(*part);
        }
        before_match = part->matches;
      }
      std::reverse(merged.begin(), merged.end());
      break;
    }
  }
  parts = std::move(merged);
}

void split_by(const Piece& piece, const Pattern& pattern, Behaviour behaviour, bool inverted,
              PieceSink sink) {
  std::vector<Part> parts = parts_of(piece.text, pattern, inverted);
  merge_parts(parts, behaviour);
  for (const Part& part : parts) {
    if (part.begin < part.end)
      sink({piece.text.substr(part.begin, part.end - part.begin),
            piece.is_first && part.begin == 0});
  }
}

class Split : public PreTokenizer {
 public:
  Split(Pattern pattern, Behaviour behaviour, bool inverted = false)
      : pattern_(std::move(pattern)), behaviour_(behaviour), inverted_(inverted) {}
  void split(const Piece& piece, PieceSink sink) const override {
    split_by(piece, pattern_, behaviour_, inverted_, sink);
  }

 private:
  Pattern pattern_;
  Behaviour behaviour_;
  bool inverted_;
};

// Words as GPT-2 cuts them, where asked for, and their bytes as characters.
class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool prefix_space, bool cuts) : prefix_space_(prefix_space) {
    if (cuts)
      words_ = Pattern::expression(
          R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
          "ByteLevel");
  }

  void split(const Piece& piece, PieceSink sink) const override {
    std::string characters, spaced;
    Piece whole = piece;
    if (prefix_space_ && whole.text[0] != ' ') whole.text = spaced = " " + std::string(whole.text);
    auto hand_on = [&](const Piece& word) {
      characters.clear();
      append_byte_characters(word.text, characters);
      sink({characters, word.is_first});
    };
    if (words_) {
      split_by(whole, *words_, Behaviour::isolated, false, hand_on);
    } else {
      hand_on(whole);
    }
  }

 private:
  bool prefix_space_;
  std::optional<Pattern> words_;
};

// Spaces as a character of their own, each the beginning of a word.
class Metaspace : public PreTokenizer {
 public:
  enum class Prefix { always, first, never };
  Metaspace(std::string replacement, Prefix prefix, bool cuts)
      : replacement_(std::move(replacement)),
        found_(Pattern::literal(replacement_)),
        prefix_(prefix),
        cuts_(cuts) {}

  void split(const Piece& piece, PieceSink sink) const override {
    std::string text = spaces_.replace_all(piece.text, replacement_);
    bool prefixed = prefix_ == Prefix::always || (prefix_ == Prefix::first && piece.is_first);
    if (prefixed && !text.starts_with(replacement_)) text.insert(0, replacement_);
    if (cuts_) {
      split_by({text, piece.is_first}, found_, Behaviour::merged_with_next, false, sink);
    } else {
      sink({text, piece.is_first});
    }
  }

 private:
  std::string replacement_;
  Pattern found_, spaces_ = Pattern::literal(" ");
  Prefix prefix_;
  bool cuts_;
};

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<PreTokenizerPtr> steps) : steps_(std::move(steps)) {}
  void split(const Piece& piece, PieceSink sink) const override { split_from(0, piece, sink); }

 private:
  void split_from(size_t step, const Piece& piece, PieceSink sink) const {
    if (step == steps_.size()) {
      sink(piece);
    } else {
      steps_[step]->split(piece, [&](const Piece& part) { split_from(step + 1, part, sink); });
    }
  }

  std::vector<PreTokenizerPtr> steps_;
};

PreTokenizerPtr make_split(Pattern pattern, Behaviour behaviour, bool inverted = false) {
  return std::make_unique<Split>(std::move(pattern), behaviour, inverted);
}

PreTokenizerPtr read_metaspace(const JsonView& json) {
  std::string replacement = json.string_or("replacement", metaspace);
  if (replacement.empty()) json["replacement"].fail("a character");
  auto prefix = json.boolean_or("add_prefix_space", true) ? Metaspace::Prefix::always
                                                          : Metaspace::Prefix::never;
  if (json.has("prepend_scheme")) {
    const std::string& scheme = json["prepend_scheme"].string();
    if (scheme == "always") {
      prefix = Metaspace::Prefix::always;
    } else if (scheme == "first") {
      prefix = Metaspace::Prefix::first;
    } else if (scheme == "never") {
      prefix = Metaspace::Prefix::never;
    } else {
      json["prepend_scheme"].fail("always, first or never");
    }
  }
  return std::make_unique<Metaspace>(replacement, prefix, json.boolean_or("split", true));
}

PreTokenizerPtr read_pre_tokenizer_step(const JsonView& json, int depth) {
  const std::string& type = json["type"].string();
  if (type == "Sequence") {
    if (depth == deepest_sequence)
      throw ModelError(
          message(json.path(), ": more than ", deepest_sequence, " sequences inside each other"));
    JsonView list = json["pretokenizers"];
    if (list.size() > 64) throw ModelError(message(list.path(), ": more than 64 steps"));
    std::vector<PreTokenizerPtr> steps;
    for (size_t i = 0; i < list.size(); ++i)
      steps.push_back(read_pre_tokenizer_step(list[i], depth + 1));
    return std::make_unique<PreTokenizerSequence>(std::move(steps));
  }
  if (type == "ByteLevel")
    return std::make_unique<ByteLevel>(json.boolean_or("add_prefix_space", true),
                                       json.boolean_or("use_regex", true));
  if (type == "Split") {
    JsonView pattern = json["pattern"];
    return make_split(pattern.has("Regex")
                          ? Pattern::expression(pattern["Regex"].string(), pattern.path())
                          : Pattern::literal(pattern["String"].string()),
                      read_behaviour(json["behavior"]), json.boolean_or("invert", false));
  }
  if (type == "Digits")
    return make_split(Pattern::characters(is_number), json.boolean_or("individual_digits", false)
                                                          ? Behaviour::isolated
                                                          : Behaviour::contiguous);
  if (type == "Punctuation")
    return make_split(Pattern::characters(is_punctuation), json.has("behavior")
                                                               ? read_behaviour(json["behavior"])
                                                               : Behaviour::isolated);
  if (type == "Whitespace") {
    std::vector<PreTokenizerPtr> steps;
    steps.push_back(make_split(Pattern::characters(is_whitespace), Behaviour::removed));
    steps.push_back(make_split(Pattern::characters(is_word_character), Behaviour::contiguous));
    return std::make_unique<PreTokenizerSequence>(std::move(steps));
  }
  if (type == "WhitespaceSplit")
    return make_split(Pattern::characters(is_whitespace), Behaviour::removed);
  if (type == "CharDelimiterSplit")
    return make_split(Pattern::literal(json["delimiter"].string()), Behaviour::removed);
  if (type == "BertPreTokenizer") {
    std::vector<PreTokenizerPtr> steps;
    steps.push_back(make_split(Pattern::characters(is_whitespace), Behaviour::removed));
    steps.push_back(make_split(Pattern::characters(is_punctuation), Behaviour::isolated));
    return std::make_unique<PreTokenizerSequence>(std::move(steps));
  }
  if (type == "Metaspace") return read_metaspace(json);
  json["type"].fail(
      "ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, CharDelimiterSplit, "
      "BertPreTokenizer, Metaspace or Sequence");
}

}  // namespace

PreTokenizerPtr read_pre_tokenizer(const JsonView& json) {
  return read_pre_tokenizer_step(json, 0);
}

}  // namespace holdfast::lm::tokenizing
