// What is done to a text before it is cut into words: the "normalizer" of tokenizer.json.
#pragma once

#include <memory>
#include <string>

#include "lm/text/json_view.h"

namespace holdfast::lm::tokenizing {

// Immutable; any thread may call it. Texts are valid UTF-8.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string apply(std::string text) const = 0;
};

std::unique_ptr<Normalizer> read_normalizer(const JsonView& json);

// Bytes as the characters that byte-level tokenizers write for them: printable ones as themselves,
// others from U+0100 on.
void append_byte_characters(std::string_view bytes, std::string& out);
// The byte of such a character, or -1.
int byte_of_character(char32_t c);

// Lists of steps inside lists of steps are read to this depth.
constexpr int deepest_sequence = 16;

}  // namespace holdfast::lm::tokenizing
