// tokenizer.json: what is wrong is a ModelError. A tokenizer that was read takes any text, or
// refuses it with a RequestError, and the parts that a Detokenizer returns are what `decode`
// returns.
#include "fuzz/fuzz_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  return holdfast::lm::fuzz_tokenizer(
      file, [&] { return holdfast::lm::Tokenizer::from_files({.tokenizer = file}); });
}
