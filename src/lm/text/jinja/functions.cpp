// Tests ("is defined"), global functions, and formats.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lm/support.h"
#include "lm/text/jinja/interpreter.h"
#include "lm/text/unicode.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::jinja {
namespace {

using TestFunction = bool (*)(const Value& input, const Call& call);
struct TestRow {
  const char* name;
  TestFunction function;
};

int64_t integer_of(const Value& value, const Call& call) {
  if (!value.is_integral()) call.fail(message("takes an integer, got a ", value.type_name()));
  return value.integer();
}

bool has_lower(const Value& value, bool upper) {
  bool any = false;
  for (char32_t c : tokenizing::code_points(value.to_text())) {
    if (upper ? tokenizing::is_lowercase(c) : tokenizing::is_uppercase(c)) return false;
    any |= upper ? tokenizing::is_uppercase(c) : tokenizing::is_lowercase(c);
  }
  return any;
}

constexpr TestRow test_rows[] = {
    {"defined", [](const Value& input, const Call&) { return !input.is_undefined(); }},
    {"undefined", [](const Value& input, const Call&) { return input.is_undefined(); }},
    {"none", [](const Value& input, const Call&) { return input.is_none(); }},
    {"boolean", [](const Value& input, const Call&) { return input.is_bool(); }},
    {"true", [](const Value& input, const Call&) { return input.is_bool() && input.truth(); }},
    {"false", [](const Value& input, const Call&) { return input.is_bool() && !input.truth(); }},
    {"integer", [](const Value& input, const Call&) { return input.is_integer(); }},
    {"float", [](const Value& input, const Call&) { return input.is_float(); }},
    {"number", [](const Value& input, const Call&) { return input.is_number(); }},
    {"string", [](const Value& input, const Call&) { return input.is_text(); }},
    {"mapping", [](const Value& input, const Call&) { return input.is_dict(); }},
    {"sequence",
     [](const Value& input, const Call&) {
       return input.is_text() || input.is_list() || input.is_dict() || input.is_undefined();
     }},
    {"iterable",
     [](const Value& input, const Call&) {
       return input.is_text() || input.is_list() || input.is_dict() || input.is_undefined();
     }},
    {"callable", [](const Value& input, const Call&) { return input.is_function(); }},
    {"odd", [](const Value& input, const Call& call) { return integer_of(input, call) % 2 != 0; }},
    {"even", [](const Value& input, const Call& call) { return integer_of(input, call) % 2 == 0; }},
    {"divisibleby",
     [](const Value& input, const Call& call) {
       int64_t by = integer_of(call.required(0, "num"), call);
       if (by == 0) call.fail("division by zero");
       return by == -1 || integer_of(input, call) % by == 0;
     }},
    {"sameas",
     [](const Value& input, const Call& call) { return input.same_as(call.required(0, "other")); }},
    {"lower", [](const Value& input, const Call&) { return has_lower(input, false); }},
    {"upper", [](const Value& input, const Call&) { return has_lower(input, true); }},
    {"in",
     [](const Value& input, const Call& call) {
       return contains(call.interpreter, call.required(0, "seq"), input);
     }},
    {"eq", [](const Value& input, const Call& call) { return input == call.required(0, nullptr); }},
    {"equalto",
     [](const Value& input, const Call& call) { return input == call.required(0, nullptr); }},
    {"==", [](const Value& input, const Call& call) { return input == call.required(0, nullptr); }},
    {"ne",
     [](const Value& input, const Call& call) { return !(input == call.required(0, nullptr)); }},
    {"!=",
     [](const Value& input, const Call& call) { return !(input == call.required(0, nullptr)); }},
    {"lt",
     [](const Value& input, const Call& call) { return less(input, call.required(0, nullptr)); }},
    {"lessthan",
     [](const Value& input, const Call& call) { return less(input, call.required(0, nullptr)); }},
    {"<",
     [](const Value& input, const Call& call) { return less(input, call.required(0, nullptr)); }},
    {"gt",
     [](const Value& input, const Call& call) { return less(call.required(0, nullptr), input); }},
    {"greaterthan",
     [](const Value& input, const Call& call) { return less(call.required(0, nullptr), input); }},
    {">",
     [](const Value& input, const Call& call) { return less(call.required(0, nullptr), input); }},
    {"le",
     [](const Value& input, const Call& call) { return !less(call.required(0, nullptr), input); }},
    {"<=",
     [](const Value& input, const Call& call) { return !less(call.required(0, nullptr), input); }},
    {"ge",
     [](const Value& input, const Call& call) { return !less(input, call.required(0, nullptr)); }},
    {">=",
     [](const Value& input, const Call& call) { return !less(input, call.required(0, nullptr)); }},
};

Value range(Call& call) {
  if (call.arguments.empty() || call.arguments.size() > 3) call.fail("takes 1 to 3 integers");
  for (const Value& argument : call.arguments) integer_of(argument, call);
  bool has_start = call.arguments.size() > 1;
  int64_t start = has_start ? call.arguments[0].integer() : 0;
  int64_t stop = call.arguments[has_start ? 1 : 0].integer(), step = call.integer_or(2, nullptr, 1);
  if (step == 0) call.fail("the step is 0");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) == longest_range)
      call.fail(message("more than ", longest_range, " numbers"));
    items.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return call.interpreter.make_list(std::move(items));
}

