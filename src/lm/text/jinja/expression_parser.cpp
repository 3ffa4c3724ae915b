#include <holdfast/lm/errors.h>

#include <algorithm>
#include <array>

#include "lm/support.h"
#include "lm/text/jinja/parser.h"

namespace holdfast::lm::jinja {
namespace {

struct OperatorRow {
  std::string_view symbol;
  BinaryOperator operation;
};
// From the loosest level to the tightest.
const std::array<std::vector<OperatorRow>, 4> operator_levels{{
    {{"+", BinaryOperator::add}, {"-", BinaryOperator::subtract}},
    {{"~", BinaryOperator::concatenate}},
    {{"*", BinaryOperator::multiply},
     {"//", BinaryOperator::floor_divide},
     {"/", BinaryOperator::divide},
     {"%", BinaryOperator::modulo}},
    {{"**", BinaryOperator::power}},
}};

}  // namespace

bool Parser::take_symbol(std::string_view text) {
  if (!is_symbol(text)) return false;
  next();
  return true;
}

bool Parser::take_name(std::string_view text) {
  if (!is_name(text)) return false;
  next();
  return true;
}

void Parser::expect_symbol(std::string_view text) {
  if (!take_symbol(text)) fail(message("'", text, "'"));
}

void Parser::expect_name(std::string_view text) {
  if (!take_name(text)) fail(message("'", text, "'"));
}

std::string Parser::expect_any_name(const char* what) {
  if (current().kind != Token::name) fail(what);
  return next().text;
}

void Parser::fail(const std::string& expected) const {
  const Token& token = current();
  std::string got = token.kind == Token::end    ? "the end of the template"
                    : token.kind == Token::data ? "text"
                                                : "'" + token.text.substr(0, 40) + "'";
  fail_in_template(token.line, message("expected ", expected, ", got ", got));
}

void Parser::check_depth(int depth) const {
  if (depth > deepest_tree)
    fail_in_template(current().line,
                     message("expressions and tags are nested more than ", deepest_tree, " times"));
}

void Parser::set_depth_of(Expression& node, const Arguments& arguments) {
  for (const ExpressionPtr& argument : arguments.positional) set_depth(node, argument);
  for (const auto& [name, argument] : arguments.keywords) set_depth(node, argument);
}

ExpressionPtr Parser::parse_tuple(bool with_condition) {
  int line = current().line;
  ExpressionPtr first = parse_expression(with_condition);
  if (!is_symbol(",")) return first;
  auto tuple = std::make_unique<ListLiteral>(line);
  tuple->is_tuple = true;
  tuple->items.push_back(std::move(first));
  while (take_symbol(",")) {
    if (current().kind == Token::block_end || current().kind == Token::variable_end ||
        is_symbol(")") || is_symbol("=") || is_name("in"))
      break;
    tuple->items.push_back(parse_expression(with_condition));
  }
  for (const ExpressionPtr& item : tuple->items) set_depth(*tuple, item);
  return tuple;
}

ExpressionPtr Parser::parse_expression(bool with_condition) {
  Nesting nesting(*this);
  ExpressionPtr value = parse_or();
  while (with_condition && is_name("if")) {
    auto conditional = std::make_unique<Conditional>(next().line);
    conditional->then = std::move(value);
    conditional->condition = parse_or();
    if (take_name("else")) conditional->otherwise = parse_expression();
    set_depth(*conditional, conditional->then, conditional->condition, conditional->otherwise);
    value = std::move(conditional);
  }
  return value;
}

ExpressionPtr Parser::parse_or() {
  ExpressionPtr left = parse_and();
  while (is_name("or")) {
    auto node = std::make_unique<Logical>(next().line);
    node->is_and = false;
    node->left = std::move(left);
    node->right = parse_and();
    set_depth(*node, node->left, node->right);
    left = std::move(node);
  }
  return left;
}

ExpressionPtr Parser::parse_and() {
  ExpressionPtr left = parse_not();
  while (is_name("and")) {
    auto node = std::make_unique<Logical>(next().line);
    node->is_and = true;
    node->left = std::move(left);
    node->right = parse_not();
    set_depth(*node, node->left, node->right);
    left = std::move(node);
  }
  return left;
}

ExpressionPtr Parser::parse_not() {
  if (!is_name("not")) return parse_comparison();
  Nesting nesting(*this);
  auto node = std::make_unique<Unary>(next().line);
  node->operation = Unary::negated;
  node->operand = parse_not();
  set_depth(*node, node->operand);
  return node;
}

ExpressionPtr Parser::parse_comparison() {
  ExpressionPtr first = parse_binary(0);
  std::unique_ptr<Comparison> node;
  while (true) {
    std::string symbol;
    for (std::string_view known : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (is_symbol(known)) symbol = known;
    }
    bool is_not_in = is_name("not") && tokens_[position_ + 1].kind == Token::name &&
                     tokens_[position_ + 1].text == "in";
    if (is_name("in")) symbol = "in";
    if (is_not_in) symbol = "not in", next();
    if (symbol.empty()) break;
    int line = next().line;
    if (!node) {
      node = std::make_unique<Comparison>(line);
      node->first = std::move(first);
    }
    node->others.emplace_back(symbol, parse_binary(0));
    set_depth(*node, node->first, node->others.back().second);
  }
  if (node) return node;
  return first;
}

ExpressionPtr Parser::parse_binary(size_t level) {
  if (level == operator_levels.size()) return parse_unary();
  ExpressionPtr left = parse_binary(level + 1);
  while (true) {
    const auto& rows = operator_levels[level];
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const OperatorRow& known) { return is_symbol(known.symbol); });
    if (row == rows.end()) return left;
    auto node = std::make_unique<Binary>(next().line);
    node->operation = row->operation;
    node->left = std::move(left);
    node->right = parse_binary(level + 1);
    set_depth(*node, node->left, node->right);
    left = std::move(node);
  }
}

