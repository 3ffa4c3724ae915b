#include "lm/text/jinja/lexer.h"

#include <holdfast/lm/errors.h>

#include <algorithm>
#include <array>

#include "lm/support.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::jinja {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// Line ends as "\n", without the last one.
std::string with_plain_lines(std::string_view source) {
  std::string result;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      result += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      result += source[i];
    }
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

int digit_value(char c, int base) {
  int value = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
  return value < base ? value : -1;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) read_data();
    add(Token::end, "");
    return std::move(tokens_);
  }

 private:
  bool at(std::string_view text) const {
    return std::string_view(source_).substr(position_).starts_with(text);
  }
  void add(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }
  void advance(size_t count) {
    size_t end = std::min(position_ + count, source_.size());
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(position_),
                                         source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    position_ = end;
  }
  void skip_space() {
    size_t end = position_;
    while (end < source_.size() && is_space(source_[end])) ++end;
    advance(end - position_);
  }

  // The text up to the next tag, and the tag.
  void read_data() {
    size_t tag = position_;
    for (; tag + 1 < source_.size(); ++tag) {
      if (source_[tag] == '{' &&
          (source_[tag + 1] == '{' || source_[tag + 1] == '%' || source_[tag + 1] == '#'))
        break;
    }
    if (tag + 1 >= source_.size()) tag = source_.size();
    std::string text = source_.substr(position_, tag - position_);
    char kind = tag < source_.size() ? source_[tag + 1] : 0;
    char sign = tag + 2 < source_.size() ? source_[tag + 2] : 0;
    if (kind) strip_before_tag(text, kind, sign);
    if (!text.empty()) add(Token::data, text);
    advance(tag - position_);
    if (!kind) return;
    advance(sign == '-' || sign == '+' ? 3 : 2);
    if (kind == '#') {
      read_comment();
    } else if (kind == '{') {
      add(Token::variable_begin, "{{");
      read_tag("}}", Token::variable_end);
    } else if (!read_raw()) {
      add(Token::block_begin, "{%");
      read_tag("%}", Token::block_end);
    }
  }

  void strip_before_tag(std::string& text, char kind, char sign) const {
    if (sign == '-') {
      while (!text.empty() && is_space(text.back())) text.pop_back();
    } else if (sign != '+' && kind != '{') {
      // A tag that is the first thing in its line takes the indentation with it.
      size_t line = text.rfind('\n') + 1;  // 0 without one
      bool starts_line = line > 0 || after_line_end_;
      if (starts_line &&
          std::all_of(text.begin() + static_cast<ptrdiff_t>(line), text.end(), is_space))
        text.resize(line);
    }
  }

  // The end of a tag, and the white space that it takes. `trims`: also the line end after it.
  void end_tag(std::string_view end, bool trims) {
    size_t begin = position_;
    if (at("-")) {
      advance(1 + end.size());
      skip_space();
    } else if (at("+")) {
      advance(1 + end.size());
    } else {
      advance(end.size());
      if (trims && at("\n")) advance(1);
    }
    after_line_end_ = position_ > begin && source_[position_ - 1] == '\n';
  }
  bool at_end_of_tag(std::string_view end) const {
    std::string_view rest = std::string_view(source_).substr(position_);
    if (rest.starts_with(end)) return true;
    bool signed_end = rest.size() > 1 && (rest[0] == '-' || (rest[0] == '+' && end != "}}"));
    return signed_end && rest.substr(1).starts_with(end);
  }

  void read_comment() {
    int line = line_;
    size_t end = source_.find("#}", position_);
    if (end == std::string::npos) fail_in_template(line, "a comment has no end");
    bool has_sign = end > position_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    advance(end - position_ - (has_sign ? 1 : 0));
    end_tag("#}", true);
  }

  // {% raw %} … {% endraw %}: text. The tag's beginning has been read.
  bool read_raw() {
    size_t word = position_;
    while (word < source_.size() && is_space(source_[word])) ++word;
    if (source_.compare(word, 3, "raw") != 0) return false;
    size_t end = word + 3;
    while (end < source_.size() && is_space(source_[end])) ++end;
    bool strips = source_.compare(end, 3, "-%}") == 0;
    if (!strips && source_.compare(end, 2, "%}") != 0) return false;
    int line = line_;
    advance(end + (strips ? 3 : 2) - position_);
    if (strips) skip_space();
    after_line_end_ = position_ > 0 && source_[position_ - 1] == '\n';
    for (size_t tag = source_.find("{%", position_); tag != std::string::npos;
         tag = source_.find("{%", tag + 1)) {
      size_t at_word = tag + 2;
      char sign = at_word < source_.size() ? source_[at_word] : 0;
      if (sign == '-' || sign == '+') ++at_word;
      while (at_word < source_.size() && is_space(source_[at_word])) ++at_word;
      if (source_.compare(at_word, 6, "endraw") != 0) continue;
      std::string text = source_.substr(position_, tag - position_);
      strip_before_tag(text, '%', sign);
      if (!text.empty()) add(Token::data, text);
      advance(at_word + 6 - position_);
      skip_space();
      if (!at_end_of_tag("%}")) fail_in_template(line_, "endraw takes nothing");
      end_tag("%}", true);
      return true;
    }
    fail_in_template(line, "{% raw %} has no {% endraw %}");
  }

  void read_tag(std::string_view end, Token::Kind end_kind) {
    int line = line_;
    std::string open;  // the brackets that are open, in which an end of the tag is none
    while (true) {
      skip_space();
      if (position_ >= source_.size()) fail_in_template(line, "a tag has no end");
      if (open.empty() && at_end_of_tag(end)) {
        add(end_kind, std::string(end));
        end_tag(end, end_kind == Token::block_end);
        return;
      }
      char c = source_[position_];
      if (is_name_start(c)) {
        size_t stop = position_;
        while (stop < source_.size() && is_name_part(source_[stop])) ++stop;
        add(Token::name, source_.substr(position_, stop - position_));
        advance(stop - position_);
      } else if (is_digit(c)) {
        read_number();
      } else if (c == '\'' || c == '"') {
        read_string(c);
      } else {
        read_symbol(open);
      }
    }
  }

  void read_symbol(std::string& open) {
    constexpr std::array<std::string_view, 27> symbols{
        "**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "<", ">",
        "=",  ".",  ":",  "|",  ",",  ";",  "(", ")", "[", "]", "{", "}", "!"};
    for (std::string_view symbol : symbols) {
      if (!at(symbol)) continue;
      char c = symbol[0];
      if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (open.empty() || open.back() != c)
          fail_in_template(line_, message("unexpected '", symbol, "'"));
        open.pop_back();
      }
      add(Token::symbol, std::string(symbol));
      advance(symbol.size());
      return;
    }
    fail_in_template(line_, message("unexpected character '", source_[position_], "'"));
  }

  void read_number() {
    std::string digits;
    size_t i = position_;
    auto read_digits = [&](int base) {
      for (; i < source_.size(); ++i) {
        if (digit_value(source_[i], base) >= 0) {
          digits += source_[i];
        } else if (source_[i] != '_' || i + 1 >= source_.size() ||
                   digit_value(source_[i + 1], base) < 0) {
          break;
        }
      }
    };
    Token::Kind kind = Token::integer;
    if (source_[i] == '0' && i + 2 < source_.size()) {
      char letter = source_[i + 1] | 32;
      int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
      if (base && digit_value(source_[i + 2], base) >= 0) {
        i += 2;
        read_digits(base);
        add_integer(digits, base);
        advance(i - position_);
        return;
      }
    }
    read_digits(10);
    if (i + 1 < source_.size() && source_[i] == '.' && is_digit(source_[i + 1])) {
      kind = Token::floating;
      digits += source_[i++];
      read_digits(10);
    }
    if (i < source_.size() && (source_[i] | 32) == 'e') {
      size_t sign = i + 1 < source_.size() && (source_[i + 1] == '+' || source_[i + 1] == '-');
      if (i + 1 + sign < source_.size() && is_digit(source_[i + 1 + sign])) {
        kind = Token::floating;
        digits.append(source_, i, 1 + sign);
        i += 1 + sign;
        read_digits(10);
      }
    }
    if (kind == Token::integer) {
      add_integer(digits, 10);
    } else {
      add(kind, digits);
    }
    advance(i - position_);
  }

  void add_integer(const std::string& digits, int base) {
    try {
      add(Token::integer, std::to_string(std::stoll(digits, nullptr, base)));
    } catch (const std::out_of_range&) {
      fail_in_template(line_, message("the integer ", digits, " has more than 64 bits"));
    }
  }

  void read_string(char quote) {
    int line = line_;
    std::string text;
    size_t i = position_ + 1;
    for (; i < source_.size() && source_[i] != quote; ++i) {
      if (source_[i] != '\\' || i + 1 >= source_.size()) {
        text += source_[i];
      } else {
        ++i;
        i = read_escape(i, text);
      }
    }
    if (i >= source_.size()) fail_in_template(line, "a string has no end");
    add(Token::string, text);
    advance(i + 1 - position_);
  }

  // What follows a backslash, at `i`. Returns the last position that belongs to it.
  size_t read_escape(size_t i, std::string& text) {
    char c = source_[i];
    constexpr std::string_view letters = "abfnrtv\\'\"", meanings = "\a\b\f\n\r\t\v\\'\"";
    if (size_t simple = letters.find(c); simple != std::string_view::npos) {
      text += meanings[simple];
      return i;
    }
    if (c == '\n') return i;
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    int base = digits ? 16 : 8;
    size_t first = i + 1;
    if (!digits && digit_value(c, 8) >= 0) first = i, digits = 3;
    if (!digits) {
      text += '\\', text += c;
      return i;
    }
    char32_t value = 0;
    size_t count = 0;
    while (count < digits && first + count < source_.size()) {
      int digit = digit_value(source_[first + count], base);
      if (digit < 0) break;
      value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit);
      ++count;
    }
    bool is_character = value < 0xd800 || (value > 0xdfff && value <= 0x10ffff);
    if ((base == 16 && count < digits) || !is_character)
      fail_in_template(line_, "an escape in a string is no character");
    tokenizing::append_code_point(text, value);
    return first + count - 1;
  }

  std::string source_;
  size_t position_ = 0;
  int line_ = 1;
  bool after_line_end_ = true;  // the last tag ended a line, or there was none
  std::vector<Token> tokens_;
};

}  // namespace

void fail_in_template(int line, const std::string& what) {
  throw ModelError(message("[ChatTemplate] line ", line, ": ", what));
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(with_plain_lines(tokenizing::valid_utf8(source))).run();
}

}  // namespace holdfast::lm::jinja
