// compile: when a function is traced, and when its trace is used.
#include <holdfast/compile.h>

#include <atomic>
#include <memory>
#include <stdexcept>

#include <holdfast/compile_impl.h>
#include <holdfast/transforms_impl.h>

#include "base/environment.h"
#include "transforms/compile_cache.h"
#include "transforms/differentiate.h"

namespace holdfast {

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;
using detail::ArrayFnWithExtra;
using detail::ArraysAndExtra;
using detail::CompileCache;
using detail::ProgramOptions;
using detail::Trace;

std::atomic<CompileMode>& mode() {
  static std::atomic<CompileMode> current{
      environment::settings().disable_compile ? CompileMode::disabled : CompileMode::enabled};
  return current;
}

// Never destroyed: functions that are may outlive it otherwise.
const std::shared_ptr<CompileCache>& process_cache() {
  static auto* cache = new std::shared_ptr<CompileCache>(std::make_shared<CompileCache>());
  return *cache;
}

// `fun` is not called under a lock: two threads that see a new signature at once both trace.
std::shared_ptr<const Trace> trace(const ArrayFnWithExtra& fun, const Arrays& arguments,
                                   const ProgramOptions& options) {
  detail::InTracing tracing(options.shapeless);
  Arrays tracers;
  for (const array& argument : arguments) {
    tracers.push_back(detail::placeholder(argument.shape(), argument.dtype()));
  }
  auto [outputs, extra] = fun(tracers);
  return std::make_shared<Trace>(
      Trace{detail::Program(tracers, outputs, options), std::move(extra)});
}

bool is_compiling(CompileMode now) { return now != CompileMode::disabled && !detail::in_tracing(); }

// `trace_it`: the function as it is traced.
template <class TraceIt>
std::shared_ptr<const Trace> find_or_trace(std::uintptr_t id, const Arrays& arguments,
                                           CompileMode now, bool shapeless,
                                           const std::vector<uint64_t>& constants,
                                           TraceIt&& trace_it) {
  ProgramOptions options{now != CompileMode::no_simplify, now != CompileMode::no_fuse, shapeless};
  Stream stream = default_stream(default_device());
  CompileCache& cache = *process_cache();
  std::shared_ptr<const Trace> found = cache.find(id, arguments, stream, options, constants);
  if (found) return found;
  found = trace(trace_it, arguments, options);
  detail::Signature signature{{}, stream, options, constants};
  for (const array& argument : arguments) {
    signature.inputs.emplace_back(argument.shape(), argument.dtype());
  }
  cache.add(id, std::move(signature), found);
  return found;
}

// What a function's traces are found by: a number that the caller gives (the address of something),
// or one that no other function has or will have. When the last copy of such a function goes, so do
// its traces.
struct FunctionIdentity {
  struct Owner {
    explicit Owner(std::uintptr_t number) : id(number) {}
    ~Owner() { process_cache()->erase(id); }
    std::uintptr_t id;
  };
  explicit FunctionIdentity(std::uintptr_t given = 0) : id(given) {
    if (id != 0) return;
    static std::atomic<std::uintptr_t> last{std::uintptr_t{1} << 63};  // beyond all addresses
    owner = std::make_shared<Owner>(++last);
    id = owner->id;
  }
  std::uintptr_t id;
  std::shared_ptr<Owner> owner;
};

Function compiled(Function fun, FunctionIdentity identity, bool shapeless,
                  std::vector<uint64_t> constants) {
  return [fun = std::move(fun), identity = std::move(identity), shapeless,
          constants = std::move(constants)](const Arrays& arguments) {
    CompileMode now = mode().load(std::memory_order_relaxed);
    if (!is_compiling(now)) return fun(arguments);
    auto found = find_or_trace(identity.id, arguments, now, shapeless, constants,
                               [&](const Arrays& in) { return ArraysAndExtra{fun(in), nullptr}; });
    return found->program.build(arguments);
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
  return compiled(std::move(fun), FunctionIdentity(), shapeless, {});
}

Function compile(Arrays (*fun)(const Arrays&), bool shapeless) {
  check_function(fun);
  return compiled(fun, FunctionIdentity(reinterpret_cast<std::uintptr_t>(fun)), shapeless, {});
}

void disable_compile() { set_compile_mode(CompileMode::disabled); }
void enable_compile() { set_compile_mode(CompileMode::enabled); }
void set_compile_mode(CompileMode new_mode) { mode().store(new_mode); }

namespace detail {

CompileCacheWeakPtr compile_cache() { return process_cache(); }

Function compile(Function fun, std::uintptr_t fun_id, bool shapeless,
                 std::vector<uint64_t> constants) {
  check_function(fun);
  return compiled(std::move(fun), FunctionIdentity(fun_id), shapeless, std::move(constants));
}

ArrayFnWithExtra compile(ArrayFnWithExtra fun, std::uintptr_t fun_id, bool shapeless,
                         std::vector<uint64_t> constants) {
  check_function(fun);
  return [fun = std::move(fun), identity = FunctionIdentity(fun_id), shapeless,
          constants = std::move(constants)](const Arrays& arguments) -> ArraysAndExtra {
    CompileMode now = mode().load(std::memory_order_relaxed);
    if (!is_compiling(now)) return fun(arguments);
    auto found = find_or_trace(identity.id, arguments, now, shapeless, constants, fun);
    return {found->program.build(arguments), found->extra};
  };
}

void compile_erase(CompileCacheWeakPtr cache, std::uintptr_t fun_id) {
  if (auto alive = cache.lock()) alive->erase(fun_id);
}

void compile_clear_cache(CompileCacheWeakPtr cache) {
  if (auto alive = cache.lock()) alive->clear();
}

bool compile_available_for_device(const Device&) { return true; }

}  // namespace detail

}  // namespace holdfast
