// Methods of strings, lists and dicts.
#include <algorithm>
#include <array>

#include "lm/support.h"
#include "lm/text/jinja/interpreter.h"
#include "lm/text/jinja/text_functions.h"
#include "lm/text/unicode.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::jinja {
namespace {

using Method = Value (*)(const Value& self, Call& call);
struct MethodRow {
  const char* name;
  Method method;
};

bool starts_or_ends(const Value& self, Call& call, bool starts) {
  Value parts = call.required(0, nullptr);
  auto matches = [&](const Value& part) {
    if (!part.is_text()) call.fail("takes a string, or a tuple of strings");
    return starts ? self.text().starts_with(part.text()) : self.text().ends_with(part.text());
  };
  if (!parts.is_tuple()) return matches(parts);
  return std::any_of(parts.items().begin(), parts.items().end(), matches);
}

// Where `part` is, in characters; -1 where it is not.
int64_t find_in(const Value& self, Call& call, bool from_end) {
  std::string part = call.text(0, nullptr);
  Value rest = slice_of(call.interpreter, self, call.argument(1, nullptr, None{}),
                        call.argument(2, nullptr, None{}), None{});
  size_t at = from_end ? rest.text().rfind(part) : rest.text().find(part);
  if (at == std::string::npos) return -1;
  auto length = static_cast<int64_t>(self.length());
  int64_t start = call.integer_or(1, nullptr, 0);
  if (start < 0) start = std::max<int64_t>(0, start + length);
  return start + static_cast<int64_t>(tokenizing::count_code_points(rest.text().substr(0, at)));
}

// Does every character have the property, and is there one?
template <typename Property>
bool all_characters(const Value& self, Property property) {
  std::u32string characters = tokenizing::code_points(self.text());
  return !characters.empty() && std::all_of(characters.begin(), characters.end(), property);
}

// Are there letters with case, and do all have this one?
bool has_case(const Value& self, bool upper) {
  bool any = false;
  for (char32_t c : tokenizing::code_points(self.text())) {
    if (upper ? tokenizing::is_lowercase(c) : tokenizing::is_uppercase(c)) return false;
    any |= upper ? tokenizing::is_uppercase(c) : tokenizing::is_lowercase(c);
  }
  return any;
}

Value strip(const Value& self, Call& call, bool left, bool right) {
  Value characters = call.argument(0, "chars", None{});
  if (!characters.is_none() && !characters.is_text())
    call.fail("the characters to strip are a " + std::string(characters.type_name()) +
              ", not a text");
  return call.interpreter.make_text(characters.is_none()
                                        ? stripped(self.text(), nullptr, left, right)
                                        : stripped(self.text(), &characters.text(), left, right));
}

Value split(const Value& self, Call& call, bool from_end) {
  Value separator = call.argument(0, "sep", None{});
  int64_t most = call.integer_or(1, "maxsplit", -1);
  std::vector<Value> parts;
  if (separator.is_none()) {
    parts = split_at_spaces(self.text(), most, from_end);
  } else if (!separator.is_text() || separator.text().empty()) {
    call.fail("a text cannot be split at an empty string, nor at what is none");
  } else {
    parts = split_at(self.text(), separator.text(), most, from_end);
  }
  return call.interpreter.make_list(std::move(parts));
}

Value partition(const Value& self, Call& call, bool from_end) {
  std::string separator = call.text(0, nullptr);
  if (separator.empty()) call.fail("the separator is empty");
  size_t at = from_end ? self.text().rfind(separator) : self.text().find(separator);
  if (at == std::string::npos)
    return from_end ? Value::list({"", "", self}, true) : Value::list({self, "", ""}, true);
  return Value::list(
      {self.text().substr(0, at), separator, self.text().substr(at + separator.size())}, true);
}

Value justify(const Value& self, Call& call, bool left, bool right) {
  int64_t width = call.integer_or(0, nullptr, 0);
  std::string fill = call.text_or(1, nullptr, " ");
  if (width > static_cast<int64_t>(most_output)) call.interpreter.charge(most_output + 1);
  return call.interpreter.make_text(padded(self.text(), width, fill, left, right));
}

constexpr std::array text_methods{
    MethodRow{"strip", [](const Value& self, Call& call) { return strip(self, call, true, true); }},
    MethodRow{"lstrip",
              [](const Value& self, Call& call) { return strip(self, call, true, false); }},
    MethodRow{"rstrip",
              [](const Value& self, Call& call) { return strip(self, call, false, true); }},
    MethodRow{"split", [](const Value& self, Call& call) { return split(self, call, false); }},
    MethodRow{"rsplit", [](const Value& self, Call& call) { return split(self, call, true); }},
    MethodRow{"splitlines",
              [](const Value& self, Call& call) {
                return call.interpreter.make_list(
                    split_lines(self.text(), call.truth_or(0, "keepends", false)));
              }},
    MethodRow{"partition",
              [](const Value& self, Call& call) { return partition(self, call, false); }},
    MethodRow{"rpartition",
              [](const Value& self, Call& call) { return partition(self, call, true); }},
    MethodRow{
        "startswith",
        [](const Value& self, Call& call) -> Value { return starts_or_ends(self, call, true); }},
    MethodRow{
        "endswith",
        [](const Value& self, Call& call) -> Value { return starts_or_ends(self, call, false); }},
    MethodRow{"removeprefix",
              [](const Value& self, Call& call) -> Value {
                std::string part = call.text(0, nullptr);
                return self.text().starts_with(part) ? self.text().substr(part.size())
                                                     : self.text();
              }},
    MethodRow{"removesuffix",
              [](const Value& self, Call& call) -> Value {
                std::string part = call.text(0, nullptr);
                return self.text().ends_with(part)
                           ? self.text().substr(0, self.text().size() - part.size())
                           : self.text();
              }},
    MethodRow{"replace",
              [](const Value& self, Call& call) {
                return replaced(call.interpreter, self.text(), call.text(0, "old"),
                                call.text(1, "new"), call.integer_or(2, "count", -1));
              }},
    MethodRow{"upper",
              [](const Value& self, Call&) -> Value { return tokenizing::uppercase(self.text()); }},
    MethodRow{"lower",
              [](const Value& self, Call&) -> Value { return tokenizing::lowercase(self.text()); }},
    MethodRow{"title",
              [](const Value& self, Call&) -> Value { return tokenizing::titlecase(self.text()); }},
    MethodRow{"capitalize",
              [](const Value& self, Call&) -> Value { return capitalised(self.text()); }},
    MethodRow{"find",
              [](const Value& self, Call& call) -> Value { return find_in(self, call, false); }},
    MethodRow{"rfind",
              [](const Value& self, Call& call) -> Value { return find_in(self, call, true); }},
    MethodRow{"index",
              [](const Value& self, Call& call) -> Value {
                int64_t at = find_in(self, call, false);
                if (at < 0) call.fail("the text is not found");
                return at;
              }},
    MethodRow{"count",
              [](const Value& self, Call& call) -> Value {
                std::string part = call.text(0, nullptr);
                if (part.empty()) return static_cast<int64_t>(self.length() + 1);
                return static_cast<int64_t>(split_at(self.text(), part, -1, false).size() - 1);
              }},
    MethodRow{"join",
              [](const Value& self, Call& call) {
                return joined(call.interpreter,
                              items_of(call.interpreter, call.required(0, nullptr)), self.text(),
                              false);
              }},
    MethodRow{"isdigit",
              [](const Value& self, Call&) -> Value {
                return all_characters(self, tokenizing::is_decimal);
              }},
    MethodRow{"isnumeric",
              [](const Value& self, Call&) -> Value {
                return all_characters(self, tokenizing::is_number);
              }},
    MethodRow{"isalpha",
              [](const Value& self, Call&) -> Value {
                return all_characters(self, tokenizing::is_letter);
              }},
    MethodRow{"isalnum",
              [](const Value& self, Call&) -> Value {
                return all_characters(self, [](char32_t c) {
                  return tokenizing::is_letter(c) || tokenizing::is_number(c);
                });
              }},
    MethodRow{"isspace",
              [](const Value& self, Call&) -> Value {
                return all_characters(self, tokenizing::is_whitespace);
              }},
    MethodRow{"isupper", [](const Value& self, Call&) -> Value { return has_case(self, true); }},
    MethodRow{"islower", [](const Value& self, Call&) -> Value { return has_case(self, false); }},
    MethodRow{"ljust",
              [](const Value& self, Call& call) { return justify(self, call, false, true); }},
    MethodRow{"rjust",
              [](const Value& self, Call& call) { return justify(self, call, true, false); }},
    MethodRow{"center",
              [](const Value& self, Call& call) { return justify(self, call, true, true); }},
    MethodRow{"zfill",
              [](const Value& self, Call& call) -> Value {
                int64_t width = call.integer_or(0, nullptr, 0);
                if (width > static_cast<int64_t>(most_output))
                  call.interpreter.charge(most_output + 1);
                bool has_sign = self.text().starts_with('-') || self.text().starts_with('+');
                std::string sign = has_sign ? self.text().substr(0, 1) : "";
                std::string digits = self.text().substr(sign.size());
                return call.interpreter.make_text(
                    sign + padded(digits, width - has_sign, "0", true, false));
              }},
};

constexpr std::array list_methods{
    MethodRow{"index",
              [](const Value& self, Call& call) -> Value {
                call.interpreter.step(self.length() / 8);
                auto found =
                    std::find(self.items().begin(), self.items().end(), call.required(0, nullptr));
                if (found == self.items().end()) call.fail("the value is not in the list");
                return static_cast<int64_t>(found - self.items().begin());
              }},
    MethodRow{"count",
              [](const Value& self, Call& call) -> Value {
                call.interpreter.step(self.length() / 8);
                return static_cast<int64_t>(std::count(self.items().begin(), self.items().end(),
                                                       call.required(0, nullptr)));
              }},
    MethodRow{"copy", [](const Value& self, Call&) { return self; }},
};

Value entries_of(const Value& self, Call& call, bool keys, bool values) {
  std::vector<Value> items;
  for (const auto& [key, value] : self.entries())
    items.push_back(keys && values ? Value::list({key, value}, true) : keys ? key : value);
  return call.interpreter.make_list(std::move(items));
}

constexpr std::array dict_methods{
    MethodRow{"items",
              [](const Value& self, Call& call) { return entries_of(self, call, true, true); }},
    MethodRow{"keys",
              [](const Value& self, Call& call) { return entries_of(self, call, true, false); }},
    MethodRow{"values",
              [](const Value& self, Call& call) { return entries_of(self, call, false, true); }},
    MethodRow{"get",
              [](const Value& self, Call& call) {
                call.interpreter.step(self.length() / 8);
                const Value* value = self.find(call.required(0, nullptr));
                return value ? *value : call.argument(1, nullptr, None{});
              }},
    MethodRow{"copy", [](const Value& self, Call&) { return self; }},
};

// Methods that change what they are called on: templates may not.
constexpr std::array list_changes{"append", "extend", "insert",  "pop",
                                  "remove", "clear",  "reverse", "sort"};
constexpr std::array dict_changes{"pop", "popitem", "update", "clear", "setdefault"};

template <typename Rows>
Value find_method(const Rows& rows, const Value& object, const std::string& name) {
  for (const MethodRow& row : rows) {
    if (name == row.name)
      return Function([object, method = row.method](Call& call) { return method(object, call); });
  }
  return Undefined{name};
}

template <typename Names>
Value find_change(const Names& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) return Undefined{name};
  return Function([](Call& call) -> Value {
    call.fail("a template cannot change values; use a namespace, or make a new list with +");
  });
}

}  // namespace

Value method_of(const Value& object, const std::string& name) {
  if (object.is_text()) return find_method(text_methods, object, name);
  if (object.is_list()) {
    Value method = find_method(list_methods, object, name);
    return method.is_undefined() ? find_change(list_changes, name) : method;
  }
  if (object.is_dict()) {
    Value method = find_method(dict_methods, object, name);
    return method.is_undefined() ? find_change(dict_changes, name) : method;
  }
  return Undefined{name};
}

}  // namespace holdfast::lm::jinja
