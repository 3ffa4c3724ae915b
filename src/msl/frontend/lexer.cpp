#include "msl/frontend/lexer.h"

#include <string>

namespace holdfast::msl {
namespace {

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<SourceToken> run() {
    while (at_ < source_.size()) step();
    if (in_directive_) add(SourceToken::Kind::line_end, at_, at_);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void add(SourceToken::Kind kind, size_t begin, size_t end) {
    tokens_.push_back({kind, begin, end});
  }
  // The length of a backslash-newline here, or 0.
  size_t splice() const {
    if (peek() != '\\') return 0;
    if (peek(1) == '\n') return 2;
    return peek(1) == '\r' && peek(2) == '\n' ? 3 : 0;
  }

  void step() {
    if (size_t length = splice()) {
      at_ += length;
      return;
    }
    const char c = peek();
    if (c == '\n') {
      if (in_directive_) add(SourceToken::Kind::line_end, at_, at_ + 1);
      in_directive_ = false;
      line_is_empty_ = true;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (c == '/' && peek(1) == '/') {
      skip_line_comment();
    } else if (c == '/' && peek(1) == '*') {
      size_t end = source_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? source_.size() : end + 2;
    } else {
      token(c);
      line_is_empty_ = false;
    }
  }

  void skip_line_comment() {
    while (at_ < source_.size() && peek() != '\n') at_ += splice() ? splice() : 1;
  }

  void token(char c) {
    const size_t begin = at_;
    if (c == '#' && line_is_empty_) {
      directive();
    } else if (c == '"' || c == '\'') {
      quoted(c);
      add(SourceToken::Kind::string, begin, at_);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
      add(SourceToken::Kind::number, begin, at_);
    } else if (is_name_start(c)) {
      while (is_name_part(peek())) ++at_;
      if (peek() == '"' && source_[at_ - 1] == 'R' && at_ - begin <= 3) {
        raw_string();
        add(SourceToken::Kind::string, begin, at_);
      } else {
        add(SourceToken::Kind::name, begin, at_);
      }
    } else {
      ++at_;
      add(SourceToken::Kind::punctuation, begin, at_);
    }
  }

  void directive() {
    const size_t begin = at_++;
    while (peek() == ' ' || peek() == '\t') ++at_;
    const size_t name = at_;
    while (is_name_part(peek())) ++at_;
    const std::string_view word = source_.substr(name, at_ - name);
    add(SourceToken::Kind::directive, begin, at_);
    in_directive_ = true;
    // What follows these is not made of tokens: a file's name, or any text.
    if (word == "include" || word == "import" || word == "error" || word == "warning") {
      while (at_ < source_.size() && peek() != '\n') at_ += splice() ? splice() : 1;
    }
  }

  // A string or character literal, ended by its quote or by the line.
  void quoted(char quote) {
    ++at_;
    while (at_ < source_.size() && peek() != quote && peek() != '\n') {
      at_ += peek() == '\\' && at_ + 1 < source_.size() ? 2 : 1;
    }
    if (peek() == quote) ++at_;
    if (at_ > source_.size()) at_ = source_.size();
  }

  void raw_string() {
    const size_t open = source_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) {
      quoted('"');
      return;
    }
    std::string close = ")";
    close += source_.substr(at_ + 1, open - at_ - 1);
    close += '"';
    const size_t end = source_.find(close, open);
    at_ = end == std::string_view::npos ? source_.size() : end + close.size();
  }

  // A preprocessing number, with digit separators and signs after an exponent.
  void number() {
    while (at_ < source_.size()) {
      const char c = peek();
      const char before = at_ > 0 ? source_[at_ - 1] : ' ';
      const bool is_sign = (c == '+' || c == '-') &&
                           (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      if (is_sign && is_hexadecimal_e(before)) return;
      if (!is_name_part(c) && c != '.' && !is_sign && !(c == '\'' && is_name_part(peek(1)))) return;
      ++at_;
    }
  }
  // In 0x1e+2 the e is a digit.
  bool is_hexadecimal_e(char before) const {
    if (before != 'e' && before != 'E') return false;
    size_t begin = at_;
    while (begin > 0 && (is_name_part(source_[begin - 1]) || source_[begin - 1] == '.')) --begin;
    return source_[begin] == '0' && begin + 1 < source_.size() &&
           (source_[begin + 1] == 'x' || source_[begin + 1] == 'X');
  }

  std::string_view source_;
  size_t at_ = 0;
  bool line_is_empty_ = true;
  bool in_directive_ = false;
  std::vector<SourceToken> tokens_;
};

}  // namespace

std::vector<SourceToken> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace holdfast::msl
