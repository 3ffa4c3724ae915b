// Attributes, items and slices of values.
#include <algorithm>

#include "lm/support.h"
#include "lm/text/jinja/interpreter.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::jinja {
namespace {

[[noreturn]] void fail_undefined(const Value& object) {
  throw RenderError(message("'", object.undefined_name(), "' is undefined"));
}

}  // namespace

Value Loop::attribute(const std::shared_ptr<Loop>& self, const std::string& name) {
  auto count = static_cast<int64_t>(items.size()), at = static_cast<int64_t>(index);
  if (name == "index0") return at;
  if (name == "index") return at + 1;
  if (name == "revindex0") return count - at - 1;
  if (name == "revindex") return count - at;
  if (name == "first") return at == 0;
  if (name == "last") return at == count - 1;
  if (name == "length") return count;
  if (name == "depth") return 1;
  if (name == "depth0") return 0;
  if (name == "previtem" && at > 0) return items[index - 1];
  if (name == "nextitem" && at < count - 1) return items[index + 1];
  // The functions are called while the loop runs, or after it: they share it.
  if (name == "cycle")
    return Function([self](Call& call) {
      if (call.arguments.empty()) call.fail("no values to choose from");
      return call.arguments[self->index % call.arguments.size()];
    });
  if (name == "changed")
    return Function([self](Call& call) -> Value {
      std::string now = call.interpreter.make_list(call.arguments).repr();
      bool has_changed = self->changed != now;
      self->changed = std::move(now);
      return has_changed;
    });
  return Undefined{"loop." + name};
}

Value attribute_of(Interpreter& interpreter, const Value& object, const std::string& name) {
  if (object.is_undefined()) fail_undefined(object);
  if (Namespace* names = object.names()) {
    Value* value = names->find(name);
    return value ? *value : Value(Undefined{name});
  }
  if (object.loop()) return object.loop()->attribute(object.shared_loop(), name);
  Value method = method_of(object, name);
  if (!method.is_undefined()) return method;
  if (object.is_dict()) return item_of(interpreter, object, Value(name));
  return Undefined{name};
}

Value item_of(Interpreter& interpreter, const Value& object, const Value& index) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is_dict()) {
    interpreter.step(object.entries().size() / 8);
    if (const Value* value = object.find(index)) return *value;
  } else if ((object.is_list() || object.is_text()) && index.is_integral()) {
    auto count = static_cast<int64_t>(object.length()), at = index.integer();
    if (at < 0) at += count;
    if (at < 0 || at >= count) return Undefined{message("item ", index.integer())};
    if (object.is_list()) return object.items()[static_cast<size_t>(at)];
    size_t position = 0;
    for (; at > 0; --at) position += tokenizing::character_length(object.text()[position]);
    return object.text().substr(position, tokenizing::character_length(object.text()[position]));
  }
  if (index.is_text()) {
    if (object.names() || object.loop()) return attribute_of(interpreter, object, index.text());
    Value method = method_of(object, index.text());
    return method.is_undefined() ? Value(Undefined{index.text()}) : method;
  }
  return Undefined{index.repr()};
}

Value slice_of(Interpreter& interpreter, const Value& object, const Value& start, const Value& stop,
               const Value& step) {
  if (object.is_undefined()) fail_undefined(object);
  if (!object.is_text() && !object.is_list()) return Undefined{"a slice"};
  auto number = [](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    if (!value.is_integral())
      throw RenderError(message("a slice has the bound ", value.repr(), ", which is no integer"));
    return std::clamp(value.integer(), -(int64_t{1} << 40), int64_t{1} << 40);
  };
  auto count = static_cast<int64_t>(object.length());
  int64_t by = number(step, 1);
  if (by == 0) throw RenderError("a slice has the step 0");
  // From the end where negative; inside of what is there.
  auto bound = [&](const Value& value, int64_t otherwise) {
    int64_t at = number(value, otherwise);
    if (!value.is_none() && at < 0) at += count;
    return by > 0 ? std::clamp<int64_t>(at, 0, count) : std::clamp<int64_t>(at, -1, count - 1);
  };
  int64_t from = bound(start, by > 0 ? 0 : count - 1), to = bound(stop, by > 0 ? count : -1);
  if (object.is_text()) {
    std::u32string characters = tokenizing::code_points(object.text()), chosen;
    for (int64_t i = from; by > 0 ? i < to : i > to; i += by)
      chosen += characters[static_cast<size_t>(i)];
    return interpreter.make_text(tokenizing::to_utf8(chosen));
  }
  std::vector<Value> chosen;
  for (int64_t i = from; by > 0 ? i < to : i > to; i += by)
    chosen.push_back(object.items()[static_cast<size_t>(i)]);
  return interpreter.make_list(std::move(chosen), object.is_tuple());
}

std::vector<Value> items_of(Interpreter& interpreter, const Value& value) {
  std::vector<Value> items;
  if (value.is_list()) {
    items = value.items();
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.entries()) items.push_back(key);
  } else if (value.is_text()) {
    interpreter.charge(value.text().size() * sizeof(Value));
    for (size_t i = 0; i < value.text().size();) {
      size_t length = tokenizing::character_length(value.text()[i]);
      items.push_back(value.text().substr(i, length));
      i += length;
    }
  } else if (!value.is_undefined()) {
    throw RenderError(message("cannot go through a value of type ", value.type_name()));
  }
  interpreter.charge(items.size() * sizeof(Value));
  return items;
}

}  // namespace holdfast::lm::jinja
