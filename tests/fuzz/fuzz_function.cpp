// A file of functions, with its checksum put right: what is behind that is what this looks for.
// Small functions without custom kernels are called, with inputs of ones.
#include "export/function_file.h"
#include "export/imported.h"
#include "fuzz/fuzz_target.h"
#include "transforms/export_testing.h"

using namespace holdfast;

namespace {

bool may_be_called(const SavedTrace& trace) {
  for (const SavedCall& call : trace.calls) {
    if (call.record.kind == "CustomKernel") return false;
  }
  return testing::bytes_of(trace) <= 1 << 16;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<char> bytes(data, data + size);
  seal(bytes);
  auto reader = std::make_shared<io::MemoryReader>(std::move(bytes), "fuzz");
  try {
    ImportedFunction function = import_function(reader);
    for (const SavedTrace& trace : read_function(reader).traces) {
      if (may_be_called(trace)) testing::call_with_ones(function, trace);
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
