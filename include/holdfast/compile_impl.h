// compile for bindings, whose functions have an identity of their own and return more than arrays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/device.h>

namespace holdfast::detail {

// What a function returns beside arrays: that of the call that was traced comes back from every
// call.
using ArraysAndExtra = std::pair<std::vector<array>, std::shared_ptr<void>>;
using ArrayFnWithExtra = std::function<ArraysAndExtra(const std::vector<array>&)>;

// The traces of all functions of the process, of which the last used ones are kept. Any thread may
// use it.
class CompileCache;
using CompileCacheWeakPtr = std::weak_ptr<CompileCache>;
CompileCacheWeakPtr compile_cache();

// Functions with one `fun_id` share their traces, for equal `constants`; with 0 each has its own.
std::function<std::vector<array>(const std::vector<array>&)> compile(
    std::function<std::vector<array>(const std::vector<array>&)> fun, std::uintptr_t fun_id,
    bool shapeless = false, std::vector<uint64_t> constants = {});
ArrayFnWithExtra compile(ArrayFnWithExtra fun, std::uintptr_t fun_id, bool shapeless,
                         std::vector<uint64_t> constants);

// Drops the traces of one function, or of all: the next call traces anew. To be called before a
// `fun_id` is used for another function.
void compile_erase(CompileCacheWeakPtr cache, std::uintptr_t fun_id);
void compile_clear_cache(CompileCacheWeakPtr cache);
inline void compile_erase(std::uintptr_t fun_id) { compile_erase(compile_cache(), fun_id); }
inline void compile_clear_cache() { compile_clear_cache(compile_cache()); }

// Compiled functions run wherever arrays do.
bool compile_available_for_device(const Device& device);

}  // namespace holdfast::detail
