// Primitives made of a function, for tests of the execution layer: small int32 ops whose encoding
// is in the test's hands.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/encoder.h>
#include <holdfast/primitive.h>

namespace holdfast::testing {

using Encode =
    std::function<void(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs)>;

class FunctionOp : public Primitive {
 public:
  FunctionOp(Stream stream, std::string name, Encode encode)
      : Primitive(stream), name_(std::move(name)), encode_(std::move(encode)) {}
  void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
    encode_(Encoder::of(stream()), inputs, outputs);
  }
  void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
    eval_cpu(inputs, outputs);
  }
  const char* name() const override { return name_.c_str(); }

 private:
  const std::string name_;
  const Encode encode_;
};

// A node that `encode` encodes, with one output or several of one shape. Element type int32.
inline array make_op(const std::string& name, Stream stream, std::vector<array> inputs, Shape shape,
                     Encode encode) {
  return array(std::move(shape), int32,
               std::make_shared<FunctionOp>(stream, name, std::move(encode)), std::move(inputs));
}
inline std::vector<array> make_multi_op(const std::string& name, Stream stream,
                                        const std::vector<array>& inputs, Shape shape,
                                        size_t outputs, Encode encode) {
  return array::make_arrays(std::vector<Shape>(outputs, shape), std::vector<Dtype>(outputs, int32),
                            std::make_shared<FunctionOp>(stream, name, std::move(encode)), inputs);
}

// --- parts of an encoding ---

// target[i] = source[i] * factor + summand, as one command; both bound by the caller.
inline void add_affine(Encoder& encoder, const int32_t* source, int32_t* target, size_t count,
                       int32_t factor, int32_t summand) {
  encoder.native("affine", static_cast<int64_t>(count), static_cast<int64_t>(count * 8),
                 [=](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) target[i] = source[i] * factor + summand;
                 });
}

// --- ops ---

// x * factor + summand, into memory of its own.
array affine(const array& x, int32_t factor, int32_t summand, Stream stream);
// The same, into x's memory when it can be taken over.
array affine_in_place(const array& x, int32_t factor, int32_t summand, Stream stream);
// (x * 2) + 1 through a temporary that is given up as soon as it is encoded.
array through_temporary(const array& x, Stream stream);
array add_arrays(const array& a, const array& b, Stream stream);
// {x + 1, x + 2, x + 3}.
std::vector<array> three_sums(const array& x, Stream stream);
// x + 1; `callback` runs on the device, before.
array with_callback(const array& x, std::function<void()> callback, Stream stream);
// x + 1; `hook` runs while the op is encoded, before it has bound anything.
array with_encode_hook(const array& x, std::function<void()> hook, Stream stream);
// Throws `message` after it has bound x, taken over its memory if it could, used a temporary and
// encoded a command, for as long as *failures > 0 (counting down); x * 3 afterwards.
array throwing_half_way(const array& x, std::shared_ptr<int> failures, Stream stream,
                        const std::string& message = "half-way");
// x + 1, whose command throws on the device.
array failing_on_device(const array& x, Stream stream, const std::string& message = "no luck");

// An int32 array 0, 1, 2, …
array counting(int count, int32_t first = 0);
// The elements of an array, evaluated and waited for; contiguous ones only.
std::vector<int32_t> values(array a);

}  // namespace holdfast::testing
