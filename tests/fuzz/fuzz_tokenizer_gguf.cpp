// The metadata of a GGUF file as a tokenizer: see fuzz_tokenizer.cpp.
#include "fuzz/fuzz_tokenizer.h"
#include "io/memory_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace holdfast;
  std::string file(reinterpret_cast<const char*>(data), size);
  return lm::fuzz_tokenizer(file, [&] {
    auto reader =
        std::make_shared<io::MemoryReader>(std::vector<char>(file.begin(), file.end()), "fuzz");
    return lm::Tokenizer::from_gguf(load_gguf(reader).second);
  });
}
