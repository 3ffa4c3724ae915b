// What the tests of exported functions share.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <holdfast/export.h>
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

inline bool has_same_bits(const array& a, const array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  array x = contiguous(a), y = contiguous(b);
  eval(x, y);
  return x.nbytes() == 0 || std::memcmp(x.data<char>(), y.data<char>(), x.nbytes()) == 0;
}

}  // namespace holdfast::testing
