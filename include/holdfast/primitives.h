// The library's own primitives by name, for programs that look at a graph or build nodes of it:
//
//   typeid(a.primitive()) == typeid(Add)
//   array({2, 1}, uint32, std::make_shared<ArgReduce>(stream, ArgReduce::ArgMax, 1), {x})
//
// A node that a program builds is checked as the call of the op would be, and must be what that
// call gives: dtypes are not promoted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/op.h>

namespace holdfast {

// --- element-wise ---

namespace detail {

// Any row of elementwise.def.
class Elementwise : public FusableOp {
 public:
  void encode_group(Encoder& encoder, const FusedGroup& group) override;
  bool is_equivalent(const Primitive& other) const override;
  std::optional<Record> record() const override;
  std::vector<array> call_again(const RecordedCall& call) const override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;

 protected:
  Elementwise(Stream stream, int16_t row);
};

}  // namespace detail

// Add, Exp, Select, …: the column `Primitive` of the table.
#define UNARY(function, Name, ...)                \
  class Name final : public detail::Elementwise { \
   public:                                        \
    explicit Name(Stream stream);                 \
    const char* name() const override;            \
  };
#define BINARY UNARY
#define TERNARY UNARY
#include <holdfast/elementwise.def>

class AsType final : public detail::FusableOp {
 public:
  AsType(Stream stream, Dtype dtype);
  Dtype dtype() const { return dtype_; }

  void encode_group(Encoder& encoder, const detail::FusedGroup& group) override;
  const char* name() const override { return "AsType"; }
  bool is_equivalent(const Primitive& other) const override;
  std::optional<detail::Record> record() const override;
  std::vector<array> call_again(const detail::RecordedCall& call) const override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;

 private:
  Dtype dtype_;
};

// --- reductions ---

namespace detail {

// Over axes that are counted from the front, in order. The shape of a node says whether they stay,
// with size 1, or go; `keepdims` is for when there is none (output_shapes).
class Reduction : public Op {
 public:
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> vjp_rule(const std::vector<array>& primals,
                              const std::vector<array>& cotangents, const std::vector<int>& argnums,
                              const std::vector<array>& outputs) override;
  std::shared_ptr<Primitive> with_leading_axis() override;
  const char* name() const override;
  bool is_equivalent(const Primitive& other) const override;
  std::optional<Record> record() const override;
  std::vector<array> call_again(const RecordedCall& call) const override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;

  uint8_t op() const { return op_; }  // kernels::ReduceOp
  const std::vector<int>& axes() const { return axes_; }

 protected:
  Reduction(Stream stream, uint8_t op, std::vector<int> axes, bool keepdims);

 private:
  uint8_t op_;
  bool keepdims_;
  std::vector<int> axes_;
};

}  // namespace detail

class Reduce final : public detail::Reduction {
 public:
  enum ReduceType { And, Or, Sum, Prod, Min, Max };
  Reduce(Stream stream, ReduceType type, std::vector<int> axes, bool keepdims = true);
  std::pair<ReduceType, std::vector<int>> state() const;
};

// The index of the least or largest element, the first of several: among those of all axes.
class ArgReduce final : public detail::Reduction {
 public:
  enum ReduceType { ArgMin, ArgMax };
  ArgReduce(Stream stream, ReduceType type, int axis);
  ArgReduce(Stream stream, ReduceType type, std::vector<int> axes, bool keepdims);
  std::pair<ReduceType, int> state() const;  // the first axis, or -1
};

}  // namespace holdfast
