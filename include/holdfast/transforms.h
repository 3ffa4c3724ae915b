// Transforms of functions: derivatives and mapping over an axis. Evaluation comes with them
// (holdfast/eval.h).
//
// A transform calls the function with tracers, and works on the graph that comes of it. Transforms
// nest in any order.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/eval.h>

namespace holdfast {

// --- derivatives ---

// (outputs, cotangents of the primals). One cotangent for each output, but for those that are the
// result of stop_gradient. Integers and bool have no derivative: theirs are zeros.
std::pair<std::vector<array>, std::vector<array>> vjp(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& primals, const std::vector<array>& cotangents);
std::pair<array, array> vjp(const std::function<array(const array&)>& fun, const array& primal,
                            const array& cotangent);

// (outputs, tangents of the outputs).
std::pair<std::vector<array>, std::vector<array>> jvp(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& primals, const std::vector<array>& tangents);
std::pair<array, array> jvp(const std::function<array(const array&)>& fun, const array& primal,
                            const array& tangent);

// A function that returns (outputs, gradients): of the first output, which must be a 0-d array, by
// the arguments `argnums`, which must be floating or complex. Negative numbers count from the end.
using ValueAndGradFn =
    std::function<std::pair<std::vector<array>, std::vector<array>>(const std::vector<array>&)>;
using SimpleValueAndGradFn =
    std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)>;
ValueAndGradFn value_and_grad(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<int>& argnums);
ValueAndGradFn value_and_grad(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun, int argnum = 0);
std::function<std::pair<array, array>(const array&)> value_and_grad(
    const std::function<array(const array&)>& fun);
SimpleValueAndGradFn value_and_grad(const std::function<array(const std::vector<array>&)>& fun,
                                    const std::vector<int>& argnums);
SimpleValueAndGradFn value_and_grad(const std::function<array(const std::vector<array>&)>& fun,
                                    int argnum = 0);

// The gradients alone.
std::function<std::vector<array>(const std::vector<array>&)> grad(
    const std::function<array(const std::vector<array>&)>& fun, const std::vector<int>& argnums);
std::function<std::vector<array>(const std::vector<array>&)> grad(
    const std::function<array(const std::vector<array>&)>& fun, int argnum = 0);
std::function<array(const array&)> grad(const std::function<array(const array&)>& fun);

// --- mapping ---

// A function that calls `fun` for each element along an axis of its arguments, all at once: `fun`
// sees arrays without that axis, the results have it at `out_axis`. -1: this argument has no such
// axis, every call sees it whole.
std::function<array(const array&)> vmap(const std::function<array(const array&)>& fun,
                                        int in_axis = 0, int out_axis = 0);
std::function<array(const array&, const array&)> vmap(
    const std::function<array(const array&, const array&)>& fun, int in_axis_a = 0,
    int in_axis_b = 0, int out_axis = 0);
std::function<std::vector<array>(const std::vector<array>&)> vmap(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<int>& in_axes = {}, const std::vector<int>& out_axes = {});

// --- functions with rules of their own ---

// `fun`, transformed by the given rules instead of by those of its ops; rules that are not given
// follow from `fun`. They are about the arguments: what `fun` captures is differentiated as usual.
std::function<std::vector<array>(const std::vector<array>&)> custom_function(
    std::function<std::vector<array>(const std::vector<array>&)> fun,
    // (primals, cotangents, outputs)
    std::optional<std::function<std::vector<array>(
        const std::vector<array>&, const std::vector<array>&, const std::vector<array>&)>>
        fun_vjp = std::nullopt,
    // (primals, tangents, argnums): tangents for the primals that argnums names
    std::optional<std::function<std::vector<array>(
        const std::vector<array>&, const std::vector<array>&, const std::vector<int>&)>>
        fun_jvp = std::nullopt,
    // (inputs, axes): (outputs, their axes)
    std::optional<std::function<std::pair<std::vector<array>, std::vector<int>>(
        const std::vector<array>&, const std::vector<int>&)>>
        fun_vmap = std::nullopt);
std::function<std::vector<array>(const std::vector<array>&)> custom_vjp(
    std::function<std::vector<array>(const std::vector<array>&)> fun,
    std::function<std::vector<array>(const std::vector<array>&, const std::vector<array>&,
                                     const std::vector<array>&)>
        fun_vjp);

// `fun`, of which nothing but inputs and outputs is kept for the gradient: the rest is computed a
// second time.
std::function<std::vector<array>(const std::vector<array>&)> checkpoint(
    std::function<std::vector<array>(const std::vector<array>&)> fun);

}  // namespace holdfast
