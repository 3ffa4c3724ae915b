// CustomKernel: how a kernel of the user's is encoded.
#include <utility>

#include "ops/metal_kernel.h"

namespace holdfast::fast {
namespace {

struct PreparedKernel final : Prepared {
  explicit PreparedKernel(Ref<exec::Pipeline> found) : pipeline(std::move(found)) {}
  const Ref<exec::Pipeline> pipeline;
};

void fill(Encoder& encoder, array& output, float value) {
  dispatch_dtype(output.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T converted = convert_element<T>(value);
    encoder.fill(output, &converted);
  });
}

}  // namespace

void CustomKernel::keep_shapes(const std::vector<array>& inputs,
                               const std::vector<Shape>& outputs) {
  auto traced = std::make_unique<TracedShapes>();
  for (const array& input : inputs) traced->inputs.push_back(input.shape());
  traced->outputs = outputs;
  traced_ = std::move(traced);
}

std::vector<Shape> CustomKernel::output_shapes(const std::vector<array>& inputs) {
  if (!traced_) return PreparedOp::output_shapes(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].shape() == traced_->inputs[i]) continue;
    throw std::invalid_argument(
        text("[", name_, "] grid and outputs of a kernel are numbers of the call that was traced, ",
             "with input ", i, " of shape ", traced_->inputs[i], ", got ", inputs[i].shape(),
             "; compile the function without `shapeless`"));
  }
  return traced_->outputs;
}

std::unique_ptr<const Prepared> CustomKernel::prepare(exec::Device& device,
                                                      const std::vector<array>&,
                                                      std::vector<array>&) {
  if (!device.target) throw exec::NoKernel();
  Ref<const exec::KernelRequest> request = variant_->request;
  // The host runs what the stream's device has no kernels for.
  if (&request->target() != device.target) {
    request = make_ref<exec::KernelRequest>(request->source(), request->options(), *device.target);
  }
  return std::make_unique<PreparedKernel>(exec::KernelLibrary::get().get(request));
}

void CustomKernel::encode_prepared(Encoder& encoder, const Prepared* prepared,
                                   const std::vector<array>& inputs, std::vector<array>& outputs) {
  // Never shared with an input: the body may write an output before it has read its inputs.
  for (array& output : outputs) {
    encoder.allocate(output);
    if (init_value_) fill(encoder, output, *init_value_);
  }
  std::vector<array> dense;
  if (ensure_row_contiguous_) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].flags().row_contiguous) continue;
      if (dense.empty()) dense = inputs;
      dense[i] = array(inputs[i].shape(), inputs[i].dtype(), nullptr, {});
      encode_copy(encoder, inputs[i], dense[i]);
    }
  }
  const std::vector<array>& bound = dense.empty() ? inputs : dense;

  SmallVector<KernelBinding, 16> bindings;
  SmallVector<int32_t, 8> ranks;  // bytes to be bound must stay until the dispatch
  ranks.reserve(inputs.size());
  for (const msl::SignatureSlot& slot : variant_->slots) {
    using Kind = msl::SignatureSlot::Kind;
    switch (slot.kind) {
      case Kind::input:
        bindings.push_back(KernelBinding::input(bound[slot.index]));
        break;
      case Kind::shape: {
        const Shape& shape = bound[slot.index].shape();
        bindings.push_back(KernelBinding::bytes(shape.data(), shape.size() * sizeof(ShapeElem)));
        break;
      }
      case Kind::strides: {
        const Strides& strides = bound[slot.index].strides();
        bindings.push_back(KernelBinding::bytes(strides.data(), strides.size() * sizeof(int64_t)));
        break;
      }
      case Kind::ndim:
        ranks.push_back(static_cast<int32_t>(bound[slot.index].ndim()));
        bindings.push_back(KernelBinding::bytes(&ranks.back(), sizeof(int32_t)));
        break;
      case Kind::output:
        bindings.push_back(KernelBinding::output(outputs[slot.index]));
        break;
    }
  }
  encoder.dispatch(*static_cast<const PreparedKernel*>(prepared)->pipeline,
                   {bindings.data(), bindings.size()}, {grid_[0], grid_[1], grid_[2]},
                   {threadgroup_[0], threadgroup_[1], threadgroup_[2]});
}

