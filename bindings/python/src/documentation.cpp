#include "signature.h"

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

namespace holdfast::python {

namespace {

struct Text {
  const char* type;
  const char* meaning;
};

struct ParameterRow {
  const char* functions;
  const char* name;
  Text text;
};
constexpr ParameterRow parameter_rows[] = {
#define PARAMETER(functions, name, type, meaning) {functions, #name, {type, meaning}},
#include "parameters.def"
#undef PARAMETER
};

struct ResultRow {
  const char* functions;
  Text text;
};
constexpr ResultRow result_rows[] = {
#define RESULT(functions, type, meaning) {functions, {type, meaning}},
#include "results.def"
#undef RESULT
};

// What an example gives: written, and compared, by bindings/python/make_examples.py.
struct OutputRow {
  const char* expression;
  const char* output;
};
constexpr OutputRow output_rows[] = {
#define OUTPUT(expression, output) {expression, output},
#include "example_outputs.def"
#undef OUTPUT
    {"", ""}};

// Element-wise functions: the rules of include/holdfast/elementwise.def in words.
enum class Rule { same, inexact, predicate, logical, part, select };
enum class Taken { any, real, number, floating, inexact, integral, integer, boolean };
struct ElementwiseRow {
  const char* name;
  Rule rule;
  Taken taken;
};
#define TAKEN_any Taken::any
#define TAKEN_real Taken::real
#define TAKEN_number Taken::number
#define TAKEN_float Taken::floating
#define TAKEN_inexact Taken::inexact
#define TAKEN_integral Taken::integral
#define TAKEN_integer Taken::integer
#define TAKEN_boolean Taken::boolean
constexpr ElementwiseRow elementwise_rows[] = {
#define UNARY(name, primitive, rule, taken, text) {#name, Rule::rule, TAKEN_##taken},
#define BINARY UNARY
#define TERNARY UNARY
#include <holdfast/elementwise.def>
};

// Other names of element-wise functions.
constexpr std::pair<std::string_view, std::string_view> aliases[] = {
    {"asin", "arcsin"},
    {"acos", "arccos"},
    {"atan", "arctan"},
    {"asinh", "arcsinh"},
    {"acosh", "arccosh"},
    {"atanh", "arctanh"},
    {"atan2", "arctan2"},
    {"pow", "power"},
    {"conj", "conjugate"},
    {"bitwise_left_shift", "left_shift"},
    {"bitwise_right_shift", "right_shift"}};

struct Tables {
  std::unordered_map<std::string, const Text*> parameters;  // "function.parameter", ".parameter"
  std::unordered_map<std::string, const Text*> results;
  std::unordered_map<std::string_view, const char*> outputs;
  std::unordered_map<std::string_view, const ElementwiseRow*> elementwise;

