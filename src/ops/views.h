// The primitives that change how elements are seen, not what they are. All but Reshape, View and
// Contiguous only set metadata; those three copy when no strides can express the result.
#pragma once

#include <utility>
#include <vector>

#include "ops/support.h"

namespace holdfast {

// A primitive with one input and one output that shares its memory.
class ViewOp : public Op {
 public:
  explicit ViewOp(Stream stream) : Op(stream) { traits_.is_view = true; }
};

class Transpose final : public Recorded<Transpose, Single<ViewOp>> {
 public:
  Transpose(Stream stream, std::vector<int> axes) : Recorded(stream), axes_(std::move(axes)) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "Transpose"; }
  auto members() const { return std::tie(axes_); }

 private:
  std::vector<int> axes_;
};

class Broadcast final : public Recorded<Broadcast, Single<ViewOp>> {
 public:
  explicit Broadcast(Stream stream) : Recorded(stream) { traits_.broadcasts = true; }
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  const char* name() const override { return "Broadcast"; }
  auto members() const { return std::tie(); }
};

// Drops the dimensions `axes` (sorted) of size 1.
class Squeeze final : public Recorded<Squeeze, Single<ViewOp>> {
 public:
  Squeeze(Stream stream, std::vector<int> axes) : Recorded(stream), axes_(std::move(axes)) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "Squeeze"; }
  auto members() const { return std::tie(axes_); }

 private:
  std::vector<int> axes_;
};

// Puts dimensions of size 1 at `axes` (sorted, of the result).
class ExpandDims final : public Recorded<ExpandDims, Single<ViewOp>> {
 public:
  ExpandDims(Stream stream, std::vector<int> axes) : Recorded(stream), axes_(std::move(axes)) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "ExpandDims"; }
  auto members() const { return std::tie(axes_); }

 private:
  std::vector<int> axes_;
};

// Element (i, j, …) is the input's (start + i * step, …); both normalised.
class Slice final : public Recorded<Slice, Single<ViewOp>> {
 public:
  Slice(Stream stream, Shape start, Shape steps)
      : Recorded(stream), start_(std::move(start)), steps_(std::move(steps)) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "Slice"; }
  auto members() const { return std::tie(start_, steps_); }

 private:
  Shape start_, steps_;
};

// Output k begins at starts[k] along the axis.
class Split final : public Recorded<Split, ViewOp> {
 public:
  Split(Stream stream, Shape starts, int axis)
      : Recorded(stream), starts_(std::move(starts)), axis_(axis) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "Split"; }
  auto members() const { return std::tie(starts_, axis_); }

 private:
  Shape starts_;
  int axis_;
};

// The diagonal of two axes as the last one.
class Diagonal final : public Recorded<Diagonal, Single<ViewOp>> {
 public:
  Diagonal(Stream stream, int offset, int axis1, int axis2)
      : Recorded(stream), offset_(offset), axis1_(axis1), axis2_(axis2) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "Diagonal"; }
  auto members() const { return std::tie(offset_, axis1_, axis2_); }

 private:
  int offset_, axis1_, axis2_;
};

// Any strides over a row-contiguous input.
class AsStrided final : public Recorded<AsStrided, ViewOp> {
 public:
  AsStrided(Stream stream, Shape shape, Strides strides, size_t offset)
      : Recorded(stream), shape_(std::move(shape)), strides_(std::move(strides)), offset_(offset) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  const char* name() const override { return "AsStrided"; }
  auto members() const { return std::tie(shape_, strides_, offset_); }

 private:
  Shape shape_;
  Strides strides_;
  size_t offset_;
};

// What a trace starts from.
class Identity final : public Recorded<Identity, Single<ViewOp>> {
 public:
  using Recorded::Recorded;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return "Identity"; }
  int handed_on(int) const override { return 0; }
  auto members() const { return std::tie(); }
};

class StopGradient final : public Recorded<StopGradient, ViewOp> {
 public:
  using Recorded::Recorded;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return "StopGradient"; }
  auto members() const { return std::tie(); }
};

// Output i is input i; the inputs behind them are only waited for.
class Depends final : public Recorded<Depends, ViewOp> {
 public:
  Depends(Stream stream, size_t count) : Recorded(stream), count_(count) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap_rule(const std::vector<array>& inputs,
                                                            const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    std::vector<Shape> shapes;
    for (size_t i = 0; i < count_; ++i) shapes.push_back(inputs[i].shape());
    return shapes;
  }
  const char* name() const override { return "Depends"; }
  auto members() const { return std::tie(count_); }

 private:
  size_t count_;  // of outputs
};

// The product of the dimensions `axes`, or its inverse.
double count_elements(const array& a, const std::vector<int>& axes, bool inverted);

// That number of the input, whatever its shape will be.
class NumberOfElements final : public Recorded<NumberOfElements, Op> {
 public:
  NumberOfElements(Stream stream, std::vector<int> axes, bool inverted)
      : Recorded(stream), axes_(std::move(axes)), inverted_(inverted) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::vector<Shape> output_shapes(const std::vector<array>&) override { return {Shape{}}; }
  const char* name() const override { return "NumberOfElements"; }
  auto members() const { return std::tie(axes_, inverted_); }

 private:
  std::vector<int> axes_;
  bool inverted_;
};

class Reshape final : public Recorded<Reshape, Single<Op>> {
 public:
  using Recorded::Recorded;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "Reshape"; }
  auto members() const { return std::tie(); }
};

class View final : public Recorded<View, Op> {
 public:
  using Recorded::Recorded;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "View"; }
  auto members() const { return std::tie(); }
};

class Contiguous final : public Recorded<Contiguous, Single<Op>> {
 public:
  Contiguous(Stream stream, bool allow_column_major)
      : Recorded(stream), allow_column_major_(allow_column_major) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return "Contiguous"; }
  auto members() const { return std::tie(allow_column_major_); }

 private:
  bool allow_column_major_;
};

class Copy final : public Recorded<Copy, Single<Op>> {
 public:
  using Recorded::Recorded;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return "Copy"; }
  auto members() const { return std::tie(); }
};

}  // namespace holdfast
