// compile: the traces of a function, and who finds them.
#include <holdfast/compile.h>

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "base/sync.h"
#include "graph/tracing.h"
#include "ops/support.h"
#include "transforms/differentiate.h"
#include "transforms/program.h"

namespace holdfast {

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;
using detail::Program;
using detail::ProgramOptions;

std::atomic<CompileMode>& mode() {
  static std::atomic<CompileMode> current{CompileMode::enabled};
  return current;
}

// What a trace depends on beside the function.
struct Signature {
  std::vector<std::pair<Shape, Dtype>> inputs;
  Stream stream;
  ProgramOptions options;

  bool fits(const Arrays& arguments, const Stream& current, const ProgramOptions& wanted) const {
    if (arguments.size() != inputs.size() || stream != current || options != wanted) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& [shape, dtype] = inputs[i];
      const array& argument = arguments[i];
      if (argument.dtype() != dtype || argument.ndim() != shape.size()) return false;
      if (!options.shapeless && argument.shape() != shape) return false;
    }
    return true;
  }
};

// The traces of one function, the last used first; any thread.
class Traces {
 public:
  std::shared_ptr<const Program> find(const Arrays& arguments, const Stream& stream,
                                      const ProgramOptions& options) {
    std::lock_guard guard(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!entry->first.fits(arguments, stream, options)) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entries_.front().second;
    }
    return nullptr;
  }
  void add(Signature signature, std::shared_ptr<const Program> program) {
    std::lock_guard guard(mutex_);
    entries_.emplace_front(std::move(signature), std::move(program));
    if (entries_.size() > kept) entries_.pop_back();
  }

 private:
  static constexpr size_t kept = 128;
  sync::Mutex mutex_;
  std::list<std::pair<Signature, std::shared_ptr<const Program>>> entries_;  // guarded by mutex_
};

// Two threads that see a new signature at once both trace: `fun` is not called under a lock.
std::shared_ptr<const Program> trace(const Function& fun, const Arrays& arguments,
                                     const ProgramOptions& options) {
  detail::InTracing tracing;
  Arrays tracers;
  for (const array& argument : arguments) {
    tracers.push_back(detail::placeholder(argument.shape(), argument.dtype()));
  }
  return std::make_shared<Program>(tracers, fun(tracers), options);
}

Function compiled(Function fun, std::shared_ptr<Traces> traces, bool shapeless) {
  return [fun = std::move(fun), traces = std::move(traces), shapeless](const Arrays& arguments) {
    CompileMode now = mode().load(std::memory_order_relaxed);
    if (now == CompileMode::disabled || detail::in_tracing()) return fun(arguments);
    ProgramOptions options{now != CompileMode::no_simplify, now != CompileMode::no_fuse, shapeless};
    Stream stream = default_stream(default_device());
    std::shared_ptr<const Program> program = traces->find(arguments, stream, options);
    if (!program) {
      program = trace(fun, arguments, options);
      Signature signature{{}, stream, options};
      for (const array& argument : arguments) {
        signature.inputs.emplace_back(argument.shape(), argument.dtype());
      }
      traces->add(std::move(signature), program);
    }
    return program->build(arguments);
  };
}

template <typename F>
void check_function(const F& fun) {
  if (!fun && mode().load() != CompileMode::disabled) {
    throw std::invalid_argument("[compile] expected a function, got none");
  }
}

}  // namespace

Function compile(Function fun, bool shapeless) {
  check_function(fun);
  return compiled(std::move(fun), std::make_shared<Traces>(), shapeless);
}

Function compile(Arrays (*fun)(const Arrays&), bool shapeless) {
  check_function(fun);
  static sync::Mutex mutex;
  static auto* known = new std::map<Arrays (*)(const Arrays&), std::shared_ptr<Traces>>;
  std::lock_guard guard(mutex);
  std::shared_ptr<Traces>& traces = (*known)[fun];
  if (!traces) traces = std::make_shared<Traces>();
  return compiled(fun, traces, shapeless);
}

void disable_compile() { set_compile_mode(CompileMode::disabled); }
void enable_compile() { set_compile_mode(CompileMode::enabled); }
void set_compile_mode(CompileMode new_mode) { mode().store(new_mode); }

}  // namespace holdfast
