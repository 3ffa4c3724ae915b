#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return holdfast::fuzz(data, size, [](auto reader) {
    std::vector<holdfast::array> arrays;
    auto loaded = holdfast::load_gguf(reader);
    for (const auto& [name, a] : loaded.first) arrays.push_back(a);
    return arrays;
  });
}
