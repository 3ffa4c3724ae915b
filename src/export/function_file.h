// Functions in files: what a file holds, and its bytes (docs/export.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/io.h>
#include <holdfast/stream.h>

#include "graph/record.h"

namespace holdfast {

struct SavedValue {
  Shape shape;
  Dtype dtype;
};

struct SavedCall {
  Record record;
  Device device;
  std::optional<int> stream;  // none: the default one of the thread that calls the function
  std::vector<uint32_t> inputs;
  std::vector<SavedValue> outputs;
};

// Values are numbered: the inputs, the constants, then the outputs of each call in turn.
struct SavedTrace {
  std::vector<SavedValue> inputs;     // those given by keyword last
  std::vector<std::string> keywords;  // in order
  std::vector<uint32_t> constants;    // numbers in SavedFunction::constants
  std::vector<SavedCall> calls;
  std::vector<uint32_t> outputs;

  size_t positional_count() const { return inputs.size() - keywords.size(); }
};

struct SavedFunction {
  bool shapeless = false;
  std::string metadata;
  std::vector<array> constants;  // evaluated and row-contiguous
  std::vector<SavedTrace> traces;
};

void write_function(io::Writer& writer, const SavedFunction& function);
// std::runtime_error "[import_function] …, at byte N of <label>". Numbers of values are checked to
// be those of earlier ones; whether a call can be made is left to who makes it.
SavedFunction read_function(std::shared_ptr<io::Reader> reader);

// Puts the right checksum into the bytes of a file, for tests that change them.
void seal(std::vector<char>& bytes);

}  // namespace holdfast
