// CompileCache: the traces of compiled functions.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <holdfast/compile_impl.h>
#include <holdfast/stream.h>

#include "base/sync.h"
#include "transforms/program.h"

namespace holdfast::detail {

// What a trace depends on beside the function.
struct Signature {
  std::vector<std::pair<Shape, Dtype>> inputs;
  Stream stream;
  ProgramOptions options;
  std::vector<uint64_t> constants;
};

struct Trace {
  Program program;
  std::shared_ptr<void> extra;
};

// Bounded twice: the functions that were called last, and of each the signatures that were. What is
// dropped is traced anew when it is needed, and lives on while a call uses it. Any thread.
class CompileCache {
 public:
  static constexpr size_t kept_functions = 1024;
  static constexpr size_t kept_traces = 128;  // of one function

  // The trace of a function that was made for such arguments; null: none.
  std::shared_ptr<const Trace> find(std::uintptr_t function, const std::vector<array>& arguments,
                                    const Stream& stream, const ProgramOptions& options,
                                    const std::vector<uint64_t>& constants);
  void add(std::uintptr_t function, Signature signature, std::shared_ptr<const Trace> trace);
  void erase(std::uintptr_t function);
  void clear();
  size_t size() const;  // functions

 private:
  // The last used come first.
  struct Function {
    std::uintptr_t id;
    std::list<std::pair<Signature, std::shared_ptr<const Trace>>> traces;
  };
  using Functions = std::list<Function>;

  mutable sync::Mutex mutex_;
  Functions functions_;                                            // guarded by mutex_
  std::unordered_map<std::uintptr_t, Functions::iterator> by_id_;  // guarded by mutex_
};

}  // namespace holdfast::detail