bool CustomKernel::is_equivalent(const Primitive& other) const {
  auto* kernel = dynamic_cast<const CustomKernel*>(&other);
  return kernel && variant_->request->has_same_key(*kernel->variant_->request) &&
         grid_ == kernel->grid_ && threadgroup_ == kernel->threadgroup_ &&
         init_value_ == kernel->init_value_ &&
         ensure_row_contiguous_ == kernel->ensure_row_contiguous_;
}

namespace {

// The values of a state one after the other.
struct StateReader {
  const std::vector<RecordedValue>& state;
  size_t at = 0;
  const RecordedValue& next() {
    if (at == state.size()) throw std::invalid_argument("expected more values in the state");
    return state[at++];
  }
  template <typename T>
  T take() {
    return value_of<T>(next());
  }
  std::vector<std::string> names() {
    std::vector<std::string> result;
    for (size_t left = take<size_t>(); left > 0; --left) result.push_back(take<std::string>());
    return result;
  }
  std::tuple<int, int, int> sizes() {
    std::vector<int> list = take<std::vector<int>>();
    if (list.size() != 3) throw std::invalid_argument("expected three sizes");
    return {list[0], list[1], list[2]};
  }
};

}  // namespace

std::optional<Record> CustomKernel::record() const {
  const msl::Signature& signature = *variant_->signature;
  Record result{recorded_as, {}};
  auto add = [&](auto value) { result.state.push_back(recorded_value(value)); };
  auto add_names = [&](const std::vector<std::string>& names) {
    add(names.size());
    for (const std::string& name : names) add(name);
  };
  auto add_sizes = [&](const Sizes& sizes) { add(std::vector<int>(sizes.begin(), sizes.end())); };
  add(signature.name);
  add_names(signature.input_names);
  add_names(signature.output_names);
  add(signature.body);
  add(signature.header);
  add(ensure_row_contiguous_);
  add(signature.atomic_outputs);
  CompileOptions options(static_cast<MathMode>(signature.math));
  options.guard = signature.guard;
  add(options.serialize());
  add_sizes(grid_);
  add_sizes(threadgroup_);
  add(init_value_);
  add(variant_->template_arguments.size());
  for (const auto& [name, argument] : variant_->template_arguments) {
    add(name);
    std::visit(add, argument);
  }
  return result;
}

std::vector<array> CustomKernel::call(const RecordedCall& call,
                                      const std::vector<RecordedValue>& state) {
  StateReader from{state};
  auto name = from.take<std::string>();
  std::vector<std::string> inputs = from.names(), outputs = from.names();
  auto body = from.take<std::string>(), header = from.take<std::string>();
  bool ensure_row_contiguous = from.take<bool>(), atomic_outputs = from.take<bool>();
  int serialized = from.take<int>();
  CompileOptions options(serialized);
  if (options.serialize() != serialized || options.math_mode > MathMode::Fast) {
    throw std::invalid_argument("expected compile options");
  }
  std::tuple<int, int, int> grid = from.sizes(), threadgroup = from.sizes();
  auto init_value = from.take<std::optional<float>>();
  std::vector<std::pair<std::string, TemplateArg>> arguments;
  for (size_t left = from.take<size_t>(); left > 0; --left) {
    auto argument = from.take<std::string>();
    const RecordedValue& value = from.next();
    if (std::holds_alternative<int>(value)) {
      arguments.emplace_back(argument, std::get<int>(value));
    } else if (std::holds_alternative<bool>(value)) {
      arguments.emplace_back(argument, std::get<bool>(value));
    } else {
      arguments.emplace_back(argument, value_of<Dtype>(value));
    }
  }
  if (from.at != state.size()) throw std::invalid_argument("expected fewer values in the state");
  CustomKernelFunction kernel = metal_kernel(name, inputs, outputs, body, header,
                                             ensure_row_contiguous, atomic_outputs, options);
  return kernel(call.inputs, call.shapes, call.dtypes, grid, threadgroup, arguments, init_value,
                false, call.stream);
}

}  // namespace holdfast::fast
