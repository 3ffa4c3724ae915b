#include <holdfast/lm/errors.h>

#include <algorithm>

#include "lm/support.h"
#include "lm/text/jinja/parser.h"

namespace holdfast::lm::jinja {

Body parse(std::string_view source) {
  if (source.size() > longest_source)
    throw ModelError(message("[ChatTemplate] the template has ", source.size(), " bytes; at most ",
                             longest_source, " are allowed"));
  return Parser(source).parse_template();
}

Body Parser::parse_template() { return parse_body({}); }

// Statements up to a tag with one of these names, whose name is the next token then; or to the end
// of the template.
Body Parser::parse_body(std::initializer_list<std::string_view> ends) {
  Nesting nesting(*this);
  Body body;
  while (true) {
    const Token& token = next();
    if (token.kind == Token::data) {
      body.push_back(std::make_unique<Text>(token.line, token.text));
    } else if (token.kind == Token::variable_begin) {
      auto output = std::make_unique<Output>(token.line);
      output->value = parse_tuple();
      if (current().kind != Token::variable_end) fail("'}}'");
      next();
      body.push_back(std::move(output));
    } else if (token.kind == Token::block_begin) {
      if (current().kind != Token::name) fail("the name of a tag");
      const std::string& name = current().text;
      if (std::find(ends.begin(), ends.end(), name) != ends.end()) return body;
      if (name.starts_with("end") || name == "else" || name == "elif")
        fail(ends.size() ? message("{% ", *(ends.end() - 1), " %}") : "a tag that can stand here");
      std::string known = next().text;
      body.push_back(parse_statement(known, token.line));
    } else if (token.kind == Token::end) {
      if (ends.size()) fail(message("{% ", *(ends.end() - 1), " %}"));
      return body;
    } else {
      --position_;
      fail("text or a tag");
    }
  }
}

Body Parser::parse_rest(std::initializer_list<std::string_view> ends) {
  end_block();
  return parse_body(ends);
}

void Parser::end_block() {
  if (current().kind != Token::block_end) fail("'%}'");
  next();
}

std::unique_ptr<Statement> Parser::parse_statement(const std::string& name, int line) {
  if (name == "if") return parse_if(line);
  if (name == "for") return parse_for(line);
  if (name == "set") return parse_set(line);
  if (name == "macro") return parse_macro(line);
  if (name == "call") return parse_call(line);
  if (name == "with" || name == "generation") return parse_with(line, name == "generation");
  if (name == "break" || name == "continue") {
    if (loops_ == 0) fail_in_template(line, message("{% ", name, " %} is in no loop"));
    end_block();
    return std::make_unique<LoopControl>(line,
                                         name == "break" ? Flow::break_loop : Flow::continue_loop);
  }
  if (name == "filter") {
    auto node = std::make_unique<FilterBlock>(line);
    node->filters = parse_filter_chain();
    node->body = parse_rest({"endfilter"});
    next(), end_block();
    return node;
  }
  fail_in_template(line, message("unknown tag '", name,
                                 "'; known are if, for, set, macro, call, filter, with, "
                                 "generation, break, continue and raw"));
}

std::unique_ptr<Statement> Parser::parse_if(int line) {
  auto node = std::make_unique<If>(line);
  while (true) {
    ExpressionPtr condition = parse_tuple(false);
    Body body = parse_rest({"elif", "else", "endif"});
    node->branches.emplace_back(std::move(condition), std::move(body));
    std::string end = next().text;
    if (end == "elif") continue;
    if (end == "else") {
      node->otherwise = parse_rest({"endif"});
      next();
    }
    end_block();
    return node;
  }
}

std::unique_ptr<Statement> Parser::parse_for(int line) {
  auto node = std::make_unique<For>(line);
  node->target = parse_target();
  if (!node->target.member.empty()) fail("a name that is no member of a namespace");
  expect_name("in");
  node->sequence = parse_tuple(false);
  if (take_name("if")) node->condition = parse_expression();
  if (is_name("recursive"))
    fail_in_template(line, "recursive loops are not known; use a macro that calls itself");
  ++loops_;
  node->body = parse_rest({"else", "endfor"});
  --loops_;
  if (next().text == "else") {
    node->otherwise = parse_rest({"endfor"});
    next();
  }
  end_block();
  return node;
}

// `a`, `a, b`, `(a, b)` or `a.b`.
Target Parser::parse_target() {
  Target target;
  bool in_brackets = take_symbol("(");
  target.names.push_back(expect_any_name("a name to assign to"));
  if (!in_brackets && take_symbol(".")) {
    target.member = expect_any_name("the name of a member");
    return target;
  }
  while (take_symbol(",")) {
    target.is_unpacked = true;
    if (current().kind != Token::name || is_name("in")) break;
    target.names.push_back(next().text);
  }
  if (in_brackets) expect_symbol(")");
  return target;
}

std::unique_ptr<Statement> Parser::parse_set(int line) {
  auto node = std::make_unique<Set>(line);
  node->target = parse_target();
  if (take_symbol("=")) {
    node->value = parse_tuple();
    end_block();
    return node;
  }
  if (node->target.is_unpacked) fail("'='");
  if (is_symbol("|")) {
    next();
    node->filters = parse_filter_chain();
  }
  node->body = parse_rest({"endset"});
  next(), end_block();
  return node;
}

std::vector<std::unique_ptr<Filter>> Parser::parse_filter_chain() {
  std::vector<std::unique_ptr<Filter>> filters;
  do {
    filters.push_back(parse_filter(nullptr));
  } while (take_symbol("|"));
  return filters;
}

Parameters Parser::parse_parameters() {
  Parameters parameters;
  expect_symbol("(");
  while (!is_symbol(")")) {
    std::string name = expect_any_name("the name of a parameter");
    if (std::find(parameters.names.begin(), parameters.names.end(), name) != parameters.names.end())
      fail(message("a parameter that is not called ", name, " as another is"));
    parameters.names.push_back(std::move(name));
    if (take_symbol("=")) {
      parameters.defaults.push_back(parse_expression());
    } else if (!parameters.defaults.empty()) {
      fail("'=', as an earlier parameter has a default");
    }
    if (!take_symbol(",")) break;
  }
  expect_symbol(")");
  return parameters;
}

std::unique_ptr<Statement> Parser::parse_macro(int line) {
  auto node = std::make_unique<Macro>(line);
  node->name = expect_any_name("the name of a macro");
  node->parameters = parse_parameters();
  int loops = std::exchange(loops_, 0);
  node->body = parse_rest({"endmacro"});
  loops_ = loops;
  next();
  if (current().kind == Token::name) next();
  end_block();
  return node;
}

std::unique_ptr<Statement> Parser::parse_call(int line) {
  auto node = std::make_unique<CallBlock>(line);
  if (is_symbol("(")) node->parameters = parse_parameters();
  node->call = parse_expression();
  if (!dynamic_cast<CallExpression*>(node->call.get())) fail("a call");
  int loops = std::exchange(loops_, 0);
  node->body = parse_rest({"endcall"});
  loops_ = loops;
  next(), end_block();
  return node;
}

std::unique_ptr<Statement> Parser::parse_with(int line, bool is_generation) {
  auto node = std::make_unique<With>(line);
  while (!is_generation && current().kind == Token::name) {
    Target target;
    target.names.push_back(next().text);
    expect_symbol("=");
    node->values.emplace_back(std::move(target), parse_expression());
    if (!take_symbol(",")) break;
  }
  node->body = parse_rest({is_generation ? "endgeneration" : "endwith"});
  next(), end_block();
  return node;
}

}  // namespace holdfast::lm::jinja
