// What the tests of exported functions share.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <holdfast/export.h>
#include <holdfast/ops.h>
#include <holdfast/transforms.h>

#include "export/function_file.h"
#include "export/imported.h"
#include "io/files.h"
#include "io/memory_reader.h"

namespace holdfast::testing {

using ArgsFunction = std::function<Args(const Args&)>;

inline std::vector<char> bytes_of_file(const std::string& path) {
  std::string bytes = read_file(path);
  return {bytes.begin(), bytes.end()};
}

inline std::shared_ptr<io::Reader> reader_of(std::vector<char> bytes) {
  return std::make_shared<io::MemoryReader>(std::move(bytes), "memory");
}

// The kinds of calls that a file holds.
inline std::set<std::string> kinds_in(const std::string& path) {
  std::set<std::string> kinds;
  for (const SavedTrace& trace : read_function(reader_of(bytes_of_file(path))).traces) {
    for (const SavedCall& call : trace.calls) kinds.insert(call.record.kind);
  }
  return kinds;
}

// What a call of the trace holds at most, in bytes.
inline double bytes_of(const SavedTrace& trace) {
  double bytes = 0;
  auto add = [&](const std::vector<SavedValue>& values) {
    for (const SavedValue& value : values) {
      double size = value.dtype.size();
      for (ShapeElem dim : value.shape) size *= dim;
      bytes += size;
    }
  };
  add(trace.inputs);
  for (const SavedCall& call : trace.calls) add(call.outputs);
  return bytes;
}

inline Args call_with_ones(const ImportedFunction& function, const SavedTrace& trace) {
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
  Args results = function(args, kwargs);
  eval(results);
  return results;
}

inline bool has_same_bits(const array& a, const array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  array x = contiguous(a), y = contiguous(b);
  eval(x, y);
  return x.nbytes() == 0 || std::memcmp(x.data<char>(), y.data<char>(), x.nbytes()) == 0;
}

}  // namespace holdfast::testing
