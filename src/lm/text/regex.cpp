#include "lm/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <holdfast/lm/errors.h>

#include <new>

#include "lm/support.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::tokenizing {
namespace {

constexpr size_t longest_expression = 1 << 16;  // bytes

std::string describe_error(int number) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(number, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// What a search needs besides the expression; each thread has its own.
struct Search {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, 8 << 20, nullptr);

  Search() {
    if (!match || !context) {
      free();
      throw std::bad_alloc();
    }
    pcre2_set_match_limit(context, 5'000'000);
    pcre2_set_heap_limit(context, 64 << 10);  // KiB
    if (stack) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Search() { free(); }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  void free() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

}  // namespace

namespace {

// The expression with \w as tokenizers mean it: letters, marks, decimal digits and connectors,
// where PCRE2 means letters and numbers.
std::string with_word_characters(const std::string& expression) {
  constexpr std::string_view set = R"(\p{L}\p{M}\p{Nd}\p{Pc})";
  std::string result;
  bool in_class = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    char c = expression[i];
    if (c == '\\' && i + 1 < expression.size()) {
      char letter = expression[++i];
      if (letter == 'w') {
        result += in_class ? std::string(set) : message("[", set, "]");
      } else if (letter == 'W' && !in_class) {
        result += message("[^", set, "]");
      } else {
        result += c, result += letter;
      }
      continue;
    }
    if (c == '[' && !in_class) {
      in_class = true;
      // A bracket that comes first in a class is a character.
      result += c;
      if (i + 1 < expression.size() && expression[i + 1] == '^') result += expression[++i];
      if (i + 1 < expression.size() && expression[i + 1] == ']') result += expression[++i];
      continue;
    }
    if (c == ']') in_class = false;
    result += c;
  }
  return result;
}

}  // namespace

struct Regex::Code {
  pcre2_code* code;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(const std::string& expression, const std::string& where) : expression_(expression) {
  if (expression.size() > longest_expression)
    throw ModelError(message(where, ": a regular expression of ", expression.size(),
                             " bytes; at most ", longest_expression, " are allowed"));
  int error;
  PCRE2_SIZE position;
  std::string source = with_word_characters(expression);
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &position, nullptr);
  if (!code)
    throw ModelError(message(where, ": \"", expression, "\" is no regular expression: ",
                             describe_error(error), " at byte ", position));
  code_ = std::shared_ptr<const Code>(new Code{code});
  // Where programs may not generate machine code, the expression is interpreted.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

std::optional<Range> Regex::find(std::string_view text, size_t from) const {
  thread_local Search search;
  int result = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                           from, PCRE2_NO_UTF_CHECK, search.match, search.context);
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0)
    throw RequestError(message("[Tokenizer] the regular expression \"", expression_,
                               "\" gives up on a text of ", text.size(), " bytes at byte ", from,
                               ": ", describe_error(result)));
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(search.match);
  // \K in a lookahead can put the beginning of a match behind its end.
  return Range{std::min(range[0], range[1]), range[1]};
}

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Pattern Pattern::expression(const std::string& expression, const std::string& where) {
  Pattern pattern;
  pattern.regex_.emplace(expression, where);
  return pattern;
}

Pattern Pattern::characters(bool (*belongs)(char32_t)) {
  Pattern pattern;
  pattern.belongs_ = belongs;
  return pattern;
}

void Pattern::find_all(std::string_view text, std::vector<Range>& matches) const {
  if (belongs_) {
    for (size_t i = 0; i < text.size();) {
      size_t begin = i;
      if (belongs_(next_code_point(text, i))) matches.push_back({begin, i});
    }
  } else if (regex_) {
    for (size_t from = 0; from <= text.size();) {
      std::optional<Range> match = regex_->find(text, from);
      if (!match) return;
      // \K can make a match begin before the place where its search began.
      if (match->begin >= from) matches.push_back(*match);
      if (match->end > from) {
        from = match->end;
        if (match->begin < match->end) continue;
      }
      // After an empty match, the search goes on at the next character.
      if (from >= text.size()) return;
      from += character_length(text[from]);
    }
  } else if (!literal_.empty()) {
    for (size_t at = text.find(literal_); at != std::string_view::npos;
         at = text.find(literal_, at + literal_.size()))
      matches.push_back({at, at + literal_.size()});
  }
}

std::string Pattern::replace_all(std::string_view text, std::string_view replacement) const {
  std::vector<Range> matches;
  find_all(text, matches);
  std::string result;
  size_t done = 0;
  for (const Range& match : matches) {
    result.append(text, done, match.begin - done);
    result += replacement;
    done = match.end;
  }
  result.append(text, done);
  return result;
}

}  // namespace holdfast::lm::tokenizing
