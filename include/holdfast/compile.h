// compile: functions that are traced once and then built from the trace.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/array.h>

namespace holdfast {

enum class CompileMode { disabled, no_simplify, no_fuse, enabled };

// A function that calls `fun` when it sees new shapes, dtypes or another default stream, with
// tracers that have no values, and from then on builds the graph of that call again: simplified,
// and without running `fun`.
//
// What `fun` uses beside its arguments is part of the trace: an array that it captures keeps the
// value of the first call, random numbers without a key too. Pass as an argument what changes.
// Inside another transform `fun` is called as it is. Any thread may call the result. Of a process,
// the traces of the 1024 functions that were called last are kept, and 128 of each.
//
// With `shapeless` one trace serves all shapes of as many dimensions: numbers that `fun` reads from
// a shape keep the value of the first call; the ops themselves do not read any. Sizes that are
// given (reshape to {2, -1}, broadcast_to) are checked by each call; the numbers of a slice mean
// in each call what they mean for its shape (from the end where negative, cut where outside).
// User-provided kernels are for inputs of the shapes of the first call. Ops whose result's shape
// does not follow from their inputs (as_strided, fft, …) are refused by the first call, with
// std::invalid_argument that names the op.
std::function<std::vector<array>(const std::vector<array>&)> compile(
    std::function<std::vector<array>(const std::vector<array>&)> fun, bool shapeless = false);
// Functions without state share their traces among all that compile them.
std::function<std::vector<array>(const std::vector<array>&)> compile(
    std::vector<array> (*fun)(const std::vector<array>&), bool shapeless = false);
// Lambdas without captures are such functions; ones that take the vector by value are not.
template <typename F,
          typename = std::enable_if_t<std::is_convertible_v<F, decltype(+std::declval<F>())>>>
std::function<std::vector<array>(const std::vector<array>&)> compile(F&& f,
                                                                     bool shapeless = false) {
  using Plain = std::vector<array> (*)(const std::vector<array>&);
  using Wrapped = std::function<std::vector<array>(const std::vector<array>&)>;
  if constexpr (std::is_convertible_v<F, Plain>) {
    return compile(static_cast<Plain>(f), shapeless);
  } else {
    return compile(Wrapped(+f), shapeless);
  }
}

// While compilation is disabled, compiled functions call what they were made from;
// HOLDFAST_DISABLE_COMPILE=1 starts so. no_simplify: equal calls stay apart. no_fuse: each call is
// a node of its own.
void disable_compile();
void enable_compile();
void set_compile_mode(CompileMode mode);

}  // namespace holdfast
