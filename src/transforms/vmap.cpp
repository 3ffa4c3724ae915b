// vmap: the function is traced without the axis, and its graph built again with it.
#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include <holdfast/primitive.h>
#include <holdfast/transforms.h>

#include <holdfast/transforms_impl.h>
#include "ops/support.h"
#include "transforms/differentiate.h"
#include "transforms/tape.h"

namespace holdfast {

namespace {

// Arrays, and where each has the mapped axis (-1: nowhere).
struct Mapped {
  std::vector<array> values;
  std::vector<int> axes;

  void push_back(const array& value, int axis) {
    values.push_back(value);
    axes.push_back(axis);
  }
};

Shape with_axis(const Shape& shape, int axis, int size) {
  Shape result = shape;
  result.insert(result.begin() + axis, size);
  return result;
}

class Mapper {
 public:
  explicit Mapper(int size) : size_(size) {}

  // What `to` is when `from`, from which it was computed, is replaced by `mapped`.
  Mapped replay(const std::vector<array>& from, const Mapped& mapped,
                const std::vector<array>& to) {
    detail::Tape tape(from, to, detail::Tape::Follow::all);
    std::unordered_map<std::uintptr_t, std::pair<array, int>> known;
    for (size_t i = 0; i < from.size(); ++i) {
      known.insert_or_assign(from[i].id(), std::pair{mapped.values[i], mapped.axes[i]});
    }
    auto mapped_of = [&](const std::vector<array>& arrays) {
      Mapped result;
      for (const array& a : arrays) {
        auto found = known.find(a.id());
        found == known.end() ? result.push_back(a, -1)
                             : result.push_back(found->second.first, found->second.second);
      }
      return result;
    };
    std::vector<array> alive;  // so that no other node gets the address of one that is known
    for (const array& call : tape.calls()) {
      std::vector<array> outputs = call.outputs();
      detail::OnStreamOf scope(call);
      Mapped results = map_call(call, outputs, mapped_of(call.inputs()));
      for (size_t k = 0; k < outputs.size(); ++k) {
        known.insert_or_assign(outputs[k].id(), std::pair{results.values[k], results.axes[k]});
        alive.push_back(outputs[k]);
      }
    }
    return mapped_of(to);
  }

 private:
  Mapped map_call(const array& call, const std::vector<array>& outputs, const Mapped& inputs) {
    Primitive& primitive = call.primitive();
    if (std::all_of(inputs.axes.begin(), inputs.axes.end(), [](int axis) { return axis < 0; })) {
      return {make(outputs, call.primitive_ptr(), inputs.values, std::nullopt),
              std::vector<int>(outputs.size(), -1)};
    }
    Mapped result;
    std::tie(result.values, result.axes) =
        primitive.traits().is_of_library
            ? static_cast<detail::Op&>(primitive).vmap_rule(inputs.values, inputs.axes)
            : primitive.vmap(inputs.values, inputs.axes);
    if (!result.values.empty()) {
      if (result.values.size() == outputs.size() && result.axes.size() == outputs.size())
        return result;
      throw std::logic_error(text("[vmap] expected ", outputs.size(), " arrays and axes from the ",
                                  "rule of ", primitive.name(), ", got ", result.values.size(),
                                  " and ", result.axes.size()));
    }
    if (primitive.traits().broadcasts) return broadcast(call, outputs, inputs);
    if (std::shared_ptr<Primitive> wider = primitive.with_leading_axis()) {
      return lead(wider, outputs, inputs);
    }
    std::vector<array> composed = primitive.decomposed(call.inputs());
    if (!composed.empty()) return replay_composed(call.inputs(), inputs, composed);
    return loop(call, outputs, inputs);
  }

  // Outputs like these, with the mapped axis in front.
  std::vector<array> make(const std::vector<array>& outputs,
                          const std::shared_ptr<Primitive>& primitive,
                          const std::vector<array>& inputs, std::optional<int> size) {
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
    for (const array& output : outputs) {
      shapes.push_back(size ? with_axis(output.shape(), 0, *size) : output.shape());
      dtypes.push_back(output.dtype());
    }
    return detail::make_all_checked(std::move(shapes), dtypes, primitive, inputs);
  }

