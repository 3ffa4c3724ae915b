// What each kind of node does.
#include <algorithm>
#include <cmath>

#include "lm/support.h"
#include "lm/text/jinja/interpreter.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::jinja {
namespace {

[[noreturn]] void fail_operands(const char* operation, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->is_undefined())
      throw RenderError(message("'", value->undefined_name(), "' is undefined"));
  }
  throw RenderError(message("cannot ", operation, " values of type ", left.type_name(), " and ",
                            right.type_name()));
}

// By reference: the argument that says whether it overflows is what computes it.
int64_t checked(bool overflows, const int64_t& value) {
  if (overflows) throw RenderError("an integer of more than 64 bits");
  return value;
}

Value repeat(Interpreter& interpreter, const Value& value, int64_t times) {
  auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  size_t size = value.is_text() ? value.text().size() : value.items().size() * sizeof(Value);
  if (size == 0) return value;
  if (count > most_output / size) interpreter.charge(most_output + 1);
  interpreter.charge(size * count);
  if (value.is_text()) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += value.text();
    return text;
  }
  std::vector<Value> items;
  for (size_t i = 0; i < count; ++i)
    items.insert(items.end(), value.items().begin(), value.items().end());
  return Value::list(std::move(items), value.is_tuple());
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 ? -1 : 1;
  for (int64_t i = 0; i < exponent; ++i)
    result = checked(__builtin_mul_overflow(result, base, &result), result);
  return result;
}

Value integer_arithmetic(BinaryOperator operation, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (operation) {
    case BinaryOperator::add:
      return checked(__builtin_add_overflow(a, b, &result), result);
    case BinaryOperator::subtract:
      return checked(__builtin_sub_overflow(a, b, &result), result);
    case BinaryOperator::multiply:
      return checked(__builtin_mul_overflow(a, b, &result), result);
    case BinaryOperator::power:
      if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
      return integer_power(a, b);
    default:
      break;
  }
  if (b == 0) throw RenderError("division by zero");
  if (operation == BinaryOperator::divide) return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1)
    return operation == BinaryOperator::modulo
               ? 0
               : checked(__builtin_sub_overflow(int64_t{0}, a, &result), result);
  // Rounded down, and the remainder has the sign of the divisor.
  int64_t quotient = a / b, remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) --quotient, remainder += b;
  return operation == BinaryOperator::modulo ? remainder : quotient;
}

Value float_arithmetic(BinaryOperator operation, double a, double b) {
  switch (operation) {
    case BinaryOperator::add:
      return a + b;
    case BinaryOperator::subtract:
      return a - b;
    case BinaryOperator::multiply:
      return a * b;
    case BinaryOperator::power:
      return std::pow(a, b);
    default:
      break;
  }
  if (b == 0) throw RenderError("division by zero");
  if (operation == BinaryOperator::divide) return a / b;
  if (operation == BinaryOperator::floor_divide) return std::floor(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  return remainder;
}

bool compare(Interpreter& interpreter, const std::string& operation, const Value& left,
             const Value& right) {
  if (operation == "==") return left == right;
  if (operation == "!=") return !(left == right);
  if (operation == "in") return contains(interpreter, right, left);
  if (operation == "not in") return !contains(interpreter, right, left);
  bool is_less = less(left, right), is_greater = less(right, left);
  if (operation == "<") return is_less;
  if (operation == ">") return is_greater;
  // Neither is less where one is no number.
  return (operation == "<=" ? is_less : is_greater) || left == right;
}

}  // namespace

Value binary(Interpreter& interpreter, BinaryOperator operation, const Value& left,
             const Value& right) {
  static constexpr const char* names[] = {"add",    "subtract", "multiply", "divide",
                                          "divide", "divide",   "raise",    "join"};
  const char* name = names[static_cast<size_t>(operation)];
  if (operation == BinaryOperator::concatenate)
    return interpreter.make_text(left.to_text() + right.to_text());
  if (left.is_integral() && right.is_integral())
    return integer_arithmetic(operation, left.integer(), right.integer());
  if (left.is_number() && right.is_number())
    return float_arithmetic(operation, left.number(), right.number());
  if (operation == BinaryOperator::add) {
    if (left.is_text() && right.is_text()) return interpreter.make_text(left.text() + right.text());
    if (left.is_list() && right.is_list() && left.is_tuple() == right.is_tuple()) {
      std::vector<Value> items = left.items();
      items.insert(items.end(), right.items().begin(), right.items().end());
      return interpreter.make_list(std::move(items), left.is_tuple());
    }
  }
  if (operation == BinaryOperator::multiply) {
    if ((left.is_text() || left.is_list()) && right.is_integral())
      return repeat(interpreter, left, right.integer());
    if ((right.is_text() || right.is_list()) && left.is_integral())
      return repeat(interpreter, right, left.integer());
  }
  if (operation == BinaryOperator::modulo && left.is_text())
    return interpreter.make_text(
        format_text(left.text(), right.is_tuple() ? right.items() : std::vector<Value>{right}));
  fail_operands(name, left, right);
}

