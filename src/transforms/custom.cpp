// Functions with rules of their own: one primitive that hands outputs on and knows the rules.
#include <algorithm>
#include <stdexcept>

#include <holdfast/primitive.h>
#include <holdfast/transforms.h>
#include <holdfast/transforms_impl.h>

#include "ops/support.h"
#include "ops/views.h"
#include "transforms/differentiate.h"

namespace holdfast {

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

struct Rules {
  Function fun;
  std::optional<std::function<Arrays(const Arrays&, const Arrays&, const Arrays&)>> vjp;
  std::optional<std::function<Arrays(const Arrays&, const Arrays&, const std::vector<int>&)>> jvp;
  std::optional<
      std::function<std::pair<Arrays, std::vector<int>>(const Arrays&, const std::vector<int>&)>>
      vmap;
};

// Inputs: the function's arguments, then what it returned for them, which are the outputs.
class CustomTransforms final : public ViewOp {
 public:
  CustomTransforms(Stream stream, Rules rules, size_t arguments)
      : ViewOp(stream), rules_(std::move(rules)), arguments_(arguments) {}
  const char* name() const override { return "CustomTransforms"; }
  std::vector<Shape> output_shapes(const Arrays& inputs) override {
    std::vector<Shape> shapes;
    for (size_t i = arguments_; i < inputs.size(); ++i) shapes.push_back(inputs[i].shape());
    return shapes;
  }
  int handed_on(int output) const override { return static_cast<int>(arguments_) + output; }
  void encode(Encoder&, const Arrays& inputs, Arrays& outputs) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].copy_shared_buffer(inputs[arguments_ + i]);
    }
  }

  void check(const Arrays& inputs, std::span<const Shape> shapes,
             std::span<const Dtype> dtypes) override {
    bool fits = inputs.size() == arguments_ + shapes.size();
    for (size_t i = 0; fits && i < shapes.size(); ++i) {
      const array& result = inputs[arguments_ + i];
      fits = result.shape() == shapes[i] && result.dtype() == dtypes[i];
    }
    if (fits) return;
    throw std::invalid_argument(text("[array] a node of ", name(), ": expected ", arguments_,
                                     " arguments and the outputs as inputs, got ", inputs.size(),
                                     " inputs for ", shapes.size(), " outputs"));
  }

  // The function returned its results for arguments without gradient: if they depend on something
  // all the same, the function has captured it, and it gets its cotangent through them.
  Arrays vjp_rule(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums,
                  const Arrays& outputs) override {
    Arrays arguments = arguments_of(primals), all, result;
    auto is_argument = [&](int argnum) { return static_cast<size_t>(argnum) < arguments_; };
    if (std::any_of(argnums.begin(), argnums.end(), is_argument)) {
      all = rules_.vjp ? (*rules_.vjp)(arguments, cotangents, outputs)
                       : holdfast::vjp(rules_.fun, arguments, cotangents).second;
      check_count("fun_vjp", all.size(), arguments.size());
    }
    for (int argnum : argnums) {
      size_t i = static_cast<size_t>(argnum);
      result.push_back(is_argument(argnum) ? all[i] : cotangents[i - arguments_]);
    }
    return result;
  }

  Arrays jvp(const Arrays& primals, const Arrays& tangents,
             const std::vector<int>& argnums) override {
    Arrays arguments = arguments_of(primals), given, result;
    int before = -1;
    for (int argnum : argnums) {
      if (argnum <= before || argnum >= static_cast<int>(primals.size()) ||
          tangents.size() != argnums.size()) {
        throw std::invalid_argument(text("[custom_function] expected numbers of ", primals.size(),
                                         " inputs, in order, and a tangent for each, got ", argnums,
                                         " and ", tangents.size(), " tangents"));
      }
      before = argnum;
    }
    std::vector<int> named;
    for (size_t k = 0; k < argnums.size() && static_cast<size_t>(argnums[k]) < arguments_; ++k) {
      named.push_back(argnums[k]);
      given.push_back(tangents[k]);
    }
    if (named.empty()) {
      for (size_t i = arguments_; i < primals.size(); ++i) {
        result.push_back(zeros_like(primals[i], stream()));
      }
    } else if (rules_.jvp) {
      result = (*rules_.jvp)(arguments, given, named);
      check_count("fun_jvp", result.size(), primals.size() - arguments_);
    } else {
      Arrays all;
      for (const array& argument : arguments) all.push_back(zeros_like(argument, stream()));
      for (size_t k = 0; k < named.size(); ++k) all[static_cast<size_t>(named[k])] = given[k];
      result = holdfast::jvp(rules_.fun, arguments, all).second;
    }
    for (size_t k = named.size(); k < argnums.size(); ++k) {
      array& sum = result[static_cast<size_t>(argnums[k]) - arguments_];
      sum = add(sum, tangents[k], stream());
    }
    return result;
  }

  bool has_vmap_rule() const override { return true; }
  std::pair<Arrays, std::vector<int>> vmap_rule(const Arrays& inputs,
                                                const std::vector<int>& axes) override;

 private:
  Arrays arguments_of(const Arrays& inputs) const {
    if (inputs.size() < arguments_) {
      throw std::invalid_argument(
          text("[custom_function] expected ", arguments_, " inputs or more, got ", inputs.size()));
    }
    return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(arguments_)};
  }
  static void check_count(const char* rule, size_t got, size_t expected) {
    if (got == expected) return;
    throw std::invalid_argument(
        text("[custom_function] expected ", expected, " arrays from ", rule, ", got ", got));
  }

  Rules rules_;
  size_t arguments_;
};

