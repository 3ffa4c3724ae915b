#include <algorithm>
#include <cmath>

#include "lm/support.h"
#include "lm/text/jinja/interpreter.h"
#include "lm/text/jinja/text_functions.h"
#include "lm/text/unicode.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::jinja {
namespace {

using FilterFunction = Value (*)(const Value& input, Call& call);
struct FilterRow {
  const char* name;
  FilterFunction function;
};

std::string text_of(const Value& input) { return input.to_text(); }

// "a.b.0" of an item.
Value attribute_path(Interpreter& interpreter, Value item, const Value& path) {
  if (path.is_integral()) return item_of(interpreter, item, path);
  for (const Value& part : split_at(path.to_text(), ".", -1, false)) {
    const std::string& name = part.text();
    bool is_index =
        !name.empty() && name.size() < 10 &&
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    item = is_index ? item_of(interpreter, item, int64_t{std::stoll(name)})
                    : (item.is_dict() ? item_of(interpreter, item, Value(name))
                                      : attribute_of(interpreter, item, name));
  }
  return item;
}

// Strings without regard to case, unless asked for.
Value sort_key(Interpreter& interpreter, const Value& item, const Value& attribute,
               bool with_case) {
  Value key = attribute.is_none() ? item : attribute_path(interpreter, item, attribute);
  return key.is_text() && !with_case ? Value(tokenizing::lowercase(key.text())) : key;
}

Value sorted(Interpreter& interpreter, std::vector<Value> items, const Value& attribute,
             bool with_case, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value key = sort_key(interpreter, item, attribute, with_case);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  interpreter.step(keyed.size());
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
  items.clear();
  for (auto& entry : keyed) items.push_back(std::move(entry.second));
  return interpreter.make_list(std::move(items));
}

// select, reject, selectattr, rejectattr
Value select(const Value& input, Call& call, bool keeps, bool by_attribute) {
  size_t test = by_attribute ? 1 : 0;
  Value attribute = by_attribute ? call.required(0, nullptr) : Value();
  std::vector<Value> chosen;
  for (const Value& item : items_of(call.interpreter, input)) {
    call.interpreter.step(1);
    Value value = by_attribute ? attribute_path(call.interpreter, item, attribute) : item;
    bool holds = value.truth();
    if (call.arguments.size() > test) {
      Call arguments{
          call.interpreter,
          call.text(test, nullptr),
          {call.arguments.begin() + static_cast<ptrdiff_t>(test) + 1, call.arguments.end()}};
      holds = apply_test(arguments.name, value, arguments);
    }
    if (holds == keeps) chosen.push_back(item);
  }
  return call.interpreter.make_list(std::move(chosen));
}

Value map(const Value& input, Call& call) {
  std::vector<Value> results;
  const Value* attribute = call.keyword("attribute");
  for (const Value& item : items_of(call.interpreter, input)) {
    call.interpreter.step(1);
    if (attribute) {
      Value value = attribute_path(call.interpreter, item, *attribute);
      const Value* otherwise = call.keyword("default");
      results.push_back(value.is_undefined() && otherwise ? *otherwise : value);
    } else {
      Call arguments{call.interpreter,
                     call.text(0, nullptr),
                     {call.arguments.begin() + 1, call.arguments.end()},
                     call.keywords};
      results.push_back(apply_filter(arguments.name, item, arguments));
    }
  }
  return call.interpreter.make_list(std::move(results));
}

Value group_by(const Value& input, Call& call) {
  Value attribute = call.required(0, "attribute");
  Value ordered =
      sorted(call.interpreter, items_of(call.interpreter, input), attribute, false, false);
  std::vector<Value> groups, group;
  Value key;
  auto finish = [&] {
    if (!group.empty())
      groups.push_back(Value::list({key, call.interpreter.make_list(std::move(group))}, true));
    group.clear();
  };
  for (const Value& item : ordered.items()) {
    Value next = attribute_path(call.interpreter, item, attribute);
    if (group.empty() || !(sort_key(call.interpreter, next, {}, false) ==
                           sort_key(call.interpreter, key, {}, false))) {
      finish();
      key = next;
    }
    group.push_back(item);
  }
  finish();
  return call.interpreter.make_list(std::move(groups));
}

Value unique(const Value& input, Call& call) {
  Value attribute = call.argument(1, "attribute", None{});
  std::vector<Value> keys, items;
  for (const Value& item : items_of(call.interpreter, input)) {
    Value key =
        sort_key(call.interpreter, item, attribute, call.truth_or(0, "case_sensitive", false));
    call.interpreter.step(1 + keys.size() / 8);
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    keys.push_back(key);
    items.push_back(item);
  }
  return call.interpreter.make_list(std::move(items));
}

Value extreme(const Value& input, Call& call, bool greatest) {
  Value ordered = sorted(call.interpreter, items_of(call.interpreter, input),
                         call.argument(1, "attribute", None{}),
                         call.truth_or(0, "case_sensitive", false), greatest);
  return ordered.items().empty() ? Value(Undefined{"an item of an empty list"})
                                 : ordered.items().front();
}

Value dict_sort(const Value& input, Call& call) {
  if (!input.is_dict()) call.fail(message("takes a dict, got a ", input.type_name()));
  std::vector<Value> entries;
  for (const auto& [key, value] : input.entries())
    entries.push_back(Value::list({key, value}, true));
  int64_t by = call.text_or(1, "by", "key") == "value" ? 1 : 0;
  return sorted(call.interpreter, std::move(entries), by, call.truth_or(0, "case_sensitive", false),
                call.truth_or(2, "reverse", false));
}

Value first_or_last(const Value& input, Call& call, bool last) {
  std::vector<Value> items = items_of(call.interpreter, input);
  if (items.empty()) return Undefined{"an item of an empty list"};
  return last ? items.back() : items.front();
}

Value sum(const Value& input, Call& call) {
  Value total = call.argument(1, "start", 0), attribute = call.argument(0, "attribute", None{});
  for (const Value& item : items_of(call.interpreter, input)) {
    call.interpreter.step(1);
    total = binary(call.interpreter, BinaryOperator::add, total,
                   attribute.is_none() ? item : attribute_path(call.interpreter, item, attribute));
  }
  return total;
}

Value to_integer(const Value& input, Call& call) {
  Value otherwise = call.argument(0, "default", 0);
  if (input.is_integral()) return input.integer();
  double number = 0;
  if (input.is_float()) {
    number = input.number();
  } else if (input.is_text()) {
    std::string text = stripped(input.text(), nullptr, true, true);
    size_t end = 0;
    try {
      int64_t integer = std::stoll(
          text, &end, static_cast<int>(std::clamp<int64_t>(call.integer_or(1, "base", 10), 2, 36)));
      if (end == text.size()) return integer;
      number = std::stod(text, &end);
    } catch (const std::logic_error&) {
      return otherwise;
    }
    if (end != text.size()) return otherwise;
  } else {
    return otherwise;
  }
  if (!(std::abs(number) < 9e18)) return otherwise;
  return static_cast<int64_t>(number);
}

Value to_float(const Value& input, Call& call) {
  if (input.is_number()) return input.number();
  Value otherwise = call.argument(0, "default", 0.0);
  if (!input.is_text()) return otherwise;
  std::string text = stripped(input.text(), nullptr, true, true);
  try {
    size_t end = 0;
    double number = std::stod(text, &end);
    return end == text.size() ? Value(number) : otherwise;
  } catch (const std::logic_error&) {
    return otherwise;
  }
}

Value round(const Value& input, Call& call) {
  if (!input.is_number()) call.fail(message("takes a number, got a ", input.type_name()));
  int64_t places = std::clamp<int64_t>(call.integer_or(0, "precision", 0), -300, 300);
  std::string method = call.text_or(1, "method", "common");
  if (input.is_integral() && method == "common") return input.integer();
  double scale = std::pow(10.0, static_cast<double>(places)), scaled = input.number() * scale;
  double rounded = method == "ceil"    ? std::ceil(scaled)
                   : method == "floor" ? std::floor(scaled)
                                       : std::nearbyint(scaled);
  return std::isfinite(scaled) && scale != 0 ? rounded / scale : input.number();
}

Value indent(const Value& input, Call& call) {
  Value width = call.argument(0, "width", 4);
  if (width.is_integral() && width.integer() > 10'000) call.fail("more than 10000 spaces");
  std::string spaces =
      width.is_text()
          ? width.text()
          : std::string(static_cast<size_t>(std::max<int64_t>(0, call.integer_or(0, "width", 4))),
                        ' ');
  bool first = call.truth_or(1, "first", false), blank = call.truth_or(2, "blank", false);
  std::vector<Value> lines = split_lines(text_of(input) + "\n", false);
  std::string result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) result += "\n";
    const std::string& line = lines[i].text();
    if (i ? blank || !line.empty() : first) result += spaces;
    result += line;
    if (result.size() > most_output) call.interpreter.charge(result.size());
  }
  return call.interpreter.make_text(std::move(result));
}

