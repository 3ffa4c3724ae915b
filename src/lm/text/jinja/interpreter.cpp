#include "lm/text/jinja/interpreter.h"

#include <holdfast/lm/errors.h>

#include <algorithm>

#include "lm/support.h"

namespace holdfast::lm::jinja {

Value* Scope::find_here(std::string_view name) {
  for (auto& [known, value] : values) {
    if (known == name) return &value;
  }
  return nullptr;
}

void Scope::set(const std::string& name, Value value) {
  if (Value* known = find_here(name)) {
    *known = std::move(value);
  } else {
    values.emplace_back(name, std::move(value));
  }
}

ScopeGuard::ScopeGuard(Interpreter& interpreter, Scope* outer)
    : interpreter_(interpreter),
      scope_(std::make_unique<Scope>(outer)),
      before_(interpreter.scope_) {
  interpreter.scope_ = scope_.get();
}

ScopeGuard::~ScopeGuard() {
  interpreter_.scope_ = before_;
  if (!scope_->is_kept) return;
  // What a macro sees outside of its own scope is kept as well.
  if (scope_->outer) scope_->outer->is_kept = true;
  interpreter_.scopes_.push_back(std::move(scope_));
}

Interpreter::Depth::Depth(Interpreter& owner) : interpreter(owner) {
  if (interpreter.depth_ == deepest_run)
    throw RenderError(
        message("more than ", deepest_run, " calls and expressions inside each other"));
  ++interpreter.depth_;
}

Interpreter::Interpreter(std::vector<std::pair<std::string, Value>> variables, std::time_t now)
    : now_(now) {
  scopes_.push_back(std::make_unique<Scope>(nullptr));
  scopes_.back()->values = std::move(variables);
  // What the template sets is beside what it was given, so that its macros see both.
  scopes_.push_back(std::make_unique<Scope>(scopes_.back().get()));
  scope_ = scopes_.back().get();
}

std::string Interpreter::render(const Body& body) {
  std::string out;
  out_ = &out;
  try {
    run(body);
  } catch (const RenderError& error) {
    throw RequestError(message("[ChatTemplate] line ", line_, ": ", error.what()));
  }
  return out;
}

Value Interpreter::evaluate(const Expression& expression) {
  Depth depth(*this);
  step(1);
  line_ = expression.line();
  return expression.evaluate(*this);
}

Flow Interpreter::run(const Body& body) {
  Depth depth(*this);
  for (const auto& statement : body) {
    step(1);
    line_ = statement->line();
    Flow flow = statement->run(*this);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

void Interpreter::write(std::string_view text) {
  charge(text.size());
  if (out_->size() + text.size() > most_output)
    throw RenderError(message("the template writes more than ", most_output, " bytes"));
  *out_ += text;
}

void Interpreter::step(size_t count) {
  steps_ += count;
  if (steps_ > most_steps)
    throw RenderError(message("the template takes more than ", most_steps, " steps"));
}

void Interpreter::charge(size_t bytes) {
  if (bytes > most_output)
    throw RenderError(message("a text or list of more than ", most_output, " bytes"));
  produced_ += bytes;
  if (produced_ > most_produced)
    throw RenderError(
        message("the template makes more than ", most_produced, " bytes of texts and lists"));
}

Value Interpreter::make_text(std::string text) {
  charge(text.size());
  return Value(std::move(text));
}

Value Interpreter::make_list(std::vector<Value> items, bool is_tuple) {
  charge(items.size() * sizeof(Value));
  return Value::list(std::move(items), is_tuple);
}

Value Interpreter::make_namespace(std::vector<std::pair<std::string, Value>> values) {
  charge(256);
  namespaces_.push_back(std::make_unique<Namespace>(Namespace{std::move(values)}));
  return Value(namespaces_.back().get());
}

Value Interpreter::capture(const Body& body, std::vector<std::pair<std::string, Value>> values) {
  ScopeGuard guard(*this, scope_);
  scope_->values = std::move(values);
  std::string text, *before = std::exchange(out_, &text);
  try {
    run(body);
  } catch (...) {
    out_ = before;
    throw;
  }
  out_ = before;
  return Value(std::move(text));
}

Value Interpreter::lookup(const std::string& name) {
  for (Scope* scope = scope_; scope; scope = scope->outer) {
    step(scope->values.size() / 8);
    if (Value* value = scope->find_here(name)) return *value;
  }
  return global_function(name);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.member.empty()) {
    Value object = lookup(target.names[0]);
    Namespace* names = object.names();
    if (!names)
      throw RenderError(message("cannot assign to ", target.names[0], ".", target.member, ": ",
                                target.names[0], " is no namespace"));
    step(names->values.size() / 8);
    if (Value* known = names->find(target.member)) {
      *known = value;
    } else {
      charge(64);
      names->values.emplace_back(target.member, value);
    }
    return;
  }
  step(scope_->values.size() / 8);
  if (!target.is_unpacked) {
    scope_->set(target.names[0], value);
    return;
  }
  std::vector<Value> items = items_of(*this, value);
  if (items.size() != target.names.size())
    throw RenderError(
        message("cannot assign ", items.size(), " values to ", target.names.size(), " names"));
  for (size_t i = 0; i < items.size(); ++i) scope_->set(target.names[i], items[i]);
}

Call Interpreter::evaluate_arguments(const std::string& name, const Arguments& arguments,
                                     std::vector<Value> first) {
  Call call{*this, name, std::move(first)};
  for (const ExpressionPtr& argument : arguments.positional)
    call.arguments.push_back(evaluate(*argument));
  for (const auto& [keyword, argument] : arguments.keywords)
    call.keywords.emplace_back(keyword, evaluate(*argument));
  return call;
}

Value Interpreter::call(const Value& callee, Call call) {
  if (callee.is_undefined())
    throw RenderError(message("'", callee.undefined_name(), "' is undefined"));
  if (!callee.is_function())
    throw RenderError(
        message("'", call.name, "' is a ", callee.type_name(), " and cannot be called"));
  Depth depth(*this);
  return callee.function()(call);
}

Value Interpreter::make_macro(const std::string& name, const Parameters& parameters,
                              const Body& body) {
  scope_->is_kept = true;
  charge(512);
  return Function([this, name, &parameters, &body, defined_in = scope_](Call& call) {
    return call_macro(name, parameters, body, defined_in, call);
  });
}

Value Interpreter::call_macro(const std::string& name, const Parameters& parameters,
                              const Body& body, Scope* defined_in, const Call& call) {
  size_t count = parameters.names.size();
  if (call.arguments.size() > count)
    throw RenderError(
        message("macro '", name, "' takes ", count, " arguments, got ", call.arguments.size()));
  ScopeGuard guard(*this, defined_in);
  for (const auto& [keyword, value] : call.keywords) {
    auto known = std::find(parameters.names.begin(), parameters.names.end(), keyword);
    if (known == parameters.names.end() && keyword != "caller")
      throw RenderError(message("macro '", name, "' takes no argument '", keyword, "'"));
  }
  if (const Value* caller = call.keyword("caller")) scope_->set("caller", *caller);
  for (size_t i = 0; i < count; ++i) {
    const std::string& parameter = parameters.names[i];
    size_t defaults_from = count - parameters.defaults.size();
    if (i < call.arguments.size()) {
      if (call.keyword(parameter))
        throw RenderError(message("macro '", name, "' got its argument '", parameter, "' twice"));
      scope_->set(parameter, call.arguments[i]);
    } else if (const Value* value = call.keyword(parameter)) {
      scope_->set(parameter, *value);
    } else if (i >= defaults_from) {
      scope_->set(parameter, evaluate(*parameters.defaults[i - defaults_from]));
    } else {
      scope_->set(parameter, Undefined{parameter});
    }
  }
  return capture(body);
}

}  // namespace holdfast::lm::jinja