  template <class Add>
  static void for_each_name(std::string_view names, Add&& add) {
    while (!names.empty()) {
      size_t end = std::min(names.find(' '), names.size());
      add(std::string(names.substr(0, end)));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  }

  Tables() {
    for (const ParameterRow& row : parameter_rows) {
      if (!*row.functions) parameters["." + std::string(row.name)] = &row.text;
      for_each_name(row.functions, [&](const std::string& function) {
        parameters[function + "." + row.name] = &row.text;
      });
    }
    for (const ResultRow& row : result_rows) {
      for_each_name(row.functions,
                    [&](const std::string& function) { results[function] = &row.text; });
    }
    for (const OutputRow& row : output_rows) outputs[row.expression] = row.output;
    for (const ElementwiseRow& row : elementwise_rows) elementwise[row.name] = &row;
    for (auto [alias, name] : aliases) elementwise[alias] = elementwise.at(name);
  }

  static const Tables& get() {
    static const auto* tables = new Tables;
    return *tables;
  }
};

const char* taken_text(const ElementwiseRow& row) {
  switch (row.taken) {
    case Taken::any:
      return "numbers or bools";
    case Taken::real:
      return "real numbers or bools";
    case Taken::number:
      return "numbers, not bools";
    case Taken::floating:
      return "real numbers";
    case Taken::inexact:
      return "numbers";
    case Taken::integral:
      return "integers or bools";
    case Taken::integer:
      return "integers";
    case Taken::boolean:
      return "anything; what is not zero is true";
  }
  return "";
}

std::string result_text(const ElementwiseRow& row, bool is_binary) {
  std::string shape = is_binary ? "in the shape that both broadcast to" : "in the shape of `a`";
  const char* dtype = is_binary ? " and the dtype that they promote to" : " and its dtype";
  switch (row.rule) {
    case Rule::predicate:
    case Rule::logical:
      return "bools, " + shape;
    case Rule::inexact:
      return shape + dtype + std::string("; integers and bools become float32");
    case Rule::part:
      return shape + dtype + std::string("; float32 for complex64");
    case Rule::select:
      return "in the shape that all broadcast to";
    case Rule::same:
      return shape + dtype;
  }
  return shape;
}

// "holdfast.core.random" as "random"
std::string_view short_owner(std::string_view owner) {
  if (owner == "holdfast.core") return "";
  size_t dot = owner.rfind('.');
  return dot == std::string_view::npos ? owner : owner.substr(dot + 1);
}

const Text* find(const std::unordered_map<std::string, const Text*>& table, std::string_view owner,
                 std::string_view function, std::string_view parameter, bool has_general) {
  std::string ending = parameter.empty() ? "" : "." + std::string(parameter);
  if (!owner.empty()) {
    auto own = table.find(std::string(owner) + "." + std::string(function) + ending);
    if (own != table.end()) return own->second;
  }
  auto found = table.find(std::string(function) + ending);
  if (found == table.end() && has_general) found = table.find(ending);
  return found == table.end() ? nullptr : found->second;
}

// "arrays" of "(*arrays, stream=None)"
std::string variadic_name(std::string_view signature) {
  size_t begin = signature.find('*') + 1;
  return std::string(signature.substr(begin, signature.find_first_of(",)", begin) - begin));
}

std::string line(const std::string& subject, const std::string& meaning) {
  return "    " + subject + (meaning.empty() ? "" : ": " + meaning) + "\n";
}

void add_examples(std::string& text, std::string_view examples) {
  if (!examples.empty()) text += "\nExample:\n\n";
  while (!examples.empty()) {
    size_t end = std::min(examples.find('\n'), examples.size());
    std::string_view expression = examples.substr(0, end);
    text += "    >>> " + std::string(expression) + "\n";
    auto output = Tables::get().outputs.find(expression);
    if (output != Tables::get().outputs.end()) {
      std::string_view rest = output->second;
      while (!rest.empty()) {
        size_t line_end = std::min(rest.find('\n'), rest.size());
        text += "    " + std::string(rest.substr(0, line_end)) + "\n";
        rest.remove_prefix(std::min(line_end + 1, rest.size()));
      }
    }
    examples.remove_prefix(std::min(end + 1, examples.size()));
  }
}

}  // namespace

const char* make_docstring(const Row& row, const Signature& signature, std::string_view owner) {
  owner = short_owner(owner);
  // The first part is what inspect.signature reads.
  std::string text = std::string(row.name) + row.signature + "\n--\n\n" + row.summary + "\n";
  if (row.name[0] == '_') return (new std::string(std::move(text)))->c_str();

  const Tables& tables = Tables::get();
  bool is_unary = std::strcmp(row.signature, "(a, /, *, stream=None)") == 0 ||
                  (owner == "array" && std::strcmp(row.signature, "(self, *, stream=None)") == 0);
  bool is_binary = std::strcmp(row.signature, "(a, b, *, stream=None)") == 0;
  const ElementwiseRow* elementwise = nullptr;
  if (is_unary || is_binary || std::strcmp(row.name, "where") == 0) {
    auto found = tables.elementwise.find(row.name);
    if (found != tables.elementwise.end()) elementwise = found->second;
  }

  std::string parameters;
  auto add_parameter = [&](const std::string& name) {
    if (name == "self") return;
    const Text* known = find(tables.parameters, owner, row.name, name, true);
    if (!known) {
      raise(PyExc_SystemError, std::string(row.name) + ": no row of parameters.def for " + name);
    }
    std::string meaning = known->meaning;
    if (elementwise && (name == "a" || name == "b")) {
      meaning = taken_text(*elementwise);
      if (name == "b") meaning += "; broadcast together with `a`";
    }
    parameters += line(name + " (" + known->type + ")", meaning);
  };
  auto positional = static_cast<size_t>(signature.positional);
  for (size_t i = 0; i <= signature.parameters.size(); ++i) {
    if (i == positional && signature.variadic) add_parameter(variadic_name(row.signature));
    if (i < signature.parameters.size()) add_parameter(text_of(signature.parameters[i].name.get()));
  }
  if (!parameters.empty()) text += "\nArgs:\n" + parameters;

  text += "\nReturns:\n";
  if (elementwise) {
    text += line("array", result_text(*elementwise, is_binary));
  } else {
    const Text* result = find(tables.results, owner, row.name, "", false);
    if (!result) raise(PyExc_SystemError, std::string(row.name) + ": no row of results.def");
    text += line(result->type, result->meaning);
  }
  add_examples(text, row.examples);
  return (new std::string(std::move(text)))->c_str();
}

}  // namespace holdfast::python
