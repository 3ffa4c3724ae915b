// vjp, jvp, and the forms of grad that lead to vjp.
#include <algorithm>
#include <stdexcept>

#include <holdfast/transforms.h>

#include <holdfast/transforms_impl.h>
#include "ops/support.h"
#include "ops/views.h"
#include "transforms/differentiate.h"

namespace holdfast {

namespace {

// The outputs that get a cotangent: all but those whose gradient was stopped on the way out.
std::vector<array> with_gradient(const std::vector<array>& outputs) {
  std::vector<array> result;
  for (const array& output : outputs) {
    bool is_stopped =
        output.has_primitive() && dynamic_cast<const StopGradient*>(&output.primitive()) != nullptr;
    if (!is_stopped) result.push_back(output);
  }
  return result;
}

// Cotangents for the outputs that get one, or for all: then those of stopped outputs are left out.
std::vector<array> with_gradient(const std::vector<array>& outputs,
                                 const std::vector<array>& cotangents,
                                 const std::vector<array>& differentiated) {
  if (cotangents.size() != outputs.size()) return cotangents;
  std::vector<array> result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool gets_one = std::ranges::any_of(
        differentiated, [&](const array& output) { return output.id() == outputs[i].id(); });
    if (gets_one) result.push_back(cotangents[i]);
  }
  return result;
}

// In the dtype of what they belong to.
std::vector<array> converted(const char* op, const char* what, std::vector<array> given,
                             const std::vector<array>& expected) {
  if (given.size() != expected.size()) {
    throw std::invalid_argument(
        text("[", op, "] expected ", expected.size(), " ", what, ", got ", given.size()));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].shape() != expected[i].shape()) {
      throw std::invalid_argument(text("[", op, "] ", what, " ", i, " must have the shape ",
                                       expected[i].shape(), ", got ", given[i].shape()));
    }
    given[i] = astype(given[i], expected[i].dtype(), detail::stream_of(expected[i]));
  }
  return given;
}

void check_argnums(const std::vector<int>& argnums) {
  if (argnums.empty()) {
    throw std::invalid_argument("[grad] expected one argument number or more, got none");
  }
}

