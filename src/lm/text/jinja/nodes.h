// The kinds of expressions and statements.
#pragma once

#include <optional>

#include "lm/text/jinja/ast.h"

namespace holdfast::lm::jinja {

struct Constant : Expression {
  Constant(int line, Value constant) : Expression(line), value(std::move(constant)) {}
  Value evaluate(Interpreter&) const override { return value; }
  Value value;
};

struct Name : Expression {
  Name(int line, std::string text) : Expression(line), name(std::move(text)) {}
  Value evaluate(Interpreter& interpreter) const override;
  std::string name;
};

struct ListLiteral : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
};

struct DictLiteral : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
};

struct Unary : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  enum { negative, positive, negated } operation;
  ExpressionPtr operand;
};

enum class BinaryOperator {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concatenate
};
struct Binary : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  BinaryOperator operation;
  ExpressionPtr left, right;
};

struct Logical : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  bool is_and;
  ExpressionPtr left, right;
};

// a < b <= c
struct Comparison : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  ExpressionPtr first;
  std::vector<std::pair<std::string, ExpressionPtr>> others;
};

struct Conditional : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  ExpressionPtr condition, then, otherwise;  // `otherwise` may be null
};

struct Attribute : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  ExpressionPtr object;
  std::string name;
};

struct Subscript : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  ExpressionPtr object, index;
};

struct Slice : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  ExpressionPtr object, start, stop, step;  // all but the object may be null
};

struct CallExpression : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  ExpressionPtr callee;
  Arguments arguments;
};

// input|name(arguments); without an input in {% filter %}
struct Filter : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  Value apply(Interpreter& interpreter, Value value) const;
  ExpressionPtr input;
  std::string name;
  Arguments arguments;
};

struct Test : Expression {
  using Expression::Expression;
  Value evaluate(Interpreter& interpreter) const override;
  ExpressionPtr input;
  std::string name;
  Arguments arguments;
  bool is_negated = false;
};

struct Text : Statement {
  Text(int line, std::string data) : Statement(line), text(std::move(data)) {}
  Flow run(Interpreter& interpreter) const override;
  std::string text;
};

struct Output : Statement {
  using Statement::Statement;
  Flow run(Interpreter& interpreter) const override;
  ExpressionPtr value;
};

struct If : Statement {
  using Statement::Statement;
  Flow run(Interpreter& interpreter) const override;
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};

struct For : Statement {
  using Statement::Statement;
  Flow run(Interpreter& interpreter) const override;
  Target target;
  ExpressionPtr sequence, condition;  // the condition may be null
  Body body, otherwise;
};

struct Set : Statement {
  using Statement::Statement;
  Flow run(Interpreter& interpreter) const override;
  Target target;
  ExpressionPtr value;  // null: what the body writes
  Body body;
  std::vector<std::unique_ptr<Filter>> filters;  // of what the body writes
};

struct Macro : Statement {
  using Statement::Statement;
  Flow run(Interpreter& interpreter) const override;
  std::string name;
  Parameters parameters;
  Body body;
};

// {% call f() %} … {% endcall %}: the body is the macro `caller` of what is called.
struct CallBlock : Statement {
  using Statement::Statement;
  Flow run(Interpreter& interpreter) const override;
  Parameters parameters;
  ExpressionPtr call;
  Body body;
};

struct FilterBlock : Statement {
  using Statement::Statement;
  Flow run(Interpreter& interpreter) const override;
  std::vector<std::unique_ptr<Filter>> filters;
  Body body;
};

// {% with %} and {% generation %}: a body with names of its own.
struct With : Statement {
  using Statement::Statement;
  Flow run(Interpreter& interpreter) const override;
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Body body;
};

struct LoopControl : Statement {
  LoopControl(int line, Flow what) : Statement(line), flow(what) {}
  Flow run(Interpreter&) const override { return flow; }
  Flow flow;
};

}  // namespace holdfast::lm::jinja
