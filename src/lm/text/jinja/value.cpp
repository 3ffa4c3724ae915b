#include "lm/text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>

#include "lm/support.h"
#include "lm/text/unicode.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::jinja {
namespace {

using tokenizing::append_code_point;
using tokenizing::next_code_point;

constexpr int deepest_value = 100;

int checked_depth(int depth) {
  if (depth > deepest_value)
    throw RenderError(message("values are nested more than ", deepest_value, " times"));
  return depth;
}

std::string hexadecimal(char32_t c, size_t digits) {
  std::string text(digits, '0');
  for (size_t i = digits; i-- > 0; c >>= 4) text[i] = "0123456789abcdef"[c & 15];
  return text;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 32 && c < 127;
  return !tokenizing::is_control(c) && !tokenizing::is_whitespace(c);
}

std::string text_repr(const std::string& text) {
  bool has_single = text.find('\'') != std::string::npos;
  char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string result(1, quote);
  for (size_t i = 0; i < text.size();) {
    char32_t c = next_code_point(text, i);
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '\\' || c == static_cast<char32_t>(quote)) {
      result += '\\', result += static_cast<char>(c);
    } else if (is_printable(c)) {
      append_code_point(result, c);
    } else if (c < 0x100) {
      result += "\\x" + hexadecimal(c, 2);
    } else {
      result += c < 0x10000 ? "\\u" + hexadecimal(c, 4) : "\\U" + hexadecimal(c, 8);
    }
  }
  return result + quote;
}

std::string json_string(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\t':
        result += "\\t";
        break;
      case '\b':
        result += "\\b";
        break;
      case '\f':
        result += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          result += "\\u" + hexadecimal(static_cast<unsigned char>(c), 4);
        } else {
          result += c;
        }
    }
  }
  return result + '"';
}

void append_json(const Value& value, const JsonStyle& style, int level, std::string& out);

std::string json_key(const Value& key) {
  if (key.is_text()) return key.text();
  std::string text;
  if (key.is_number() || key.is_none()) {
    append_json(key, {}, 0, text);
    return text;
  }
  throw RenderError(message("[tojson] the key of an object is a ", key.type_name()));
}

void append_json(const Value& value, const JsonStyle& style, int level, std::string& out) {
  auto new_line = [&](int indented) {
    if (style.indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(style.indent) * static_cast<size_t>(indented), ' ');
  };
  if (value.is_none()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.truth() ? "true" : "false";
  } else if (value.is_integer()) {
    out += std::to_string(value.integer());
  } else if (value.is_float()) {
    double number = value.number();
    out += std::isnan(number)   ? "NaN"
           : std::isinf(number) ? (number > 0 ? "Infinity" : "-Infinity")
                                : float_text(number);
  } else if (value.is_text()) {
    out += json_string(value.text());
  } else if (value.is_list()) {
    out += '[';
    bool is_first = true;
    for (const Value& item : value.items()) {
      if (!is_first) out += style.item_separator;
      is_first = false;
      new_line(level + 1);
      append_json(item, style, level + 1, out);
    }
    if (!is_first) new_line(level);
    out += ']';
  } else if (value.is_dict()) {
    std::vector<std::pair<std::string, const Value*>> entries;
    for (const auto& [key, item] : value.entries()) entries.emplace_back(json_key(key), &item);
    if (style.sorts_keys)
      std::sort(entries.begin(), entries.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
    out += '{';
    bool is_first = true;
    for (const auto& [key, item] : entries) {
      if (!is_first) out += style.item_separator;
      is_first = false;
      new_line(level + 1);
      out += json_string(key) + style.key_separator;
      append_json(*item, style, level + 1, out);
    }
    if (!is_first) new_line(level);
    out += '}';
  } else {
    throw RenderError(message("[tojson] a value of type ", value.type_name(), " is no JSON"));
  }
}

}  // namespace

Value Value::list(std::vector<Value> items, bool is_tuple) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  depth = checked_depth(depth + 1);
  Value value;
  value.value_ = std::make_shared<const ListData>(ListData{std::move(items), is_tuple, depth});
  return value;
}

Value Value::dict(std::vector<std::pair<Value, Value>> items) {
  int depth = 0;
  for (const auto& [key, item] : items) depth = std::max({depth, key.depth(), item.depth()});
  depth = checked_depth(depth + 1);
  Value value;
  value.value_ = std::make_shared<const DictData>(DictData{std::move(items), depth});
  return value;
}

int Value::depth() const {
  if (is_list()) return std::get<std::shared_ptr<const ListData>>(value_)->depth;
  if (is_dict()) return std::get<std::shared_ptr<const DictData>>(value_)->depth;
  // A loop holds its items.
  if (const Loop* loop = this->loop()) {
    int depth = 0;
    for (const Value& item : loop->items) depth = std::max(depth, item.depth());
    return depth + 1;
  }
  return 0;
}

const std::vector<Value>& Value::items() const {
  return std::get<std::shared_ptr<const ListData>>(value_)->items;
}
bool Value::is_tuple() const {
  return is_list() && std::get<std::shared_ptr<const ListData>>(value_)->is_tuple;
}
const std::vector<std::pair<Value, Value>>& Value::entries() const {
  return std::get<std::shared_ptr<const DictData>>(value_)->entries;
}

bool Value::truth() const {
  if (is_none() || is_undefined()) return false;
  if (is_number()) return number() != 0;
  if (is_text()) return !text().empty();
  if (is_list()) return !items().empty();
  if (is_dict()) return !entries().empty();
  return true;
}

