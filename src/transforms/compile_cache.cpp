#include "transforms/compile_cache.h"

#include <mutex>

namespace holdfast::detail {

namespace {

bool fits(const Signature& signature, const std::vector<array>& arguments, const Stream& stream,
          const ProgramOptions& options, const std::vector<uint64_t>& constants) {
  if (arguments.size() != signature.inputs.size() || signature.stream != stream ||
      signature.options != options || signature.constants != constants) {
    return false;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& [shape, dtype] = signature.inputs[i];
    const array& argument = arguments[i];
    if (argument.dtype() != dtype || argument.ndim() != shape.size()) return false;
    if (!options.shapeless && argument.shape() != shape) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const Trace> CompileCache::find(std::uintptr_t function,
                                                const std::vector<array>& arguments,
                                                const Stream& stream, const ProgramOptions& options,
                                                const std::vector<uint64_t>& constants) {
  std::lock_guard guard(mutex_);
  auto found = by_id_.find(function);
  if (found == by_id_.end()) return nullptr;
  functions_.splice(functions_.begin(), functions_, found->second);
  auto& traces = found->second->traces;
  for (auto trace = traces.begin(); trace != traces.end(); ++trace) {
    if (!fits(trace->first, arguments, stream, options, constants)) continue;
    traces.splice(traces.begin(), traces, trace);
    return trace->second;
  }
  return nullptr;
}

void CompileCache::add(std::uintptr_t function, Signature signature,
                       std::shared_ptr<const Trace> trace) {
  // Destroyed when the lock is gone: a trace owns arrays.
  Functions dropped_functions;
  std::list<std::pair<Signature, std::shared_ptr<const Trace>>> dropped;
  std::lock_guard guard(mutex_);
  auto [found, is_new] = by_id_.try_emplace(function);
  if (is_new) {
    functions_.push_front({function, {}});
    found->second = functions_.begin();
  }
  auto& traces = found->second->traces;
  traces.emplace_front(std::move(signature), std::move(trace));
  if (traces.size() > kept_traces) dropped.splice(dropped.begin(), traces, std::prev(traces.end()));
  if (functions_.size() > kept_functions) {
    by_id_.erase(functions_.back().id);
    dropped_functions.splice(dropped_functions.begin(), functions_, std::prev(functions_.end()));
  }
}

void CompileCache::erase(std::uintptr_t function) {
  Functions dropped;
  std::lock_guard guard(mutex_);
  auto found = by_id_.find(function);
  if (found == by_id_.end()) return;
  dropped.splice(dropped.begin(), functions_, found->second);
  by_id_.erase(found);
}

void CompileCache::clear() {
  Functions dropped;
  std::lock_guard guard(mutex_);
  dropped.swap(functions_);
  by_id_.clear();
}

size_t CompileCache::size() const {
  std::lock_guard guard(mutex_);
  return functions_.size();
}

}  // namespace holdfast::detail