bool contains(Interpreter& interpreter, const Value& container, const Value& item) {
  if (container.is_text()) {
    if (!item.is_text()) throw RenderError(message("a string cannot contain a ", item.type_name()));
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is_list() || container.is_dict()) interpreter.step(container.length() / 8);
  if (container.is_list())
    return std::find(container.items().begin(), container.items().end(), item) !=
           container.items().end();
  if (container.is_dict()) {
    if (item.is_list() || item.is_dict())
      throw RenderError(message("a ", item.type_name(), " cannot be the key of a dict"));
    return container.find(item) != nullptr;
  }
  if (container.is_undefined()) return false;
  throw RenderError(message("a ", container.type_name(), " cannot contain anything"));
}

Value Name::evaluate(Interpreter& interpreter) const { return interpreter.lookup(name); }

Value ListLiteral::evaluate(Interpreter& interpreter) const {
  std::vector<Value> values;
  for (const ExpressionPtr& item : items) values.push_back(interpreter.evaluate(*item));
  return interpreter.make_list(std::move(values), is_tuple);
}

Value DictLiteral::evaluate(Interpreter& interpreter) const {
  std::vector<std::pair<Value, Value>> values;
  for (const auto& [key, item] : items) {
    Value name = interpreter.evaluate(*key), value = interpreter.evaluate(*item);
    if (name.is_list() || name.is_dict())
      throw RenderError(message("a ", name.type_name(), " cannot be the key of a dict"));
    interpreter.step(values.size() / 8);
    auto known = std::find_if(values.begin(), values.end(),
                              [&](const auto& entry) { return entry.first == name; });
    if (known != values.end()) {
      known->second = std::move(value);
    } else {
      values.emplace_back(std::move(name), std::move(value));
    }
  }
  interpreter.charge(values.size() * 2 * sizeof(Value));
  return Value::dict(std::move(values));
}

Value Unary::evaluate(Interpreter& interpreter) const {
  Value value = interpreter.evaluate(*operand);
  if (operation == negated) return !value.truth();
  if (value.is_integral()) {
    if (operation == positive) return value.integer();
    return integer_arithmetic(BinaryOperator::subtract, 0, value.integer());
  }
  if (value.is_float()) return operation == positive ? value.number() : -value.number();
  fail_operands("negate", value, value);
}

Value Binary::evaluate(Interpreter& interpreter) const {
  Value first = interpreter.evaluate(*left), second = interpreter.evaluate(*right);
  return binary(interpreter, operation, first, second);
}

Value Logical::evaluate(Interpreter& interpreter) const {
  Value first = interpreter.evaluate(*left);
  return first.truth() == is_and ? interpreter.evaluate(*right) : first;
}

