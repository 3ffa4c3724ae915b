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

class Transpose final : public Single<ViewOp> {
 public:
  Transpose(Stream stream, std::vector<int> axes) : Single(stream), axes_(std::move(axes)) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "Transpose"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  std::vector<int> axes_;
};

class Broadcast final : public Single<ViewOp> {
 public:
  explicit Broadcast(Stream stream) : Single(stream) { traits_.broadcasts = true; }
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  const char* name() const override { return "Broadcast"; }
};

// Drops the dimensions `axes` (sorted) of size 1.
class Squeeze final : public Single<ViewOp> {
 public:
  Squeeze(Stream stream, std::vector<int> axes) : Single(stream), axes_(std::move(axes)) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "Squeeze"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  std::vector<int> axes_;
};

// Puts dimensions of size 1 at `axes` (sorted, of the result).
class ExpandDims final : public Single<ViewOp> {
 public:
  ExpandDims(Stream stream, std::vector<int> axes) : Single(stream), axes_(std::move(axes)) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  const char* name() const override { return "ExpandDims"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  std::vector<int> axes_;
};

// Element (i, j, …) is the input's (start + i * step, …); both normalised.
class Slice final : public Single<ViewOp> {
 public:
  Slice(Stream stream, Shape start, Shape steps)
      : Single(stream), start_(std::move(start)), steps_(std::move(steps)) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "Slice"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  Shape start_, steps_;
};

// Output k begins at starts[k] along the axis.
class Split final : public ViewOp {
 public:
  Split(Stream stream, Shape starts, int axis)
      : ViewOp(stream), starts_(std::move(starts)), axis_(axis) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums,
                         const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "Split"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  Shape starts_;
  int axis_;
};

// The diagonal of two axes as the last one.
class Diagonal final : public Single<ViewOp> {
 public:
  Diagonal(Stream stream, int offset, int axis1, int axis2)
      : Single(stream), offset_(offset), axis1_(axis1), axis2_(axis2) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "Diagonal"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  int offset_, axis1_, axis2_;
};

// Any strides over a row-contiguous input.
class AsStrided final : public ViewOp {
 public:
  AsStrided(Stream stream, Shape shape, Strides strides, size_t offset)
      : ViewOp(stream), shape_(std::move(shape)), strides_(std::move(strides)), offset_(offset) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  const char* name() const override { return "AsStrided"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  Shape shape_;
  Strides strides_;
  size_t offset_;
};

// What a trace starts from.
class Identity final : public Single<ViewOp> {
 public:
  using Single::Single;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return "Identity"; }
  bool is_equivalent(const Primitive&) const override { return true; }
};

class StopGradient final : public ViewOp {
 public:
  using ViewOp::ViewOp;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return "StopGradient"; }
  bool is_equivalent(const Primitive&) const override { return true; }
};

// Output i is input i; the inputs behind them are only waited for.
class Depends final : public ViewOp {
 public:
  Depends(Stream stream, size_t count) : ViewOp(stream), count_(count) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::vector<array> vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                         const std::vector<int>& argnums,
                         const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap(const std::vector<array>& inputs,
                                                       const std::vector<int>& axes) override;
  const char* name() const override { return "Depends"; }

 private:
  size_t count_;  // of outputs
};

// The product of the dimensions `axes`, or its inverse.
double count_elements(const array& a, const std::vector<int>& axes, bool inverted);

// That number of the input, whatever its shape will be.
class NumberOfElements final : public Op {
 public:
  NumberOfElements(Stream stream, std::vector<int> axes, bool inverted)
      : Op(stream), axes_(std::move(axes)), inverted_(inverted) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::vector<Shape> output_shapes(const std::vector<array>&) override { return {Shape{}}; }
  const char* name() const override { return "NumberOfElements"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  std::vector<int> axes_;
  bool inverted_;
};

class Reshape final : public Single<Op> {
 public:
  using Single::Single;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "Reshape"; }
};

class View final : public Op {
 public:
  using Op::Op;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override { return "View"; }
};

class Contiguous final : public Single<Op> {
 public:
  Contiguous(Stream stream, bool allow_column_major)
      : Single(stream), allow_column_major_(allow_column_major) {}
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return "Contiguous"; }
  bool is_equivalent(const Primitive& other) const override;

 private:
  bool allow_column_major_;
};

class Copy final : public Single<Op> {
 public:
  using Single::Single;
  void encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) override;
  array pull_back(const array& input, const array& cotangent, const array& output) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }
  const char* name() const override { return "Copy"; }
  bool is_equivalent(const Primitive&) const override { return true; }
};

}  // namespace holdfast
