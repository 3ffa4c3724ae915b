#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lm/text/jinja/lexer.h"
#include "lm/text/jinja/nodes.h"

namespace holdfast::lm::jinja {

// Recursive descent. Expressions are in expression_parser.cpp, statements in statement_parser.cpp.
class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}
  Body parse_template();

 private:
  // --- tokens ---
  const Token& current() const { return tokens_[position_]; }
  const Token& next() { return tokens_[position_ < tokens_.size() - 1 ? position_++ : position_]; }
  bool is_symbol(std::string_view text) const {
    return current().kind == Token::symbol && current().text == text;
  }
  bool is_name(std::string_view text) const {
    return current().kind == Token::name && current().text == text;
  }
  bool take_symbol(std::string_view text);
  bool take_name(std::string_view text);
  void expect_symbol(std::string_view text);
  void expect_name(std::string_view text);
  std::string expect_any_name(const char* what);
  [[noreturn]] void fail(const std::string& expected) const;

  // --- expressions ---
  ExpressionPtr parse_expression(bool with_condition = true);  // a ternary, and what binds tighter
  // An expression, or several with commas between them: a tuple.
  ExpressionPtr parse_tuple(bool with_condition = true);
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  // Operators that are read from the left, the loosest ones at level 0.
  ExpressionPtr parse_binary(size_t level);
  ExpressionPtr parse_unary(bool with_filters = true);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_postfix(ExpressionPtr object);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr input);
  ExpressionPtr parse_test(ExpressionPtr input);
  std::unique_ptr<Filter> parse_filter(ExpressionPtr input);
  void parse_dotted_name(std::string& name);
  ExpressionPtr parse_dict(int line);
  Arguments parse_arguments();

  // --- statements ---
  Body parse_body(std::initializer_list<std::string_view> ends);
  std::unique_ptr<Statement> parse_statement(const std::string& name, int line);
  std::unique_ptr<Statement> parse_if(int line);
  std::unique_ptr<Statement> parse_for(int line);
  std::unique_ptr<Statement> parse_set(int line);
  std::unique_ptr<Statement> parse_macro(int line);
  std::unique_ptr<Statement> parse_call(int line);
  std::unique_ptr<Statement> parse_with(int line, bool is_generation);
  std::vector<std::unique_ptr<Filter>> parse_filter_chain();
  Target parse_target();
  Parameters parse_parameters();
  void end_block();
  // Reads the end of a tag, a body, and {% name, whose end is left.
  Body parse_rest(std::initializer_list<std::string_view> ends);

  // A node that is deeper than its parts; refused where that is too deep.
  template <typename Node, typename... Parts>
  void set_depth(Node& node, const Parts&... parts) {
    auto add = [&](const ExpressionPtr& part) {
      if (part && part->depth + 1 > node.depth) node.depth = part->depth + 1;
    };
    (add(parts), ...);
    check_depth(node.depth);
  }
  void set_depth_of(Expression& node, const Arguments& arguments);
  void check_depth(int depth) const;

  // Counts calls inside each other.
  struct Nesting {
    explicit Nesting(Parser& owner) : parser(owner) { parser.check_depth(++parser.nesting_); }
    ~Nesting() { --parser.nesting_; }
    Parser& parser;
  };

  std::vector<Token> tokens_;
  size_t position_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // that are open, for break and continue
};

}  // namespace holdfast::lm::jinja
