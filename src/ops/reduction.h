// The primitive of reductions over some axes.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/simd/reduce_kernels.h"
#include "ops/support.h"

namespace holdfast {

class Reduce final : public Recorded<Reduce, Single<Op>> {
 public:
  Reduce(Stream stream, cpu::ReduceOp op, std::vector<int> axes, bool keepdims)
      : Recorded(stream), op_(op), axes_(std::move(axes)), keepdims_(keepdims) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<Reduce>(stream(), op_, one_further(axes_), keepdims_);
  }
  const char* name() const override;
  static constexpr const char* recorded_as = "Reduce";
  auto members() const { return std::tie(op_, axes_, keepdims_); }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;

  cpu::ReduceOp op() const { return op_; }
  const std::vector<int>& axes() const { return axes_; }

 private:
  cpu::ReduceOp op_;
  std::vector<int> axes_;
  bool keepdims_;
};

}  // namespace holdfast
