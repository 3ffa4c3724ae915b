#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return holdfast::fuzz(
      data, size, [](auto reader) { return std::vector<holdfast::array>{holdfast::load(reader)}; });
}
