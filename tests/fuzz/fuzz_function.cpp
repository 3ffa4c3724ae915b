// A file of functions, with its checksum put right: what is behind that is what this looks for.
// Small functions without custom kernels are called, with inputs of ones.
#include "export/function_file.h"
#include "export/imported.h"
#include "fuzz/fuzz_target.h"

#include <holdfast/ops.h>

using namespace holdfast;

namespace {

double bytes_of(const SavedValue& value) {
  double size = value.dtype.size();
  for (ShapeElem dim : value.shape) size *= dim;
  return size;
}

bool may_be_called(const SavedTrace& trace) {
  double bytes = 0;
  for (const SavedValue& input : trace.inputs) bytes += bytes_of(input);
  for (const SavedCall& call : trace.calls) {
    if (call.record.kind == "CustomKernel") return false;
    for (const SavedValue& output : call.outputs) bytes += bytes_of(output);
  }
  return bytes <= 1 << 16;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<char> bytes(data, data + size);
  seal(bytes);
  auto reader = std::make_shared<io::MemoryReader>(std::move(bytes), "fuzz");
  try {
    ImportedFunction function = import_function(reader);
    for (const SavedTrace& trace : read_function(reader).traces) {
      if (!may_be_called(trace)) continue;
      Args args;
      Kwargs kwargs;
      for (size_t i = 0; i < trace.inputs.size(); ++i) {
        array input = ones(trace.inputs[i].shape, trace.inputs[i].dtype);
        if (i < trace.positional_count()) {
          args.push_back(input);
        } else {
          kwargs.emplace(trace.keywords[i - trace.positional_count()], input);
        }
      }
      eval(function(args, kwargs));
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
