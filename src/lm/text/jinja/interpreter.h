// Runs a template.
#pragma once

#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lm/text/jinja/nodes.h"

namespace holdfast::lm::jinja {

// What a template may use, which may come from anywhere: ten thousand times what real ones need.
constexpr size_t most_steps = 5'000'000;  // nodes that are evaluated, and comparisons in long lists
constexpr size_t most_output = size_t{32} << 20;     // bytes of one text, or of the result
constexpr size_t most_produced = size_t{256} << 20;  // bytes of all texts and lists that are made
constexpr int deepest_run = 400;                     // nodes inside each other, through macros
constexpr int64_t longest_range = 100'000;

// Names and their values; those of the scope outside are seen, too.
struct Scope {
  explicit Scope(Scope* outside) : outer(outside) {}
  Scope* outer;
  std::vector<std::pair<std::string, Value>> values{};
  bool is_kept = false;  // a macro was defined in it and may use it later

  Value* find_here(std::string_view name);
  void set(const std::string& name, Value value);
};

class Interpreter {
 public:
  Interpreter(std::vector<std::pair<std::string, Value>> variables, std::time_t now);

  // The text that a template writes. Throws RequestError.
  std::string render(const Body& body);

  // --- for nodes ---
  Value evaluate(const Expression& expression);
  Flow run(const Body& body);
  // What the body writes, in a scope of its own.
  Value capture(const Body& body, std::vector<std::pair<std::string, Value>> values = {});
  void write(std::string_view text);
  Value lookup(const std::string& name);
  void assign(const Target& target, const Value& value);
  Call evaluate_arguments(const std::string& name, const Arguments& arguments,
                          std::vector<Value> first = {});
  Value call(const Value& callee, Call call);
  // A macro of these parameters; `is_caller` takes no more arguments than it has parameters.
  Value make_macro(const std::string& name, const Parameters& parameters, const Body& body);
  Flow run_loop(const For& loop);

  // --- for functions and filters ---
  // Counts work that is more than a node's.
  void step(size_t count);
  // Counts what is made, before it is made.
  void charge(size_t bytes);
  Value make_text(std::string text);
  Value make_list(std::vector<Value> items, bool is_tuple = false);
  Value make_namespace(std::vector<std::pair<std::string, Value>> values);
  std::time_t now() const { return now_; }

 private:
  friend class ScopeGuard;
  struct Depth {
    explicit Depth(Interpreter& owner);
    ~Depth() { --interpreter.depth_; }
    Interpreter& interpreter;
  };

  Value call_macro(const std::string& name, const Parameters& parameters, const Body& body,
                   Scope* defined_in, const Call& call);

  std::deque<std::unique_ptr<Scope>> scopes_;  // those that are open, and those that are kept
  std::deque<std::unique_ptr<Namespace>> namespaces_;
  Scope* scope_;
  std::string* out_ = nullptr;
  std::time_t now_;
  size_t steps_ = 0, produced_ = 0;
  int depth_ = 0, line_ = 0;
};

// A scope inside of another, for as long as this object exists.
class ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope* outer);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  std::unique_ptr<Scope> scope_;
  Scope* before_;
};

// object.name and object[index], undefined where there is none.
Value attribute_of(Interpreter& interpreter, const Value& object, const std::string& name);
Value item_of(Interpreter& interpreter, const Value& object, const Value& index);
Value slice_of(Interpreter& interpreter, const Value& object, const Value& start, const Value& stop,
               const Value& step);
// The items that a loop goes through. Throws for what cannot be gone through.
std::vector<Value> items_of(Interpreter& interpreter, const Value& value);
bool contains(Interpreter& interpreter, const Value& container, const Value& item);
Value binary(Interpreter& interpreter, BinaryOperator operation, const Value& left,
             const Value& right);
// As `format % arguments`.
std::string format_text(const std::string& format, const std::vector<Value>& arguments);

// The method of a string, list or dict, or undefined.
Value method_of(const Value& object, const std::string& name);
Value apply_filter(const std::string& name, const Value& input, Call call);
bool apply_test(const std::string& name, const Value& input, const Call& call);
// A function that templates find by name, or undefined.
Value global_function(const std::string& name);

}  // namespace holdfast::lm::jinja