// Counted from the front.
std::vector<size_t> checked_argnums(const std::vector<int>& argnums,
                                    const std::vector<array>& inputs) {
  std::vector<size_t> places;
  int count = static_cast<int>(inputs.size());
  for (int argnum : argnums) {
    if (argnum < -count || argnum >= count) {
      throw std::invalid_argument(text("[grad] argument number ", argnum,
                                       " is out of range for a call with ", count, " arguments"));
    }
    size_t place = static_cast<size_t>(argnum < 0 ? argnum + count : argnum);
    if (std::find(places.begin(), places.end(), place) != places.end()) {
      throw std::invalid_argument(text("[grad] each argument may be named once, got ", argnums));
    }
    if (!issubdtype(inputs[place].dtype(), inexact)) {
      throw std::invalid_argument(text("[grad] argument ", place, " is of ", inputs[place].dtype(),
                                       ", which has no gradient; convert it with astype, or leave "
                                       "it out of argnums"));
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace

std::pair<std::vector<array>, std::vector<array>> vjp(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& primals, const std::vector<array>& cotangents) {
  detail::InTracing tracing(false, true);
  std::vector<array> tracers = detail::traced(primals);
  std::vector<array> outputs = fun(tracers);
  std::vector<array> differentiated = with_gradient(outputs);
  std::vector<array> given = converted(
      "vjp", "cotangents", with_gradient(outputs, cotangents, differentiated), differentiated);
  return {outputs, detail::pull_back(tracers, differentiated, given)};
}

std::pair<array, array> vjp(const std::function<array(const array&)>& fun, const array& primal,
                            const array& cotangent) {
  auto list = [&](const std::vector<array>& inputs) { return std::vector<array>{fun(inputs[0])}; };
  auto [outputs, results] = vjp(list, std::vector<array>{primal}, std::vector<array>{cotangent});
  return {outputs[0], results[0]};
}

std::pair<std::vector<array>, std::vector<array>> jvp(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& primals, const std::vector<array>& tangents) {
  std::vector<array> given = converted("jvp", "tangents", tangents, primals);
  detail::InTracing tracing(false, true);
  std::vector<array> tracers = detail::traced(primals);
  std::vector<array> outputs = fun(tracers);
  return {outputs, detail::push_forward(tracers, given, outputs)};
}

std::pair<array, array> jvp(const std::function<array(const array&)>& fun, const array& primal,
                            const array& tangent) {
  auto list = [&](const std::vector<array>& inputs) { return std::vector<array>{fun(inputs[0])}; };
  auto [outputs, results] = jvp(list, std::vector<array>{primal}, std::vector<array>{tangent});
  return {outputs[0], results[0]};
}

ValueAndGradFn value_and_grad(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<int>& argnums) {
  check_argnums(argnums);
  return [fun, argnums](const std::vector<array>& inputs) {
    std::vector<size_t> places = checked_argnums(argnums, inputs);
    std::vector<array> primals;
    for (size_t place : places) primals.push_back(inputs[place]);
    detail::InTracing tracing(false, true);
    std::vector<array> tracers = detail::traced(primals), arguments = inputs;
    for (size_t i = 0; i < places.size(); ++i) arguments[places[i]] = tracers[i];
    std::vector<array> outputs = fun(arguments);
    if (outputs.empty()) {
      throw std::invalid_argument("[grad] the function must return the value to differentiate");
    }
    if (outputs[0].ndim() != 0 || !issubdtype(outputs[0].dtype(), inexact)) {
      throw std::invalid_argument(
          text("[grad] expected a function whose (first) result is a 0-d array of a floating "
               "dtype, got ",
               outputs[0].dtype(), " of shape ", outputs[0].shape(), "; sum or average it"));
    }
    array one(1.0f, outputs[0].dtype());
    return std::pair{outputs, detail::pull_back(tracers, {outputs[0]}, {one})};
  };
}

ValueAndGradFn value_and_grad(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun, int argnum) {
  return value_and_grad(fun, std::vector<int>{argnum});
}

std::function<std::pair<array, array>(const array&)> value_and_grad(
    const std::function<array(const array&)>& fun) {
  return [fun](const array& input) {
    auto list = [&](const std::vector<array>& inputs) {
      return std::vector<array>{fun(inputs[0])};
    };
    ValueAndGradFn both = value_and_grad(
        std::function<std::vector<array>(const std::vector<array>&)>(list), std::vector<int>{0});
    auto [outputs, gradients] = both({input});
    return std::pair{outputs[0], gradients[0]};
  };
}

SimpleValueAndGradFn value_and_grad(const std::function<array(const std::vector<array>&)>& fun,
                                    const std::vector<int>& argnums) {
  check_argnums(argnums);
  return [fun, argnums](const std::vector<array>& inputs) {
    auto list = [&](const std::vector<array>& given) { return std::vector<array>{fun(given)}; };
    ValueAndGradFn both =
        value_and_grad(std::function<std::vector<array>(const std::vector<array>&)>(list), argnums);
    auto [outputs, gradients] = both(inputs);
    return std::pair{outputs[0], gradients};
  };
}

SimpleValueAndGradFn value_and_grad(const std::function<array(const std::vector<array>&)>& fun,
                                    int argnum) {
  return value_and_grad(fun, std::vector<int>{argnum});
}

std::function<std::vector<array>(const std::vector<array>&)> grad(
    const std::function<array(const std::vector<array>&)>& fun, const std::vector<int>& argnums) {
  return [both = value_and_grad(fun, argnums)](const std::vector<array>& inputs) {
    return both(inputs).second;
  };
}

std::function<std::vector<array>(const std::vector<array>&)> grad(
    const std::function<array(const std::vector<array>&)>& fun, int argnum) {
  return grad(fun, std::vector<int>{argnum});
}

std::function<array(const array&)> grad(const std::function<array(const array&)>& fun) {
  return [both = value_and_grad(fun)](const array& input) { return both(input).second; };
}

}  // namespace holdfast
