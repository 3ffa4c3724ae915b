#include <holdfast/lm/chat_template.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "lm/support.h"
#include "lm/text/jinja/interpreter.h"
#include "lm/text/utf8.h"

namespace holdfast::lm {
namespace jinja {

struct Template {
  Body body;
  std::map<std::string, std::string> special_tokens;
};

namespace {

using Variables = std::vector<std::pair<std::string, Value>>;
using OrderedJson = nlohmann::ordered_json;

// Throws RenderError for what is nested too deeply.
Value value_of(const OrderedJson& json, int depth) {
  if (depth > 90) throw RenderError("more than 90 values inside each other");
  switch (json.type()) {
    case OrderedJson::value_t::boolean:
      return json.get<bool>();
    case OrderedJson::value_t::number_integer:
      return json.get<int64_t>();
    case OrderedJson::value_t::number_unsigned:
      if (json.get<uint64_t>() > uint64_t(INT64_MAX)) return json.get<double>();
      return json.get<int64_t>();
    case OrderedJson::value_t::number_float:
      return json.get<double>();
    case OrderedJson::value_t::string:
      return json.get<std::string>();
    case OrderedJson::value_t::array: {
      std::vector<Value> items;
      for (const OrderedJson& item : json) items.push_back(value_of(item, depth + 1));
      return Value::list(std::move(items));
    }
    case OrderedJson::value_t::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, item] : json.items())
        entries.emplace_back(Value(key), value_of(item, depth + 1));
      return Value::dict(std::move(entries));
    }
    default:
      return None{};
  }
}

Value parse_value(std::string_view text, const char* what) {
  try {
    return value_of(OrderedJson::parse(text), 0);
  } catch (const nlohmann::json::exception& error) {
    throw RequestError(message("[ChatTemplate] the ", what, " are no JSON: ", error.what()));
  } catch (const RenderError& error) {
    throw RequestError(message("[ChatTemplate] the ", what, " have ", error.what()));
  }
}

std::string render(const Template& source, Value messages, const ChatOptions& options) {
  Variables variables;
  auto set = [&](const std::string& name, Value value) {
    for (auto& [known, old] : variables) {
      if (known == name) {
        old = std::move(value);
        return;
      }
    }
    variables.emplace_back(name, std::move(value));
  };
  for (const auto& [name, token] : source.special_tokens) set(name, token);
  set("messages", std::move(messages));
  set("add_generation_prompt", options.add_generation_prompt);
  set("tools", options.tools.empty() ? Value() : parse_value(options.tools, "tools"));
  set("documents", None{});
  if (!options.variables.empty()) {
    Value others = parse_value(options.variables, "variables");
    if (!others.is_dict())
      throw RequestError(
          message("[ChatTemplate] the variables are a ", others.type_name(), ", not an object"));
    for (const auto& [name, value] : others.entries()) set(name.text(), value);
  }
  std::time_t now =
      options.time.value_or(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  try {
    return Interpreter(std::move(variables), now).render(source.body);
  } catch (const std::bad_variant_access&) {
    throw RequestError(
        "[ChatTemplate] the template uses a value of another type than its operation takes");
  }
}

}  // namespace
}  // namespace jinja

ChatTemplate::ChatTemplate(std::string_view source,
                           std::map<std::string, std::string> special_tokens)
    : template_(std::make_shared<jinja::Template>(
          jinja::Template{jinja::parse(source), std::move(special_tokens)})) {}

ChatTemplate::ChatTemplate(const Tokenizer& tokenizer, const std::string& name)
    : ChatTemplate(
          [&] {
            std::string source = tokenizer.chat_template(name);
            if (source.empty())
              throw ModelError(
                  message("[ChatTemplate] the tokenizer has no chat template \"", name, "\""));
            return source;
          }(),
          tokenizer.special_tokens()) {}

std::string ChatTemplate::apply(const std::vector<ChatMessage>& messages,
                                const ChatOptions& options) const {
  std::vector<jinja::Value> list;
  for (const ChatMessage& message : messages) {
    list.push_back(jinja::Value::dict({{"role", tokenizing::valid_utf8(message.role)},
                                       {"content", tokenizing::valid_utf8(message.content)}}));
  }
  return jinja::render(*template_, jinja::Value::list(std::move(list)), options);
}

std::string ChatTemplate::apply_json(std::string_view messages, const ChatOptions& options) const {
  jinja::Value list = jinja::parse_value(messages, "messages");
  if (!list.is_list())
    throw RequestError(
        message("[ChatTemplate] the messages are a ", list.type_name(), ", not a list"));
  return jinja::render(*template_, std::move(list), options);
}

}  // namespace holdfast::lm
