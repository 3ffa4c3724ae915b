// Chat templates: a text, a ModelError or a RequestError; neither much time, nor memory, nor stack.
#include <holdfast/lm/chat_template.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/fuzz_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace holdfast::lm;
  static const char* const messages =
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi 😀 "},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "abcdefghi", "type": "function",
      "function": {"name": "f", "arguments": {"a": 1.5, "b": [true, null, "x"]}}}]},
    {"role": "tool", "content": [{"type": "text", "text": "21"}]}])";
  static const char* const tools =
      R"([{"type": "function", "function": {"name": "f", "description": "d\ne", "parameters": {
    "type": "object", "required": ["a"], "properties": {"a": {"type": "number"}, "b": {"type": "array", "items": {"type": "string"}}}}}}])";
  try {
    ChatTemplate chat(std::string_view(reinterpret_cast<const char*>(data), size),
                      {{"bos_token", "<s>"}});
    std::string text = chat.apply_json(messages, {.tools = tools, .time = 1715940000});
    check(text.size() <= (size_t{32} << 20));
  } catch (const ModelError&) {
  } catch (const RequestError&) {
  }
  return 0;
}
