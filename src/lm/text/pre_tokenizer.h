// How a text is cut into words, which the model then makes tokens of: the "pre_tokenizer" of
// tokenizer.json.
#pragma once

#include <memory>
#include <string_view>

#include "lm/text/function_ref.h"
#include "lm/text/json_view.h"

namespace holdfast::lm::tokenizing {

struct Piece {
  std::string_view text;  // valid UTF-8; not empty
  bool is_first;          // of the whole text
};
using PieceSink = FunctionRef<void(const Piece&)>;

// Immutable; any thread may call it. A piece that it hands on is valid during that call.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(const Piece& piece, PieceSink sink) const = 0;
};

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonView& json);

// How Metaspace writes a space, where nothing else is said: U+2581.
constexpr const char* metaspace = "\xe2\x96\x81";

}  // namespace holdfast::lm::tokenizing
