// Regular expressions over valid UTF-8 (PCRE2, with what Unicode says about \s, \d and \w).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::lm::tokenizing {

struct Range {
  size_t begin, end;
};

// Immutable once made: any thread may search with it. A search that takes more steps or memory than
// a tokenizer's expression ever should throws.
class Regex {
 public:
  // Throws ModelError for what is no expression; `where` says whose it is.
  Regex(const std::string& expression, const std::string& where);
  std::optional<Range> find(std::string_view text, size_t from) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string expression_;
};

// What is looked for in a text: a string, an expression, or characters of a kind.
class Pattern {
 public:
  static Pattern literal(std::string text);
  static Pattern expression(const std::string& expression, const std::string& where);
  // Each character for which the function returns true.
  static Pattern characters(bool (*belongs)(char32_t));

  // All matches from left to right, which do not overlap; appended.
  void find_all(std::string_view text, std::vector<Range>& matches) const;
  std::string replace_all(std::string_view text, std::string_view replacement) const;

 private:
  std::string literal_;
  std::optional<Regex> regex_;
  bool (*belongs_)(char32_t) = nullptr;
};

}  // namespace holdfast::lm::tokenizing