size_t Value::length() const {
  if (is_undefined()) return 0;
  if (is_text()) return tokenizing::count_code_points(text());
  if (is_list()) return items().size();
  if (is_dict()) return entries().size();
  if (const Loop* loop = this->loop()) return loop->items.size();
  throw RenderError(message("a value of type ", type_name(), " has no length"));
}

std::string Value::type_name() const {
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_integer()) return "int";
  if (is_float()) return "float";
  if (is_text()) return "str";
  if (is_list()) return is_tuple() ? "tuple" : "list";
  if (is_dict()) return "dict";
  if (is_undefined()) return "Undefined";
  if (names()) return "Namespace";
  if (loop()) return "LoopContext";
  return "function";
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  auto shortest = [&](std::chars_format format) {
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr);
  };
  std::string scientific = shortest(std::chars_format::scientific);
  int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (value != 0 && (exponent < -4 || exponent >= 16)) return scientific;
  std::string fixed = shortest(std::chars_format::fixed);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

std::string Value::repr() const {
  if (is_text()) return text_repr(text());
  if (is_undefined()) return "Undefined";
  if (is_list()) {
    std::string result = is_tuple() ? "(" : "[";
    for (size_t i = 0; i < items().size(); ++i) result += (i ? ", " : "") + items()[i].repr();
    if (is_tuple() && items().size() == 1) result += ",";
    return result + (is_tuple() ? ")" : "]");
  }
  if (is_dict()) {
    std::string result = "{";
    for (const auto& [key, item] : entries()) {
      if (result.size() > 1) result += ", ";
      result += key.repr() + ": " + item.repr();
    }
    return result + "}";
  }
  return to_text();
}

std::string Value::to_text() const {
  if (is_text()) return text();
  if (is_undefined()) return "";
  if (is_none()) return "None";
  if (is_bool()) return truth() ? "True" : "False";
  if (is_integer()) return std::to_string(integer());
  if (is_float()) return float_text(number());
  if (is_list() || is_dict()) return repr();
  return "<" + type_name() + ">";
}

const Value* Value::find(const Value& key) const {
  for (const auto& [known, item] : entries()) {
    if (known == key) return &item;
  }
  return nullptr;
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_integral() && b.is_integral() ? a.integer() == b.integer()
                                              : a.number() == b.number();
  }
  if (a.value_.index() != b.value_.index()) return false;
  if (a.is_text()) return a.text() == b.text();
  if (a.is_list()) return a.is_tuple() == b.is_tuple() && a.items() == b.items();
  if (a.is_dict()) {
    if (a.entries().size() != b.entries().size()) return false;
    return std::all_of(a.entries().begin(), a.entries().end(), [&](const auto& entry) {
      const Value* other = b.find(entry.first);
      return other && *other == entry.second;
    });
  }
  if (a.names()) return a.names() == b.names();
  if (a.loop()) return a.loop() == b.loop();
  if (a.is_function()) return &a.function() == &b.function();
  return true;  // none, undefined
}

bool Value::same_as(const Value& other) const {
  return value_.index() == other.value_.index() && *this == other;
}

bool less(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.number() < b.number();
  if (a.is_text() && b.is_text())
    return a.text() < b.text();  // bytes are in the order of characters
  if (a.is_list() && b.is_list())
    return std::lexicographical_compare(a.items().begin(), a.items().end(), b.items().begin(),
                                        b.items().end(), less);
  if (a.is_undefined() || b.is_undefined())
    throw RenderError(message("'", (a.is_undefined() ? a : b).undefined_name(), "' is undefined"));
  throw RenderError(
      message("values of type ", a.type_name(), " and ", b.type_name(), " have no order"));
}

Value* Namespace::find(std::string_view name) {
  for (auto& [known, value] : values) {
    if (known == name) return &value;
  }
  return nullptr;
}

std::string to_json(const Value& value, const JsonStyle& style) {
  std::string out;
  append_json(value, style, 0, out);
  return out;
}

const Value* Call::keyword(std::string_view wanted) const {
  for (const auto& [known, value] : keywords) {
    if (known == wanted) return &value;
  }
  return nullptr;
}

Value Call::argument(size_t position, const char* keyword_name, Value otherwise) const {
  if (position < arguments.size()) return arguments[position];
  const Value* value = keyword_name ? keyword(keyword_name) : nullptr;
  return value ? *value : otherwise;
}

Value Call::required(size_t position, const char* keyword_name) const {
  if (position >= arguments.size() && !(keyword_name && keyword(keyword_name)))
    fail(message("argument ", position + 1, " is missing"));
  return argument(position, keyword_name, None{});
}

std::string Call::text(size_t position, const char* keyword_name) const {
  Value value = required(position, keyword_name);
  if (!value.is_text())
    fail(message("argument ", position + 1, " is a ", value.type_name(), ", not a string"));
  return value.text();
}

std::string Call::text_or(size_t position, const char* keyword_name, const char* otherwise) const {
  Value value = argument(position, keyword_name, None{});
  return value.is_none() ? otherwise : text(position, keyword_name);
}

int64_t Call::integer_or(size_t position, const char* keyword_name, int64_t otherwise) const {
  Value value = argument(position, keyword_name, None{});
  if (value.is_none()) return otherwise;
  if (!value.is_integral())
    fail(message("argument ", position + 1, " is a ", value.type_name(), ", not an integer"));
  return value.integer();
}

bool Call::truth_or(size_t position, const char* keyword_name, bool otherwise) const {
  return argument(position, keyword_name, otherwise).truth();
}

void Call::fail(const std::string& what) const {
  throw RenderError(message("[", name, "] ", what));
}

}  // namespace holdfast::lm::jinja
