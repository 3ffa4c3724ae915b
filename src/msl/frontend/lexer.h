// A small lexer for MSL before preprocessing: enough to know comments, strings, numbers and names
// apart.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace holdfast::msl {

struct SourceToken {
  enum class Kind { name, number, string, punctuation, directive, line_end };
  Kind kind;
  size_t begin, end;
};

// The tokens of `source` without comments and white space. `directive` is the `#` that starts one
// together with its name (`#define`, `#pragma`); the line_end that closes a directive is a token,
// other line ends are not. `[[`, `]]` and
// `::` are not joined. Unterminated strings and comments end with the text.
std::vector<SourceToken> lex(std::string_view source);

}  // namespace holdfast::msl
