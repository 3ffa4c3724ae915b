#include "transforms/differentiate.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include <holdfast/ops.h>
#include <holdfast/primitive.h>

#include <holdfast/transforms_impl.h>
#include "ops/accumulate.h"
#include "ops/support.h"
#include "ops/views.h"
#include "transforms/tape.h"

namespace holdfast::detail {

namespace {

using Values = std::unordered_map<std::uintptr_t, array>;

std::vector<array> pick(const std::vector<array>& arrays, const std::vector<int>& places) {
  std::vector<array> result;
  for (int place : places) result.push_back(arrays[static_cast<size_t>(place)]);
  return result;
}

// A call of a primitive, as the rules want it.
struct DifferentiatedCall {
  std::vector<array> inputs, outputs;
  std::vector<int> argnums;  // the inputs that depend on what is differentiated
  std::shared_ptr<Primitive> primitive;

  DifferentiatedCall(const array& output, const Tape& tape)
      : inputs(output.inputs()), outputs(output.outputs()), primitive(output.primitive_ptr()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (tape.depends(inputs[i])) argnums.push_back(static_cast<int>(i));
    }
  }

  void check(const array& got, const array& expected, const char* what) const {
    if (got.shape() == expected.shape() && got.dtype() == expected.dtype()) return;
    throw std::logic_error(text("[", what, "] the rule of ", primitive->name(), " gave ",
                                got.dtype(), " of shape ", got.shape(), " for ", expected.dtype(),
                                " of shape ", expected.shape()));
  }

  std::vector<array> rule(const std::vector<array>& cotangents) const {
    if (!primitive->traits().is_of_library)
      return primitive->vjp(inputs, cotangents, argnums, outputs);
    return static_cast<Op&>(*primitive).vjp_rule(inputs, cotangents, argnums, outputs);
  }

  std::vector<array> vjp(const std::vector<array>& cotangents) const {
    std::vector<array> composed = primitive->decomposed(inputs);
    std::vector<array> result = composed.empty()
                                    ? rule(cotangents)
                                    : pull_back(pick(inputs, argnums), composed, cotangents);
    if (result.size() != argnums.size()) {
      throw std::logic_error(text("[vjp] expected ", argnums.size(),
                                  " cotangents from the rule of ", primitive->name(), ", got ",
                                  result.size()));
    }
    for (size_t k = 0; k < argnums.size(); ++k) {
      check(result[k], inputs[static_cast<size_t>(argnums[k])], "vjp");
    }
    return result;
  }

  std::vector<array> jvp(const std::vector<array>& tangents) const {
    std::vector<array> result = primitive->jvp(inputs, tangents, argnums);
    if (result.empty()) {
      std::vector<array> composed = primitive->decomposed(inputs);
      result = composed.empty() ? transposed_vjp(tangents)
                                : push_forward(pick(inputs, argnums), tangents, composed);
    }
    for (size_t k = 0; k < outputs.size(); ++k) check(result.at(k), outputs[k], "jvp");
    return result;
  }

  // vjp is a linear function of the cotangents, whatever they are: its transpose is jvp.
  std::vector<array> transposed_vjp(const std::vector<array>& tangents) const {
    InTracing tracing;
    std::vector<array> unknown;
    for (const array& output : outputs) {
      unknown.push_back(placeholder(output.shape(), output.dtype()));
    }
    return pull_back(unknown, vjp(unknown), tangents);
  }
};

std::optional<array> find(const Values& values, const array& a) {
  auto found = values.find(a.id());
  return found == values.end() ? std::nullopt : std::optional<array>(found->second);
}

}  // namespace

StreamOrDevice stream_of(const array& a) {
  if (a.has_primitive()) return a.primitive().stream();
  return {};
}

std::vector<array> traced(const std::vector<array>& arrays) {
  std::vector<array> tracers;
  for (const array& a : arrays) {
    tracers.push_back(make_node<Identity>(a.shape(), a.dtype(), {a}, stream_of(a)));
    tracers.back().set_tracer(true);
  }
  return tracers;
}

array placeholder(Shape shape, Dtype dtype) {
  array unknown(std::move(shape), dtype, nullptr, {});
  unknown.set_tracer(true);
  return unknown;
}

std::vector<array> pull_back(const std::vector<array>& from, const std::vector<array>& to,
                             const std::vector<array>& cotangents) {
  Tape tape(from, to, Tape::Follow::gradients);
  Values sums;
  auto add_to = [&](const array& a, const array& part) {
    auto [place, is_new] = sums.try_emplace(a.id(), part);
    if (!is_new) place->second = accumulate(place->second, part);
  };
  for (size_t i = 0; i < to.size(); ++i) {
    OnStreamOf scope(to[i]);
    if (tape.depends(to[i])) add_to(to[i], cotangents[i]);
  }
  for (size_t i = tape.calls().size(); i-- > 0;) {
    OnStreamOf scope(tape.calls()[i]);
    DifferentiatedCall call(tape.calls()[i], tape);
    std::vector<array> given;
    bool any = false;
    for (const array& output : call.outputs) {
      std::optional<array> sum = find(sums, output);
      any = any || sum.has_value();
      given.push_back(sum ? *sum : zeros_like(output, call.primitive->stream()));
    }
    if (!any) continue;
    std::vector<array> parts = call.vjp(given);
    for (size_t k = 0; k < parts.size(); ++k) {
      add_to(call.inputs[static_cast<size_t>(call.argnums[k])], parts[k]);
    }
  }
  std::vector<array> result;
  for (const array& a : from) {
    std::optional<array> sum = find(sums, a);
    result.push_back(sum ? *sum : zeros_like(a, to.empty() ? StreamOrDevice() : stream_of(to[0])));
    sums.erase(a.id());
  }
  return result;
}

std::vector<array> push_forward(const std::vector<array>& from, const std::vector<array>& tangents,
                                const std::vector<array>& to) {
  Tape tape(from, to, Tape::Follow::gradients);
  Values known;
  for (size_t i = 0; i < from.size(); ++i) {
    if (tape.depends(from[i])) known.try_emplace(from[i].id(), tangents[i]);
  }
  for (const array& node : tape.calls()) {
    OnStreamOf scope(node);
    DifferentiatedCall call(node, tape);
    std::vector<array> given;
    for (const array& input : pick(call.inputs, call.argnums)) given.push_back(*find(known, input));
    std::vector<array> results = call.jvp(given);
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      known.try_emplace(call.outputs[k].id(), results[k]);
    }
  }
  std::vector<array> result;
  for (const array& a : to) {
    std::optional<array> tangent = find(known, a);
    result.push_back(tangent ? *tangent : zeros_like(a, stream_of(a)));
  }
  return result;
}

}  // namespace holdfast::detail
