// What is asked of every tokenizer that could be read.
#pragma once

#include <holdfast/lm/tokenizer.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace holdfast::lm {

inline void check(bool holds) {
  if (!holds) std::abort();
}

inline void use_tokenizer(const Tokenizer& tokenizer, const std::string& text) {
  for (bool special : {true, false}) {
    std::vector<int32_t> ids;
    try {
      ids = tokenizer.encode(text,
                             {.add_special_tokens = special, .recognise_special_tokens = special});
    } catch (const RequestError&) {
      continue;
    }
    Detokenizer stream(tokenizer, false);
    std::string all;
    for (int32_t id : ids) {
      check(id >= 0);
      tokenizer.token(id);
      all += stream.add(id);
    }
    check(all + stream.finish() == tokenizer.decode(ids));
    tokenizer.decode(ids, true);
  }
}

template <typename Read>
int fuzz_tokenizer(const std::string& file, Read read) {
  try {
    Tokenizer tokenizer = read();
    use_tokenizer(tokenizer, "Hello, wörld!  it's 1234\n\n<s> 😀 \xf0\x9f 日本 \u2581x extra");
    // The end of the file is as good a text as any.
    use_tokenizer(tokenizer, file.substr(file.size() - std::min<size_t>(file.size(), 200)));
  } catch (const std::runtime_error&) {
  }
  return 0;
}

}  // namespace holdfast::lm