// The outputs of a call that gave `results`.
Arrays outputs_of(const Rules& rules, const Arrays& arguments, const Arrays& results) {
  Arrays inputs = arguments;
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  for (const array& result : results) {
    shapes.push_back(result.shape());
    dtypes.push_back(result.dtype());
    inputs.push_back(result);
  }
  return detail::make_all_checked(
      std::move(shapes), dtypes,
      std::make_shared<CustomTransforms>(
          to_stream(results.empty() ? StreamOrDevice() : detail::stream_of(results[0])), rules,
          arguments.size()),
      inputs);
}

// The rules of the mapped function: each rule, mapped.
Rules mapped_rules(const Rules& rules, const std::vector<int>& axes) {
  Rules result;
  result.fun = [fun = rules.fun, axes](const Arrays& arguments) {
    return vmap(fun, axes, {})(arguments);
  };
  if (rules.vjp) {
    result.vjp = [rule = *rules.vjp, axes](const Arrays& primals, const Arrays& cotangents,
                                           const Arrays& outputs) {
      size_t count = primals.size(), results = outputs.size();
      Arrays all = primals;
      std::vector<int> in_axes = axes;
      for (const Arrays* list : {&cotangents, &outputs}) {
        all.insert(all.end(), list->begin(), list->end());
        in_axes.insert(in_axes.end(), list->size(), 0);
      }
      Function flat = [&](const Arrays& given) {
        auto at = [&](size_t i) { return given.begin() + static_cast<std::ptrdiff_t>(i); };
        return rule(Arrays(at(0), at(count)), Arrays(at(count), at(count + results)),
                    Arrays(at(count + results), given.end()));
      };
      Arrays gradients = vmap(flat, in_axes, {})(all);
      for (size_t i = 0; i < gradients.size() && i < count; ++i) {
        gradients[i] = axes[i] < 0 ? sum(gradients[i], 0) : moveaxis(gradients[i], 0, axes[i]);
      }
      return gradients;
    };
  }
  if (rules.jvp) {
    result.jvp = [rule = *rules.jvp, axes](const Arrays& primals, const Arrays& tangents,
                                           const std::vector<int>& argnums) {
      Arrays all = primals;
      std::vector<int> in_axes = axes;
      all.insert(all.end(), tangents.begin(), tangents.end());
      for (int argnum : argnums) in_axes.push_back(axes[static_cast<size_t>(argnum)]);
      Function flat = [&](const Arrays& given) {
        auto middle = given.begin() + static_cast<std::ptrdiff_t>(primals.size());
        return rule(Arrays(given.begin(), middle), Arrays(middle, given.end()), argnums);
      };
      return vmap(flat, in_axes, {})(all);
    };
  }
  return result;
}

std::pair<Arrays, std::vector<int>> CustomTransforms::vmap_rule(const Arrays& inputs,
                                                                const std::vector<int>& axes) {
  Arrays arguments = arguments_of(inputs);
  std::vector<int> given(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(arguments_));
  if (rules_.vmap) {
    auto result = (*rules_.vmap)(arguments, given);
    check_count("fun_vmap", result.first.size(), inputs.size() - arguments_);
    check_count("fun_vmap (axes)", result.second.size(), result.first.size());
    return result;
  }
  // What the function returned has been mapped already.
  int size = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (axes[i] >= 0) size = inputs[i].shape(axes[i]);
  }
  Arrays results;
  for (size_t i = arguments_; i < inputs.size(); ++i) {
    results.push_back(with_mapped_axis(inputs[i], axes[i], size, stream()));
  }
  Arrays outputs = outputs_of(mapped_rules(rules_, given), arguments, results);
  return {outputs, std::vector<int>(outputs.size(), 0)};
}

}  // namespace

Function custom_function(
    Function fun,
    std::optional<std::function<Arrays(const Arrays&, const Arrays&, const Arrays&)>> fun_vjp,
    std::optional<std::function<Arrays(const Arrays&, const Arrays&, const std::vector<int>&)>>
        fun_jvp,
    std::optional<
        std::function<std::pair<Arrays, std::vector<int>>(const Arrays&, const std::vector<int>&)>>
        fun_vmap) {
  return [rules = Rules{std::move(fun), std::move(fun_vjp), std::move(fun_jvp),
                        std::move(fun_vmap)}](const Arrays& arguments) {
    // A file has no rules: it has what they are rules of.
    if (detail::is_export_innermost()) return rules.fun(arguments);
    Arrays stopped;
    for (const array& argument : arguments) stopped.push_back(stop_gradient(argument));
    return outputs_of(rules, arguments, rules.fun(stopped));
  };
}

Function custom_vjp(Function fun,
                    std::function<Arrays(const Arrays&, const Arrays&, const Arrays&)> fun_vjp) {
  return custom_function(std::move(fun), std::move(fun_vjp));
}

Function checkpoint(Function fun) {
  // Not before the cotangents are there: until then nothing of it would be needed.
  auto again = [fun](const Arrays& primals, const Arrays& cotangents, const Arrays&) {
    return vjp(fun, depends(primals, cotangents), cotangents).second;
  };
  return custom_vjp(std::move(fun), again);
}

}  // namespace holdfast
