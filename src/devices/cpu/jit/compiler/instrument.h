// Has each access of a kernel looked at before it is made.
#pragma once

#include "msl/kernel_source.h"

namespace llvm {
class Function;
}

namespace holdfast::jit {

// Puts a call of `check_access_function` before every load, store, atomic operation and block copy
// of scalar IR, which makes the access only when the call allows it (a load gives 0 else), and one
// of `check_barrier_function` before every barrier, of `check_fence_function`
// at every fence and of `check_turn_function` at the back edges of loops. Their parameters are
// those of ReferenceRuntime::access, ::reach and ::fence without the thread, and LastTurn::site;
// the reference lowering makes calls of the runtime, and stores, of them. `source` says how the
// user's parts are called; may be null.
//
// Only what a thread shares with others or could leave is looked at: a variable of the thread that
// is accessed at constant places is not. Before the call, the kernel itself looks whether an access
// lies inside of an array of the thread, of a table, or of an argument that nobody writes
// (`free_begin_function` and `free_bytes_function` of an argument: GroupContext::free_ranges).
//
// Returns whether there are fences: then groups must run one after the other, since a look and the
// access behind it are not one step.
bool instrument(llvm::Function& scalar, const msl::KernelInterface& interface,
                const msl::KernelSource* source);

inline constexpr const char* check_access_function = "holdfast.check.access";
inline constexpr const char* check_barrier_function = "holdfast.check.barrier";
inline constexpr const char* check_fence_function = "holdfast.check.fence";
inline constexpr const char* check_turn_function = "holdfast.check.turn";
inline constexpr const char* free_begin_function = "holdfast.free.begin";
inline constexpr const char* free_bytes_function = "holdfast.free.bytes";

}  // namespace holdfast::jit
