// The primitives that pick slices by index arrays, and that put slices there.
#pragma once

#include <utility>
#include <vector>

#include "kernels/plan/update.h"
#include "ops/accumulate.h"
#include "ops/support.h"

namespace holdfast {

using kernels::UpdateMode;

// Inputs: the array, the indices. out[place] is the slice at the place's indices.
class GatherGeneral final : public Recorded<GatherGeneral, Op> {
 public:
  GatherGeneral(Stream stream, std::vector<int> axes, Shape slice_sizes)
      : Recorded(stream), axes_(std::move(axes)), slice_sizes_(std::move(slice_sizes)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "Gather"; }
  auto members() const { return std::tie(axes_, slice_sizes_); }

 private:
  std::vector<int> axes_;
  Shape slice_sizes_;
};

// Inputs: the array, the updates, the indices.
class Scatter final : public Recorded<Scatter, Op>, public PartialUpdate {
 public:
  Scatter(Stream stream, UpdateMode mode, std::vector<int> axes)
      : Recorded(stream), mode_(mode), axes_(std::move(axes)) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  std::shared_ptr<Primitive> as_addition() override {
    if (mode_ != UpdateMode::add) return nullptr;
    return std::make_shared<Scatter>(stream(), mode_, axes_);
  }
  const char* name() const override { return "Scatter"; }
  auto members() const { return std::tie(mode_, axes_); }

 private:
  UpdateMode mode_;
  std::vector<int> axes_;
};

// out[i, indices[i, j, k], k] is combined with values[i, j, k], in the order of j.
// Inputs: the array, the indices, the values.
class ScatterAxis final : public Recorded<ScatterAxis, Op>, public PartialUpdate {
 public:
  ScatterAxis(Stream stream, UpdateMode mode, int axis)
      : Recorded(stream), mode_(mode), axis_(axis) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<ScatterAxis>(stream(), mode_, axis_ + 1);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    const Shape& shape = inputs[0].shape();
    Shape expected = shape;
    expected[static_cast<size_t>(axis_)] = inputs[1].shape(axis_);
    if (inputs[1].shape() != expected || inputs[2].shape() != expected) {
      throw std::invalid_argument(text("[scatter along an axis] expected indices and values of ",
                                       "shape ", expected, ", got ", inputs[1].shape(), " and ",
                                       inputs[2].shape()));
    }
    return {shape};
  }
  std::shared_ptr<Primitive> as_addition() override {
    if (mode_ != UpdateMode::add) return nullptr;
    return std::make_shared<ScatterAxis>(stream(), mode_, axis_);
  }
  const char* name() const override { return "ScatterAxis"; }
  auto members() const { return std::tie(mode_, axis_); }

 private:
  UpdateMode mode_;
  int axis_;
};

}  // namespace holdfast
