// The source of a template as text and tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::lm::jinja {

struct Token {
  enum Kind {
    data,  // text between tags, with white space already removed where tags say so
    block_begin,
    block_end,
    variable_begin,
    variable_end,
    name,
    string,  // its escapes resolved
    integer,
    floating,
    symbol,
    end
  } kind;
  std::string text;
  int line;
};

// White space around tags as with trim_blocks and lstrip_blocks, which chat templates are written
// for. Throws ModelError.
std::vector<Token> tokenize(std::string_view source);

[[noreturn]] void fail_in_template(int line, const std::string& what);

}  // namespace holdfast::lm::jinja
