// The prompt that a conversation becomes: chat templates, in the part of Jinja that they use.
//
// A template is run as the package `transformers` runs it (trim_blocks, lstrip_blocks, tojson
// without escapes, raise_exception, strftime_now), and gives the same text. Known are if, for with
// `loop`, set, namespaces, macros, call and filter blocks, with, generation (its body), raw, break,
// continue; most filters, tests and methods of strings, lists and dicts. Values cannot be changed.
// What is not known is an error that names it.
//
// A template may come from anywhere: its source, its steps, what it writes and how deep it goes are
// limited.
#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/lm/errors.h>
#include <holdfast/lm/tokenizer.h>

namespace holdfast::lm {

namespace jinja {
struct Template;
}

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or what else the template knows
  std::string content;
};

struct ChatOptions {
  // Ends the prompt with the beginning of an answer.
  bool add_generation_prompt = true;
  // The functions that the model may call, as a JSON list; none where it is empty.
  std::string tools{};
  // Other variables of the template, as a JSON object: {"enable_thinking": false}.
  std::string variables{};
  // What strftime_now says; now, where there is none.
  std::optional<std::time_t> time{};
};

// Immutable: any number of threads may use one at once.
class ChatTemplate {
 public:
  // Throws ModelError, with the line, for a template that cannot be understood. The special tokens
  // are variables of the template: "bos_token" and others.
  explicit ChatTemplate(std::string_view source,
                        std::map<std::string, std::string> special_tokens = {});
  // The tokenizer's own template of that name; ModelError when it has none.
  explicit ChatTemplate(const Tokenizer& tokenizer, const std::string& name = "default");

  // The prompt. Messages, tools or variables that are no JSON, and what the template refuses, are a
  // RequestError.
  std::string apply(const std::vector<ChatMessage>& messages,
                    const ChatOptions& options = {}) const;
  // Of messages as a JSON list, as in OpenAI's API: their contents may be lists of parts, and they
  // may have tool calls.
  std::string apply_json(std::string_view messages, const ChatOptions& options = {}) const;

 private:
  std::shared_ptr<const jinja::Template> template_;
};

}  // namespace holdfast::lm
