// How tokens become text: the "decoder" of tokenizer.json, run over tokens as they come.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lm/text/json_view.h"
#include "lm/text/regex.h"

namespace holdfast::lm::tokenizing {

struct DecodeStep {
  enum Kind {
    byte_level,  // characters that stand for bytes become these bytes; makes one text of all tokens
    byte_fallback,  // <0x00> to <0xFF> become bytes
    fuse,        // makes one text of all tokens, so that later steps see its beginning and end only
    replace,     // `pattern` by `content`
    strip,       // up to `start` times `content` at the beginning, up to `stop` times at the end
    metaspace,   // `content` becomes a space, or nothing in the first token if `drops_first`
    word_piece,  // a space before each token that does not begin with `content`, which is removed
    end_suffix,  // `content` at the end of a token becomes a space, or nothing at the end of the
                 // text
    separate,    // a space between tokens
  } kind;
  std::string content{};
  Pattern pattern = Pattern::literal("");
  std::string searched{};  // the literal of `replace`; empty for an expression
  size_t start = 0, stop = 0;
  bool drops_first = false;
  bool cleans_up = false;     // spaces before punctuation are removed
  bool after_fusion = false;  // works on the one text of all tokens
};

// Throws ModelError for steps that cannot be done while tokens come, such as a regular expression
// over the whole text.
std::vector<DecodeStep> read_decoder(const JsonView& json);
// What happens without a decoder.
std::vector<DecodeStep> no_decoder();

// One text. The steps must outlive it.
class DecodeStream {
 public:
  explicit DecodeStream(const std::vector<DecodeStep>& steps) : steps_(&steps) { start(); }

  // The text that can no longer change.
  std::string add(std::string_view token);
  std::string finish();

 private:
  struct State {
    bool any = false;       // a token has come
    size_t stripped = 0;    // at the beginning
    bool stripping = true;  // nothing else has come
    std::string held{};
  };

  void start();
  // Takes a token through the steps from `step` on.
  void pass(size_t step, std::string token);
  std::string apply(const DecodeStep& step, State& state, std::string token);
  std::string apply_to_text(const DecodeStep& step, State& state, std::string part);
  // What a step has held back to the end.
  std::string last_of(const DecodeStep& step, State& state);

  const std::vector<DecodeStep>* steps_;
  std::vector<State> states_;
  std::string bytes_;  // what has come through all steps
};

}  // namespace holdfast::lm::tokenizing
