// CustomKernel: how a kernel of the user's is encoded.
#include <utility>

#include "ops/metal_kernel.h"

namespace holdfast::fast {
namespace {

// The pipeline on its way from `prepare` to `encode`, which follows on the same thread. The
// primitive cannot carry it: several nodes may share it, on several threads.
struct Prepared {
  const KernelVariant* variant = nullptr;
  Ref<exec::Pipeline> pipeline;
};
thread_local Prepared prepared;

void fill(Encoder& encoder, array& output, float value) {
  dispatch_dtype(output.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T converted = convert_element<T>(value);
    encoder.fill(output, &converted);
  });
}

}  // namespace

void CustomKernel::prepare() {
  prepared.variant = variant_.get();
  prepared.pipeline = exec::KernelLibrary::get().get(variant_->request);
}

void CustomKernel::encode(Encoder& encoder, const std::vector<array>& inputs,
                          std::vector<array>& outputs) {
  Prepared found = std::exchange(prepared, {});
  if (found.variant != variant_.get()) {
    found.pipeline = exec::KernelLibrary::get().get(variant_->request);
  }

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
      encode_copy(encoder, name_, inputs[i], dense[i]);
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
  encoder.dispatch(*found.pipeline, {bindings.data(), bindings.size()},
                   {grid_[0], grid_[1], grid_[2]},
                   {threadgroup_[0], threadgroup_[1], threadgroup_[2]});
}

bool CustomKernel::is_equivalent(const Primitive& other) const {
  auto* kernel = dynamic_cast<const CustomKernel*>(&other);
  return kernel && variant_->request->has_same_key(*kernel->variant_->request) &&
         grid_ == kernel->grid_ && threadgroup_ == kernel->threadgroup_ &&
         init_value_ == kernel->init_value_ &&
         ensure_row_contiguous_ == kernel->ensure_row_contiguous_;
}

}  // namespace holdfast::fast
