// A kernel of the user's as a primitive.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/fast.h>

#include "exec/kernel_library.h"
#include "msl/signature.h"
#include "ops/recorded_calls.h"
#include "ops/support.h"

namespace holdfast::fast {

// A kernel for inputs of certain dtypes and kinds, outputs of certain dtypes, and values of its
// template parameters: what is compiled once. Never changes.
struct KernelVariant : RefCounted {
  std::shared_ptr<const msl::Signature> signature;
  std::vector<std::pair<std::string, TemplateArg>> template_arguments;
  Ref<const exec::KernelRequest> request;
  std::vector<msl::SignatureSlot> slots;  // by [[buffer(n)]]
};

class CustomKernel final : public PreparedOp {
 public:
  using Sizes = std::array<uint32_t, 3>;
  // `name` must outlive the process.
  CustomKernel(Stream stream, const char* name, Ref<const KernelVariant> variant, Sizes grid,
               Sizes threadgroup, std::optional<float> init_value, bool ensure_row_contiguous)
      : PreparedOp(stream),
        name_(name),
        variant_(std::move(variant)),
        grid_(grid),
        threadgroup_(threadgroup),
        init_value_(init_value),
        ensure_row_contiguous_(ensure_row_contiguous) {}

  // In a trace for any shape: grid and outputs are numbers of this call, and right for inputs of
  // these shapes only. Before the primitive is shared.
  void keep_shapes(const std::vector<array>& inputs, const std::vector<Shape>& outputs);
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  // Compiles the kernel or finds it.
  std::unique_ptr<const Prepared> prepare(exec::Device& device, const std::vector<array>& inputs,
                                          std::vector<array>& outputs) override;
  void encode_prepared(Encoder& encoder, const Prepared* prepared, const std::vector<array>& inputs,
                       std::vector<array>& outputs) override;
  // The kernel's: errors and traces say which one it was.
  const char* name() const override { return name_; }
  bool is_equivalent(const Primitive& other) const override;
  // All that metal_kernel and the kernel were called with, and the same calls again.
  static constexpr const char* recorded_as = "CustomKernel";
  std::optional<Record> record() const override;
  std::vector<array> call_again(const RecordedCall& call) const override {
    return holdfast::call_again(*record(), call);
  }
  static std::vector<array> call(const RecordedCall& call, const std::vector<RecordedValue>& state);

 private:
  const char* name_;
  const Ref<const KernelVariant> variant_;
  const Sizes grid_, threadgroup_;
  const std::optional<float> init_value_;
  const bool ensure_row_contiguous_;
  struct TracedShapes {
    std::vector<Shape> inputs, outputs;
  };
  std::unique_ptr<const TracedShapes> traced_;
};

}  // namespace holdfast::fast