Value Comparison::evaluate(Interpreter& interpreter) const {
  Value left = interpreter.evaluate(*first);
  for (const auto& [operation, expression] : others) {
    Value right = interpreter.evaluate(*expression);
    if (!compare(interpreter, operation, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Conditional::evaluate(Interpreter& interpreter) const {
  if (interpreter.evaluate(*condition).truth()) return interpreter.evaluate(*then);
  return otherwise ? interpreter.evaluate(*otherwise)
                   : Value(Undefined{"the value of an if without else"});
}

Value Attribute::evaluate(Interpreter& interpreter) const {
  return attribute_of(interpreter, interpreter.evaluate(*object), name);
}

Value Subscript::evaluate(Interpreter& interpreter) const {
  Value container = interpreter.evaluate(*object);
  return item_of(interpreter, container, interpreter.evaluate(*index));
}

Value Slice::evaluate(Interpreter& interpreter) const {
  Value container = interpreter.evaluate(*object);
  auto part = [&](const ExpressionPtr& expression) {
    return expression ? interpreter.evaluate(*expression) : Value();
  };
  Value from = part(start), to = part(stop);
  return slice_of(interpreter, container, from, to, part(step));
}

Value CallExpression::evaluate(Interpreter& interpreter) const {
  std::string name = "function";
  if (auto* known = dynamic_cast<const Name*>(callee.get())) name = known->name;
  if (auto* known = dynamic_cast<const Attribute*>(callee.get())) name = known->name;
  Value function = interpreter.evaluate(*callee);
  return interpreter.call(function, interpreter.evaluate_arguments(name, arguments));
}

Value Filter::apply(Interpreter& interpreter, Value value) const {
  return apply_filter(name, value, interpreter.evaluate_arguments(name, arguments));
}

Value Filter::evaluate(Interpreter& interpreter) const {
  return apply(interpreter, interpreter.evaluate(*input));
}

Value Test::evaluate(Interpreter& interpreter) const {
  Value value = interpreter.evaluate(*input);
  return apply_test(name, value, interpreter.evaluate_arguments(name, arguments)) != is_negated;
}

Flow Text::run(Interpreter& interpreter) const {
  interpreter.write(text);
  return Flow::next;
}

Flow Output::run(Interpreter& interpreter) const {
  interpreter.write(interpreter.evaluate(*value).to_text());
  return Flow::next;
}

Flow If::run(Interpreter& interpreter) const {
  for (const auto& [condition, body] : branches) {
    if (interpreter.evaluate(*condition).truth()) return interpreter.run(body);
  }
  return interpreter.run(otherwise);
}

Flow For::run(Interpreter& interpreter) const { return interpreter.run_loop(*this); }

Flow Set::run(Interpreter& interpreter) const {
  if (value) {
    interpreter.assign(target, interpreter.evaluate(*value));
    return Flow::next;
  }
  Value text = interpreter.capture(body);
  for (const auto& filter : filters) text = filter->apply(interpreter, text);
  interpreter.assign(target, text);
  return Flow::next;
}

Flow Macro::run(Interpreter& interpreter) const {
  interpreter.assign({{name}}, interpreter.make_macro(name, parameters, body));
  return Flow::next;
}

Flow CallBlock::run(Interpreter& interpreter) const {
  const auto& node = static_cast<const CallExpression&>(*call);
  Value function = interpreter.evaluate(*node.callee);
  Call arguments = interpreter.evaluate_arguments("call", node.arguments);
  arguments.keywords.emplace_back("caller", interpreter.make_macro("caller", parameters, body));
  interpreter.write(interpreter.call(function, std::move(arguments)).to_text());
  return Flow::next;
}

Flow FilterBlock::run(Interpreter& interpreter) const {
  Value text = interpreter.capture(body);
  for (const auto& filter : filters) text = filter->apply(interpreter, text);
  interpreter.write(text.to_text());
  return Flow::next;
}

Flow With::run(Interpreter& interpreter) const {
  std::vector<std::pair<std::string, Value>> scope;
  for (const auto& [target, expression] : values)
    scope.emplace_back(target.names[0], interpreter.evaluate(*expression));
  interpreter.write(interpreter.capture(body, std::move(scope)).text());
  return Flow::next;
}

Flow Interpreter::run_loop(const For& loop) {
  std::vector<Value> all = items_of(*this, evaluate(*loop.sequence)), items;
  if (loop.condition) {
    for (const Value& item : all) {
      ScopeGuard guard(*this, scope_);
      assign(loop.target, item);
      if (evaluate(*loop.condition).truth()) items.push_back(item);
    }
  } else {
    items = std::move(all);
  }
  charge(items.size() * sizeof(Value));
  if (items.empty()) return run(loop.otherwise);
  auto state = std::make_shared<Loop>(Loop{std::move(items)});
  for (; state->index < state->items.size(); ++state->index) {
    ScopeGuard guard(*this, scope_);
    scope_->set("loop", state);
    assign(loop.target, state->items[state->index]);
    if (run(loop.body) == Flow::break_loop) break;
  }
  return Flow::next;
}

}  // namespace holdfast::lm::jinja