Value truncate(const Value& input, Call& call) {
  std::u32string text = tokenizing::code_points(text_of(input));
  std::u32string end = tokenizing::code_points(call.text_or(2, "end", "..."));
  int64_t length = call.integer_or(0, "length", 255), leeway = call.integer_or(3, "leeway", 5);
  if (length < static_cast<int64_t>(end.size()))
    call.fail("the length is less than that of the end");
  auto limit = static_cast<size_t>(length);
  if (text.size() <= limit + static_cast<size_t>(std::clamp<int64_t>(leeway, 0, 1 << 30)))
    return text_of(input);
  std::u32string kept = text.substr(0, limit - end.size());
  if (!call.truth_or(1, "killwords", false)) kept = kept.substr(0, kept.rfind(U' '));
  return call.interpreter.make_text(tokenizing::to_utf8(kept + end));
}

Value escape(const Value& input, Call& call) {
  std::string result;
  for (char c : text_of(input)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&#34;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return call.interpreter.make_text(std::move(result));
}

Value to_json_filter(const Value& input, Call& call) {
  JsonStyle style;
  Value wide = call.argument(1, "indent", None{});
  if (const Value* keyword = call.keyword("indent")) wide = *keyword;
  if (wide.is_integral()) {
    style.indent = static_cast<int>(std::clamp<int64_t>(wide.integer(), 0, 64));
    style.item_separator = ",";
  }
  if (Value separators = call.argument(2, "separators", None{});
      separators.is_list() && separators.items().size() == 2) {
    style.item_separator = separators.items()[0].to_text();
    style.key_separator = separators.items()[1].to_text();
  }
  style.sorts_keys = call.truth_or(3, "sort_keys", false);
  return call.interpreter.make_text(to_json(input, style));
}

Value batch(const Value& input, Call& call) {
  int64_t count = call.integer_or(0, "linecount", 0);
  if (count < 1 || count > longest_range)
    call.fail(message("takes a number from 1 to ", longest_range));
  Value fill = call.argument(1, "fill_with", None{});
  std::vector<Value> rows, row;
  for (const Value& item : items_of(call.interpreter, input)) {
    row.push_back(item);
    if (static_cast<int64_t>(row.size()) == count)
      rows.push_back(call.interpreter.make_list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    if (!fill.is_none()) row.resize(static_cast<size_t>(count), fill);
    rows.push_back(call.interpreter.make_list(std::move(row)));
  }
  return call.interpreter.make_list(std::move(rows));
}

Value reverse(const Value& input, Call& call) {
  if (input.is_text()) {
    std::u32string text = tokenizing::code_points(input.text());
    std::reverse(text.begin(), text.end());
    return call.interpreter.make_text(tokenizing::to_utf8(text));
  }
  std::vector<Value> items = items_of(call.interpreter, input);
  std::reverse(items.begin(), items.end());
  return call.interpreter.make_list(std::move(items));
}

Value join(const Value& input, Call& call) {
  std::vector<Value> items = items_of(call.interpreter, input);
  Value attribute = call.argument(1, "attribute", None{});
  if (!attribute.is_none()) {
    for (Value& item : items) item = attribute_path(call.interpreter, item, attribute);
  }
  return joined(call.interpreter, items, call.argument(0, "d", "").to_text(), true);
}

// A letter is capital after a space or a bracket, not after any sign as in str.title.
Value title(const Value& input, Call& call) {
  std::string result, text = text_of(input);
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = tokenizing::next_code_point(text, i);
    std::string character = text.substr(begin, i - begin);
    result += in_word ? tokenizing::lowercase(character) : tokenizing::uppercase(character);
    in_word = !tokenizing::is_whitespace(c) &&
              std::u32string_view(U"-({[<").find(c) == std::u32string_view::npos;
  }
  return call.interpreter.make_text(std::move(result));
}

Value word_count(const Value& input, Call&) {
  int64_t count = 0;
  bool in_word = false;
  for (char32_t c : tokenizing::code_points(text_of(input))) {
    bool is_part = tokenizing::is_word_character(c);
    count += is_part && !in_word;
    in_word = is_part;
  }
  return count;
}

Value or_default(const Value& input, Call& call) {
  bool is_missing = input.is_undefined() || (call.truth_or(1, "boolean", false) && !input.truth());
  return is_missing ? call.argument(0, "default_value", "") : input;
}

Value absolute(const Value& input, Call& call) {
  if (!input.is_number()) call.fail(message("takes a number, got a ", input.type_name()));
  if (input.is_float()) return std::abs(input.number());
  return input.integer() < 0 ? binary(call.interpreter, BinaryOperator::subtract, 0, input)
                             : Value(input.integer());
}

Value url_encode(const Value& input, Call& call) {
  std::string result;
  for (char c : text_of(input)) {
    bool is_plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                    std::string_view("-_.~/").find(c) != std::string_view::npos;
    if (is_plain) {
      result += c;
    } else {
      constexpr char digits[] = "0123456789ABCDEF";
      auto byte = static_cast<unsigned char>(c);
      result += '%', result += digits[byte >> 4], result += digits[byte & 15];
    }
  }
  return call.interpreter.make_text(std::move(result));
}

Value strip_filter(const Value& input, Call& call) {
  Value characters = call.argument(0, "chars", None{});
  if (characters.is_none())
    return call.interpreter.make_text(stripped(text_of(input), nullptr, true, true));
  std::string chars = characters.to_text();
  return call.interpreter.make_text(stripped(text_of(input), &chars, true, true));
}

Value items_filter(const Value& input, Call& call) {
  if (input.is_undefined()) return Value::list({});
  if (!input.is_dict()) call.fail(message("takes a dict, got a ", input.type_name()));
  Call arguments{call.interpreter, "items", {}};
  return call.interpreter.call(method_of(input, "items"), arguments);
}

constexpr FilterRow filter_rows[] = {
    {"abs", absolute},
    {"attr",
     [](const Value& input, Call& call) {
       return attribute_of(call.interpreter, input, call.text(0, "name"));
     }},
    {"batch", batch},
    {"capitalize", [](const Value& input, Call&) -> Value { return capitalised(text_of(input)); }},
    {"center",
     [](const Value& input, Call& call) {
       return call.interpreter.make_text(
           padded(text_of(input), std::min<int64_t>(call.integer_or(0, "width", 80), 1 << 20), " ",
                  true, true));
     }},
    {"count",
     [](const Value& input, Call&) -> Value { return static_cast<int64_t>(input.length()); }},
    {"d", or_default},
    {"default", or_default},
    {"dictsort", dict_sort},
    {"e", escape},
    {"escape", escape},
    {"first", [](const Value& input, Call& call) { return first_or_last(input, call, false); }},
    {"float", to_float},
    {"forceescape", escape},
    {"format",
     [](const Value& input, Call& call) {
       return call.interpreter.make_text(format_text(text_of(input), call.arguments));
     }},
    {"groupby", group_by},
    {"indent", indent},
    {"int", to_integer},
    {"items", items_filter},
    {"join", join},
    {"last", [](const Value& input, Call& call) { return first_or_last(input, call, true); }},
    {"length",
     [](const Value& input, Call&) -> Value { return static_cast<int64_t>(input.length()); }},
    {"list",
     [](const Value& input, Call& call) {
       return call.interpreter.make_list(items_of(call.interpreter, input));
     }},
    {"lower",
     [](const Value& input, Call&) -> Value { return tokenizing::lowercase(text_of(input)); }},
    {"map", map},
    {"max", [](const Value& input, Call& call) { return extreme(input, call, true); }},
    {"min", [](const Value& input, Call& call) { return extreme(input, call, false); }},
    {"pprint",
     [](const Value& input, Call& call) { return call.interpreter.make_text(input.repr()); }},
    {"reject", [](const Value& input, Call& call) { return select(input, call, false, false); }},
    {"rejectattr", [](const Value& input, Call& call) { return select(input, call, false, true); }},
    {"replace",
     [](const Value& input, Call& call) {
       return replaced(call.interpreter, text_of(input), call.argument(0, "old", "").to_text(),
                       call.argument(1, "new", "").to_text(), call.integer_or(2, "count", -1));
     }},
    {"reverse", reverse},
    {"round", round},
    {"safe", [](const Value& input, Call&) { return input; }},
    {"select", [](const Value& input, Call& call) { return select(input, call, true, false); }},
    {"selectattr", [](const Value& input, Call& call) { return select(input, call, true, true); }},
    {"sort",
     [](const Value& input, Call& call) {
       return sorted(call.interpreter, items_of(call.interpreter, input),
                     call.argument(2, "attribute", None{}),
                     call.truth_or(1, "case_sensitive", false), call.truth_or(0, "reverse", false));
     }},
    {"string",
     [](const Value& input, Call& call) { return call.interpreter.make_text(text_of(input)); }},
    {"sum", sum},
    {"title", title},
    {"tojson", to_json_filter},
    {"trim", strip_filter},
    {"truncate", truncate},
    {"unique", unique},
    {"upper",
     [](const Value& input, Call&) -> Value { return tokenizing::uppercase(text_of(input)); }},
    {"urlencode", url_encode},
    {"wordcount", word_count},
};

}  // namespace

Value apply_filter(const std::string& name, const Value& input, Call call) {
  for (const FilterRow& row : filter_rows) {
    if (name == row.name) return row.function(input, call);
  }
  throw RenderError(message("there is no filter '", name, "'"));
}

}  // namespace holdfast::lm::jinja