  Mapped in_front(std::vector<array> values) {
    std::vector<int> axes(values.size(), 0);
    return {std::move(values), std::move(axes)};
  }

  Mapped broadcast(const array& call, const std::vector<array>& outputs, const Mapped& inputs) {
    Stream s = call.primitive().stream();
    std::vector<array> values = inputs.values;
    for (size_t i = 0; i < values.size(); ++i) {
      if (inputs.axes[i] < 0) continue;
      array front = moveaxis(values[i], inputs.axes[i], 0, s);
      std::vector<int> added(call.ndim() + 1 - front.ndim());
      std::iota(added.begin(), added.end(), 1);
      values[i] = added.empty() ? front : expand_dims(front, added, s);
    }
    return in_front(make(outputs, call.primitive_ptr(), values, size_));
  }

  Mapped lead(const std::shared_ptr<Primitive>& wider, const std::vector<array>& outputs,
              const Mapped& inputs) {
    std::vector<array> values;
    for (size_t i = 0; i < inputs.values.size(); ++i) {
      values.push_back(with_mapped_axis(inputs.values[i], inputs.axes[i], size_, wider->stream()));
    }
    return in_front(make(outputs, wider, values, size_));
  }

  Mapped replay_composed(const std::vector<array>& traced, const Mapped& inputs,
                         const std::vector<array>& composed) {
    std::vector<array> from;
    Mapped mapped;
    for (size_t i = 0; i < traced.size(); ++i) {
      if (inputs.values[i].id() == traced[i].id()) continue;  // does not depend on the arguments
      from.push_back(traced[i]);
      mapped.push_back(inputs.values[i], inputs.axes[i]);
    }
    return replay(from, mapped, composed);
  }

  // What always works: one call after the other.
  Mapped loop(const array& call, const std::vector<array>& outputs, const Mapped& inputs) {
    Stream s = call.primitive().stream();
    std::vector<std::vector<array>> rows(outputs.size());
    for (int i = 0; i < size_; ++i) {
      std::vector<array> row;
      for (size_t k = 0; k < inputs.values.size(); ++k) {
        const array& value = inputs.values[k];
        row.push_back(inputs.axes[k] < 0 ? value : take(value, i, inputs.axes[k], s));
      }
      std::vector<array> results = make(outputs, call.primitive_ptr(), row, std::nullopt);
      for (size_t k = 0; k < results.size(); ++k) rows[k].push_back(results[k]);
    }
    std::vector<array> values;
    for (size_t k = 0; k < outputs.size(); ++k) {
      values.push_back(size_ == 0
                           ? zeros(with_axis(outputs[k].shape(), 0, 0), outputs[k].dtype(), s)
                           : stack(rows[k], 0, s));
    }
    return in_front(std::move(values));
  }

  int size_;
};

std::vector<int> one_for_each(const char* what, const std::vector<int>& axes, size_t count) {
  if (axes.empty()) return std::vector<int>(count, 0);
  if (axes.size() != count) {
    throw std::invalid_argument(
        text("[vmap] expected ", count, " ", what, ", one for each array, got ", axes.size()));
  }
  return axes;
}

// How long the mapped axis is.
int mapped_size(const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::optional<int> size;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (axes[i] == -1) continue;
    if (axes[i] < 0 || axes[i] >= static_cast<int>(inputs[i].ndim())) {
      throw std::out_of_range(text("[vmap] axis ", axes[i], " is out of range for input ", i,
                                   " of shape ", inputs[i].shape()));
    }
    int length = inputs[i].shape(axes[i]);
    if (size && *size != length) {
      throw std::invalid_argument(
          text("[vmap] the mapped axes must have one size, got ", *size, " and ", length));
    }
    size = length;
  }
  if (!size) throw std::invalid_argument("[vmap] expected an input with a mapped axis, got none");
  return *size;
}

}  // namespace

