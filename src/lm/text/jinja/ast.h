// A template as a tree: expressions that are evaluated, statements that are run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lm/text/jinja/value.h"

namespace holdfast::lm::jinja {

class Interpreter;

class Expression {
 public:
  explicit Expression(int line) : line_(line) {}
  virtual ~Expression() = default;
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  virtual Value evaluate(Interpreter& interpreter) const = 0;
  int line() const { return line_; }
  // How deep the tree below is. Everything that walks through it is recursive, so the parser keeps
  // it small.
  int depth = 1;

 private:
  int line_;
};
using ExpressionPtr = std::unique_ptr<Expression>;

// What follows a statement.
enum class Flow { next, break_loop, continue_loop };

class Statement {
 public:
  explicit Statement(int line) : line_(line) {}
  virtual ~Statement() = default;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  virtual Flow run(Interpreter& interpreter) const = 0;
  int line() const { return line_; }

 private:
  int line_;
};
using Body = std::vector<std::unique_ptr<Statement>>;

// What is assigned to: a name, names that take a list apart, or a member of a namespace.
struct Target {
  std::vector<std::string> names;
  bool is_unpacked = false;
  std::string member{};  // of a namespace that is called names[0]
};

struct Parameters {
  std::vector<std::string> names;
  std::vector<ExpressionPtr> defaults;  // of the last ones
};

struct Arguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
};

// Throws ModelError.
Body parse(std::string_view source);

// Limits of a template, which may come from anywhere.
constexpr size_t longest_source = size_t{1} << 20;  // bytes
constexpr int deepest_tree = 200;

}  // namespace holdfast::lm::jinja
