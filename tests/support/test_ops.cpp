#include "support/test_ops.h"

#include <numeric>
#include <stdexcept>

#include <holdfast/transforms.h>

namespace holdfast::testing {

array affine(const array& x, int32_t factor, int32_t summand, Stream stream) {
  return make_op("Affine", stream, {x}, x.shape(),
                 [=](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                   encoder.allocate(out[0]);
                   encoder.input(in[0]);
                   encoder.output(out[0]);
                   add_affine(encoder, in[0].data<int32_t>(), out[0].data<int32_t>(), in[0].size(),
                              factor, summand);
                 });
}

array affine_in_place(const array& x, int32_t factor, int32_t summand, Stream stream) {
  return make_op("AffineInPlace", stream, {x}, x.shape(),
                 [=](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                   if (in[0].is_donatable()) {
                     out[0].copy_shared_buffer(in[0]);
                   } else {
                     encoder.allocate(out[0]);
                   }
                   encoder.input(in[0]);
                   encoder.output(out[0]);
                   add_affine(encoder, in[0].data<int32_t>(), out[0].data<int32_t>(), in[0].size(),
                              factor, summand);
                 });
}

array through_temporary(const array& x, Stream stream) {
  return make_op(
      "ThroughTemporary", stream, {x}, x.shape(),
      [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
        encoder.allocate(out[0]);
        // A temporary of its own size: nothing else can stand in for it.
        array temporary(Shape{static_cast<int>(in[0].size()) + 1}, int32, nullptr, {});
        encoder.allocate(temporary);
        encoder.input(in[0]);
        encoder.output(temporary);
        add_affine(encoder, in[0].data<int32_t>(), temporary.data<int32_t>(), in[0].size(), 2, 0);
        encoder.input(temporary);
        encoder.output(out[0]);
        add_affine(encoder, temporary.data<int32_t>(), out[0].data<int32_t>(), in[0].size(), 1, 1);
      });
}

array add_arrays(const array& a, const array& b, Stream stream) {
  return make_op("AddArrays", stream, {a, b}, a.shape(),
                 [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                   encoder.allocate(out[0]);
                   encoder.input(in[0]);
                   encoder.input(in[1]);
                   encoder.output(out[0]);
                   encoder.native("add", static_cast<int64_t>(in[0].size()), 0,
                                  [x = in[0].data<int32_t>(), y = in[1].data<int32_t>(),
                                   z = out[0].data<int32_t>()](int64_t begin, int64_t end) {
                                    for (int64_t i = begin; i < end; ++i) z[i] = x[i] + y[i];
                                  });
                 });
}

std::vector<array> three_sums(const array& x, Stream stream) {
  return make_multi_op("ThreeSums", stream, {x}, x.shape(), 3,
                       [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                         for (int32_t i = 0; i < 3; ++i) {
                           array& target = out[static_cast<size_t>(i)];
                           encoder.allocate(target);
                           encoder.input(in[0]);
                           encoder.output(target);
                           add_affine(encoder, in[0].data<int32_t>(), target.data<int32_t>(),
                                      in[0].size(), 1, i + 1);
                         }
                       });
}

array with_callback(const array& x, std::function<void()> callback, Stream stream) {
  return make_op(
      "WithCallback", stream, {x}, x.shape(),
      [callback](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
        encoder.allocate(out[0]);
        encoder.input(in[0]);
        encoder.output(out[0]);
        encoder.host_callback("callback", [callback, source = in[0].data<int32_t>(),
                                           target = out[0].data<int32_t>(), count = in[0].size()] {
          callback();
          for (size_t i = 0; i < count; ++i) target[i] = source[i] + 1;
        });
      });
}

array with_encode_hook(const array& x, std::function<void()> hook, Stream stream) {
  return make_op("WithEncodeHook", stream, {x}, x.shape(),
                 [hook](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                   hook();
                   encoder.allocate(out[0]);
                   encoder.input(in[0]);
                   encoder.output(out[0]);
                   add_affine(encoder, in[0].data<int32_t>(), out[0].data<int32_t>(), in[0].size(),
                              1, 1);
                 });
}

array throwing_half_way(const array& x, std::shared_ptr<int> failures, Stream stream,
                        const std::string& message) {
  return make_op(
      "ThrowingHalfWay", stream, {x}, x.shape(),
      [failures, message](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
        if (in[0].is_donatable()) {
          out[0].copy_shared_buffer(in[0]);
        } else {
          encoder.allocate(out[0]);
        }
        array temporary(in[0].shape(), int32, nullptr, {});
        encoder.allocate(temporary);
        encoder.input(in[0]);
        encoder.output(temporary);
        add_affine(encoder, in[0].data<int32_t>(), temporary.data<int32_t>(), in[0].size(), 2, 0);
        encoder.input(temporary);
        encoder.input(in[0]);
        encoder.output(out[0]);
        if (*failures > 0) {
          --*failures;
          // A command that would ruin the input if it ran.
          encoder.native("ruin", 1, 0,
                         [target = out[0].data<int32_t>()](int64_t, int64_t) { target[0] = -1; });
          throw std::runtime_error(message);
        }
        encoder.native("add", static_cast<int64_t>(in[0].size()), 0,
                       [a = in[0].data<int32_t>(), b = temporary.data<int32_t>(),
                        c = out[0].data<int32_t>()](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) c[i] = a[i] + b[i];
                       });
      });
}

array failing_on_device(const array& x, Stream stream, const std::string& message) {
  return make_op(
      "FailingOnDevice", stream, {x}, x.shape(),
      [message](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
        encoder.allocate(out[0]);
        encoder.input(in[0]);
        encoder.output(out[0]);
        encoder.host_callback("fail", [message] { throw std::runtime_error(message); });
      });
}

array counting(int count, int32_t first) {
  std::vector<int32_t> elements(static_cast<size_t>(count));
  std::iota(elements.begin(), elements.end(), first);
  return array(elements.begin(), Shape{count}, int32);
}

std::vector<int32_t> values(array a) {
  a.eval();
  const int32_t* data = a.data<int32_t>();
  return std::vector<int32_t>(data, data + a.size());
}

}  // namespace holdfast::testing