namespace detail {

std::pair<std::vector<array>, std::vector<array>> vmap_trace(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& inputs, const std::vector<int>& in_axes) {
  std::vector<int> axes = one_for_each("in_axes", in_axes, inputs.size());
  mapped_size(inputs, axes);
  InTracing tracing;
  std::vector<array> arguments = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (axes[i] < 0) continue;
    Shape shape = inputs[i].shape();
    shape.erase(shape.begin() + axes[i]);
    arguments[i] = placeholder(std::move(shape), inputs[i].dtype());
  }
  std::vector<array> outputs = fun(arguments);
  return {std::move(arguments), std::move(outputs)};
}

std::vector<array> vmap_replace(const std::vector<array>& inputs,
                                const std::vector<array>& s_inputs,
                                const std::vector<array>& s_outputs,
                                const std::vector<int>& in_axes, const std::vector<int>& out_axes) {
  std::vector<int> axes = one_for_each("in_axes", in_axes, inputs.size());
  int size = mapped_size(inputs, axes);
  if (s_inputs.size() != inputs.size()) {
    throw std::invalid_argument(
        text("[vmap_replace] expected ", inputs.size(), " traced inputs, got ", s_inputs.size()));
  }
  InTracing tracing;
  std::vector<array> from;
  Mapped mapped;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (axes[i] < 0) continue;
    from.push_back(s_inputs[i]);
    mapped.push_back(inputs[i], axes[i]);
  }
  Mapped results = Mapper(size).replay(from, mapped, s_outputs);
  std::vector<int> targets = one_for_each("out_axes", out_axes, results.values.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    array& value = results.values[i];
    int ndim = static_cast<int>(value.ndim()) + (results.axes[i] < 0);
    // Nowhere: only what is the same for all calls can be there; in front, as MLX puts it.
    if (targets[i] == -1 && results.axes[i] < 0) targets[i] = 0;
    if (targets[i] == -1) {
      throw std::invalid_argument(
          text("[vmap] output ", i, " depends on a mapped input and needs an axis, got -1"));
    }
    if (targets[i] < 0 || targets[i] >= ndim) {
      throw std::out_of_range(text("[vmap] output axis ", targets[i],
                                   " is out of range for output ", i, " with ", ndim,
                                   " dimensions"));
    }
    StreamOrDevice s = stream_of(value);
    value = moveaxis(with_mapped_axis(value, results.axes[i], size, s), 0, targets[i], s);
  }
  return results.values;
}

}  // namespace detail

std::function<std::vector<array>(const std::vector<array>&)> vmap(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<int>& in_axes, const std::vector<int>& out_axes) {
  for (const std::vector<int>* axes : {&in_axes, &out_axes}) {
    for (int axis : *axes) {
      if (axis >= -1) continue;
      throw std::invalid_argument(
          text("[vmap] axes count from the front, and -1 is not mapped; got ", *axes));
    }
  }
  return [fun, in_axes, out_axes](const std::vector<array>& inputs) {
    auto [s_inputs, s_outputs] = detail::vmap_trace(fun, inputs, in_axes);
    return detail::vmap_replace(inputs, s_inputs, s_outputs, in_axes, out_axes);
  };
}

std::function<array(const array&)> vmap(const std::function<array(const array&)>& fun, int in_axis,
                                        int out_axis) {
  auto list = [fun](const std::vector<array>& in) { return std::vector<array>{fun(in[0])}; };
  std::function<std::vector<array>(const std::vector<array>&)> of_lists = list;
  return
      [mapped = vmap(of_lists, {in_axis}, {out_axis})](const array& a) { return mapped({a})[0]; };
}

std::function<array(const array&, const array&)> vmap(
    const std::function<array(const array&, const array&)>& fun, int in_axis_a, int in_axis_b,
    int out_axis) {
  auto list = [fun](const std::vector<array>& in) { return std::vector<array>{fun(in[0], in[1])}; };
  std::function<std::vector<array>(const std::vector<array>&)> of_lists = list;
  return [mapped = vmap(of_lists, {in_axis_a, in_axis_b}, {out_axis})](
             const array& a, const array& b) { return mapped({a, b})[0]; };
}

}  // namespace holdfast
