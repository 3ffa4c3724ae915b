// Values of chat templates: what Python's would be, as far as templates see it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::lm::jinja {

class Interpreter;
class Value;
struct Call;

// What a template does wrong when it runs. The interpreter adds the line.
class RenderError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Undefined {
  std::string name;  // what was looked for
};
struct None {};
struct ListData;
struct DictData;
// The only value that can be changed. Owned by the interpreter.
struct Namespace;
struct Loop;
using Function = std::function<Value(Call&)>;

class Value {
 public:
  Value() : value_(None{}) {}
  Value(None) : value_(None{}) {}
  Value(bool value) : value_(value) {}
  Value(int64_t value) : value_(value) {}
  Value(int value) : value_(int64_t{value}) {}
  Value(double value) : value_(value) {}
  Value(std::string text) : value_(std::make_shared<const std::string>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(Undefined undefined) : value_(std::make_shared<const Undefined>(std::move(undefined))) {}
  Value(Function function) : value_(std::make_shared<const Function>(std::move(function))) {}
  Value(Namespace* names) : value_(names) {}
  Value(std::shared_ptr<Loop> loop) : value_(std::move(loop)) {}
  // Throws RenderError where values are nested too deeply: everything that walks through them is
  // recursive.
  static Value list(std::vector<Value> items, bool is_tuple = false);
  static Value dict(std::vector<std::pair<Value, Value>> items);

  bool is_undefined() const { return holds<std::shared_ptr<const Undefined>>(); }
  bool is_none() const { return holds<None>(); }
  bool is_bool() const { return holds<bool>(); }
  bool is_integer() const { return holds<int64_t>(); }
  bool is_float() const { return holds<double>(); }
  bool is_number() const { return is_bool() || is_integer() || is_float(); }
  bool is_text() const { return holds<std::shared_ptr<const std::string>>(); }
  bool is_list() const { return holds<std::shared_ptr<const ListData>>(); }
  bool is_dict() const { return holds<std::shared_ptr<const DictData>>(); }
  bool is_function() const { return holds<std::shared_ptr<const Function>>(); }

  const std::string& text() const { return *std::get<std::shared_ptr<const std::string>>(value_); }
  const std::vector<Value>& items() const;
  bool is_tuple() const;
  const std::vector<std::pair<Value, Value>>& entries() const;
  const std::string& undefined_name() const {
    return std::get<std::shared_ptr<const Undefined>>(value_)->name;
  }
  const Function& function() const { return *std::get<std::shared_ptr<const Function>>(value_); }
  Namespace* names() const {
    auto* names = std::get_if<Namespace*>(&value_);
    return names ? *names : nullptr;
  }
  Loop* loop() const {
    auto* loop = std::get_if<std::shared_ptr<Loop>>(&value_);
    return loop ? loop->get() : nullptr;
  }
  std::shared_ptr<Loop> shared_loop() const { return std::get<std::shared_ptr<Loop>>(value_); }
  // Of bool and integers, as Python counts with both.
  int64_t integer() const {
    return is_bool() ? int64_t{std::get<bool>(value_)} : std::get<int64_t>(value_);
  }
  bool is_integral() const { return is_bool() || is_integer(); }
  double number() const {
    return is_float() ? std::get<double>(value_) : static_cast<double>(integer());
  }

  bool truth() const;
  // The number of characters or items; throws for what has none.
  size_t length() const;
  // As Python calls the type: "str", "list".
  std::string type_name() const;
  // As Python prints the value by itself, and inside of another.
  std::string to_text() const;
  std::string repr() const;
  // The item of a dict with that key, or null.
  const Value* find(const Value& key) const;
  int depth() const;

  friend bool operator==(const Value& a, const Value& b);
  // Are they the same object? As `is` in Python for what templates ask: none, true, false,
  // undefined.
  bool same_as(const Value& other) const;

 private:
  template <typename T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }

  std::variant<None, bool, int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const ListData>, std::shared_ptr<const DictData>, Namespace*,
               std::shared_ptr<Loop>, std::shared_ptr<const Function>,
               std::shared_ptr<const Undefined>>
      value_;
};

// Less than; throws RenderError for what Python does not order.
bool less(const Value& a, const Value& b);

struct ListData {
  std::vector<Value> items;
  bool is_tuple;
  int depth;
};
struct DictData {
  std::vector<std::pair<Value, Value>> entries;  // in the order in which they were added
  int depth;
};
struct Namespace {
  std::vector<std::pair<std::string, Value>> values;
  Value* find(std::string_view name);
};
struct Loop {
  std::vector<Value> items;
  size_t index = 0;       // from 0
  std::string changed{};  // what loop.changed was last called with, as text: a value could hold the
                          // loop itself
  Value attribute(const std::shared_ptr<Loop>& self, const std::string& name);
};

// The arguments of a function, a filter, a test or a macro.
struct Call {
  Interpreter& interpreter;
  std::string name;
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> keywords{};

  // The argument at a position or by its name, or `otherwise`.
  Value argument(size_t position, const char* keyword, Value otherwise) const;
  Value required(size_t position, const char* keyword) const;
  std::string text(size_t position, const char* keyword) const;
  std::string text_or(size_t position, const char* keyword, const char* otherwise) const;
  int64_t integer_or(size_t position, const char* keyword, int64_t otherwise) const;
  bool truth_or(size_t position, const char* keyword, bool otherwise) const;
  const Value* keyword(std::string_view name) const;
  [[noreturn]] void fail(const std::string& what) const;
};

// As json.dumps writes it with ensure_ascii=False.
struct JsonStyle {
  int indent = -1;  // none
  std::string item_separator = ", ", key_separator = ": ";
  bool sorts_keys = false;
};
std::string to_json(const Value& value, const JsonStyle& style);
std::string float_text(double value);

}  // namespace holdfast::lm::jinja