std::vector<std::pair<std::string, Value>> named(Call& call) {
  std::vector<std::pair<std::string, Value>> values;
  for (const Value& argument : call.arguments) {
    if (!argument.is_dict()) call.fail("takes a dict and arguments with names");
    for (const auto& [key, value] : argument.entries()) values.emplace_back(key.to_text(), value);
  }
  for (const auto& [name, value] : call.keywords) {
    auto known = std::find_if(values.begin(), values.end(), [&, &wanted = name](const auto& entry) {
      return entry.first == wanted;
    });
    if (known == values.end()) {
      values.emplace_back(name, value);
    } else {
      known->second = value;
    }
  }
  return values;
}

Value make_dict(Call& call) {
  std::vector<std::pair<Value, Value>> entries;
  for (auto& [name, value] : named(call)) entries.emplace_back(Value(name), value);
  call.interpreter.charge(entries.size() * 2 * sizeof(Value));
  return Value::dict(std::move(entries));
}

Value format_time(Call& call) {
  std::string format = call.text(0, "format");
  if (format.size() > 1024) call.fail("a format of more than 1024 bytes");
  std::time_t now = call.interpreter.now();
  std::tm local{};
  localtime_r(&now, &local);
  // An empty result is no error where a format writes something that is never empty.
  char buffer[1 << 14];
  size_t length = std::strftime(buffer, sizeof buffer, ("." + format).c_str(), &local);
  if (length == 0) call.fail("the time is too long in this format");
  return call.interpreter.make_text(tokenizing::valid_utf8(std::string(buffer + 1, length - 1)));
}

}  // namespace

bool apply_test(const std::string& name, const Value& input, const Call& call) {
  for (const TestRow& row : test_rows) {
    if (name == row.name) return row.function(input, call);
  }
  throw RenderError(message("there is no test '", name, "'"));
}

Value global_function(const std::string& name) {
  if (name == "range") return Function(range);
  if (name == "namespace")
    return Function([](Call& call) { return call.interpreter.make_namespace(named(call)); });
  if (name == "dict") return Function(make_dict);
  if (name == "strftime_now") return Function(format_time);
  if (name == "raise_exception")
    return Function(
        [](Call& call) -> Value { throw RenderError(call.required(0, "message").to_text()); });
  return Undefined{name};
}

std::string format_text(const std::string& format, const std::vector<Value>& arguments) {
  std::string result;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      result += format[i];
      continue;
    }
    size_t begin = i++;
    if (i < format.size() && format[i] == '%') {
      result += '%';
      continue;
    }
    while (i < format.size() &&
           std::string_view("-+ #0123456789.").find(format[i]) != std::string_view::npos)
      ++i;
    std::string flags = format.substr(begin, i - begin);
    if (i == format.size() || flags.size() > 8 ||
        std::string_view("sdifgeGErxXo").find(format[i]) == std::string_view::npos)
      throw RenderError(message("\"", format, "\" is a format that is not known"));
    if (next == arguments.size())
      throw RenderError(message("too few values for the format \"", format, "\""));
    const Value& value = arguments[next++];
    char kind = format[i];
    bool is_integer = std::string_view("dixXo").find(kind) != std::string_view::npos;
    if (kind != 's' && kind != 'r' && !value.is_number())
      throw RenderError(
          message("the format \"", format, "\" takes a number, got a ", value.type_name()));
    char buffer[2048];
    int length = 0;
    int width = 0;
    for (char c : flags.substr(0, flags.find('.')))
      width = c >= '0' && c <= '9' ? width * 10 + (c - '0') : width;
    if (width > 1000) throw RenderError(message("the format \"", format, "\" is wider than 1000"));
    if (size_t point = flags.find('.'); point != std::string::npos && flags.size() > point + 4)
      throw RenderError(message("the format \"", format, "\" has more than 999 places"));
    if (is_integer) {
      int64_t integer =
          value.is_float()
              ? (std::abs(value.number()) < 9e18 ? static_cast<int64_t>(value.number()) : 0)
              : value.integer();
      length =
          std::snprintf(buffer, sizeof buffer, (flags + "ll" + (kind == 'i' ? 'd' : kind)).c_str(),
                        static_cast<long long>(integer));
    } else if (kind == 's' || kind == 'r') {
      std::string text = kind == 's' ? value.to_text() : value.repr();
      if (flags.size() == 1) {
        result += text;
        continue;
      }
      text.resize(std::min<size_t>(text.size(), 1000));
      length = std::snprintf(buffer, sizeof buffer, (flags + 's').c_str(),
                             tokenizing::valid_utf8(text).c_str());
    } else {
      length = std::snprintf(buffer, sizeof buffer, (flags + kind).c_str(), value.number());
    }
    result.append(buffer, static_cast<size_t>(std::clamp<int>(length, 0, sizeof buffer - 1)));
    if (result.size() > most_output) break;
  }
  bool is_dict = arguments.size() == 1 && arguments[0].is_dict();
  if (next < arguments.size() && !is_dict)
    throw RenderError(message("too many values for the format \"", format, "\""));
  return result;
}

}  // namespace holdfast::lm::jinja