ExpressionPtr Parser::parse_unary(bool with_filters) {
  Nesting nesting(*this);
  ExpressionPtr value;
  if (is_symbol("-") || is_symbol("+")) {
    bool is_negative = is_symbol("-");
    auto node = std::make_unique<Unary>(next().line);
    node->operation = is_negative ? Unary::negative : Unary::positive;
    node->operand = parse_unary(false);
    set_depth(*node, node->operand);
    value = std::move(node);
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr Parser::parse_primary() {
  const Token& token = current();
  int line = token.line;
  auto constant = [&](Value value) { return std::make_unique<Constant>(line, std::move(value)); };
  if (token.kind == Token::name) {
    const std::string& name = next().text;
    if (name == "true" || name == "True") return constant(true);
    if (name == "false" || name == "False") return constant(false);
    if (name == "none" || name == "None") return constant(None{});
    return std::make_unique<Name>(line, name);
  }
  if (token.kind == Token::string) {
    std::string text = next().text;
    while (current().kind == Token::string) text += next().text;
    return constant(std::move(text));
  }
  if (token.kind == Token::integer) return constant(int64_t{std::stoll(next().text)});
  if (token.kind == Token::floating) {
    try {
      return constant(std::stod(next().text));
    } catch (const std::out_of_range&) {
      fail_in_template(line, "a number is too large or too small");
    }
  }
  if (take_symbol("(")) {
    if (take_symbol(")")) {
      auto empty = std::make_unique<ListLiteral>(line);
      empty->is_tuple = true;
      return empty;
    }
    ExpressionPtr inside = parse_tuple();
    expect_symbol(")");
    return inside;
  }
  if (take_symbol("[")) {
    auto list = std::make_unique<ListLiteral>(line);
    while (!is_symbol("]")) {
      list->items.push_back(parse_expression());
      set_depth(*list, list->items.back());
      if (!take_symbol(",")) break;
    }
    expect_symbol("]");
    return list;
  }
  if (take_symbol("{")) return parse_dict(line);
  fail("an expression");
}

ExpressionPtr Parser::parse_dict(int line) {
  auto dict = std::make_unique<DictLiteral>(line);
  while (!is_symbol("}")) {
    ExpressionPtr key = parse_expression();
    expect_symbol(":");
    ExpressionPtr value = parse_expression();
    set_depth(*dict, key, value);
    dict->items.emplace_back(std::move(key), std::move(value));
    if (!take_symbol(",")) break;
  }
  expect_symbol("}");
  return dict;
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr object) {
  while (true) {
    int line = current().line;
    if (take_symbol(".")) {
      if (current().kind == Token::integer) {
        auto node = std::make_unique<Subscript>(line);
        node->object = std::move(object);
        node->index = parse_primary();
        set_depth(*node, node->object);
        object = std::move(node);
        continue;
      }
      auto node = std::make_unique<Attribute>(line);
      node->object = std::move(object);
      node->name = expect_any_name("the name of an attribute");
      set_depth(*node, node->object);
      object = std::move(node);
    } else if (take_symbol("[")) {
      object = parse_subscript(std::move(object));
    } else if (is_symbol("(")) {
      auto node = std::make_unique<CallExpression>(line);
      node->callee = std::move(object);
      node->arguments = parse_arguments();
      set_depth(*node, node->callee);
      set_depth_of(*node, node->arguments);
      object = std::move(node);
    } else {
      return object;
    }
  }
}

// What follows the opening bracket.
ExpressionPtr Parser::parse_subscript(ExpressionPtr object) {
  int line = current().line;
  ExpressionPtr start = is_symbol(":") ? nullptr : parse_tuple();
  if (!is_symbol(":")) {
    expect_symbol("]");
    auto node = std::make_unique<Subscript>(line);
    node->object = std::move(object);
    node->index = std::move(start);
    set_depth(*node, node->object, node->index);
    return node;
  }
  auto node = std::make_unique<Slice>(line);
  node->object = std::move(object);
  node->start = std::move(start);
  expect_symbol(":");
  if (!is_symbol(":") && !is_symbol("]")) node->stop = parse_expression();
  if (take_symbol(":") && !is_symbol("]")) node->step = parse_expression();
  expect_symbol("]");
  set_depth(*node, node->object, node->start, node->stop, node->step);
  return node;
}

Arguments Parser::parse_arguments() {
  Arguments arguments;
  expect_symbol("(");
  while (!is_symbol(")")) {
    if (is_symbol("*") || is_symbol("**")) fail("an argument (lists of arguments are not taken)");
    bool is_keyword = current().kind == Token::name &&
                      tokens_[position_ + 1].kind == Token::symbol &&
                      tokens_[position_ + 1].text == "=";
    if (is_keyword) {
      std::string name = next().text;
      next();
      arguments.keywords.emplace_back(std::move(name), parse_expression());
    } else {
      if (!arguments.keywords.empty()) fail("an argument with a name");
      arguments.positional.push_back(parse_expression());
    }
    if (!take_symbol(",")) break;
  }
  expect_symbol(")");
  return arguments;
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr input) {
  while (true) {
    if (is_symbol("|")) {
      next();
      input = parse_filter(std::move(input));
    } else if (is_name("is")) {
      next();
      input = parse_test(std::move(input));
    } else if (is_symbol("(")) {
      // The result of a filter, called.
      input = parse_postfix(std::move(input));
    } else {
      return input;
    }
  }
}

void Parser::parse_dotted_name(std::string& name) {
  name = expect_any_name("a name");
  while (take_symbol(".")) name += "." + expect_any_name("a name");
}

std::unique_ptr<Filter> Parser::parse_filter(ExpressionPtr input) {
  auto node = std::make_unique<Filter>(current().line);
  parse_dotted_name(node->name);
  if (is_symbol("(")) node->arguments = parse_arguments();
  node->input = std::move(input);
  set_depth(*node, node->input);
  set_depth_of(*node, node->arguments);
  return node;
}

ExpressionPtr Parser::parse_test(ExpressionPtr input) {
  auto node = std::make_unique<Test>(current().line);
  node->is_negated = take_name("not");
  parse_dotted_name(node->name);
  const Token& token = current();
  bool is_word = token.kind == Token::name && token.text != "else" && token.text != "or" &&
                 token.text != "and" && token.text != "is" && token.text != "if" &&
                 token.text != "in" && token.text != "not";
  if (is_symbol("(")) {
    node->arguments = parse_arguments();
  } else if (is_word || token.kind == Token::string || token.kind == Token::integer ||
             token.kind == Token::floating || is_symbol("[") || is_symbol("{")) {
    // One argument needs no brackets.
    node->arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  node->input = std::move(input);
  set_depth(*node, node->input);
  set_depth_of(*node, node->arguments);
  return node;
}

}  // namespace holdfast::lm::jinja
