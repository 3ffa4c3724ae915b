// Convolutions against loops over everything.
#include "ops/numeric_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

struct Settings {
  std::vector<int> stride, low, high, dilation, input_dilation;
  int groups = 1;
  bool flip = false;
};

// Of three spatial dimensions.
std::vector<double> plain(const array& input, const array& weight, const Settings& c,
                          const Shape& out) {
  auto x = doubles_of(input), w = doubles_of(weight);
  int channels = input.shape(4), per_group = weight.shape(4), outputs = weight.shape(0);
  std::vector<double> result;
  for (int n = 0; n < out[0]; ++n) {
    for (int p = 0; p < out[1] * out[2] * out[3]; ++p) {
      int at[3] = {p / (out[2] * out[3]), p / out[3] % out[2], p % out[3]};
      for (int o = 0; o < outputs; ++o) {
        double sum = 0;
        int first = o / (outputs / c.groups) * per_group;
        for (int k = 0; k < weight.shape(1) * weight.shape(2) * weight.shape(3); ++k) {
          int tap[3] = {k / (weight.shape(2) * weight.shape(3)),
                        k / weight.shape(3) % weight.shape(2), k % weight.shape(3)};
          int source = n;
          bool inside = true;
          for (size_t d = 0; d < 3; ++d) {
            int size = input.shape(int(d) + 1);
            int turned = c.flip ? weight.shape(int(d) + 1) - 1 - tap[d] : tap[d];
            int place = at[d] * c.stride[d] - c.low[d] + turned * c.dilation[d];
            inside = inside && place >= 0 && place % c.input_dilation[d] == 0 &&
                     place / c.input_dilation[d] < size;
            source = source * size + place / c.input_dilation[d];
          }
          if (!inside) continue;
          int row = o * weight.shape(1) * weight.shape(2) * weight.shape(3) + k;
          for (int i = 0; i < per_group; ++i) {
            sum += x[size_t(source * channels + first + i)] * w[size_t(row * per_group + i)];
          }
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("conv_general over random settings, dtypes and layouts") {
  RandomArrays random(61);
  for (Dtype dtype : taken_here({float32, bfloat16, float16, float64})) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (int round = 0; round < 40; ++round) {
      Settings c;
      Shape in{random.pick(1, 2)}, kernel{0};
      c.groups = random.pick(1, 3);
      c.flip = random.flip();
      for (int d = 0; d < 3; ++d) {
        kernel.push_back(random.pick(1, 3));
        in.push_back(random.pick(4, 7));
        c.stride.push_back(random.pick(1, 2));
        c.low.push_back(random.pick(0, 2));
        c.high.push_back(random.pick(0, 2));
        c.dilation.push_back(random.pick(1, 2));
        c.input_dilation.push_back(random.pick(1, 2));
        if (in.back() < (kernel.back() - 1) * c.dilation.back() + 1) in.back() = 7;
      }
      int channels = random.pick(1, 9);
      in.push_back(channels * c.groups);
      kernel[0] = random.pick(1, 40) * c.groups;
      kernel.push_back(channels);
      if (round % 4 == 0) {  // each channel by itself: more, and fewer, than some vectors
        c.groups = random.pick(2, 150);
        in.back() = kernel[0] = c.groups;
        kernel.back() = 1;
      }
      array x = random.strided(in, dtype), w = random.strided(kernel, dtype);
      CAPTURE(in);
      CAPTURE(kernel);
      array got = conv_general(x, w, c.stride, c.low, c.high, c.dilation, c.input_dilation,
                               c.groups, c.flip);
      check_close(got, got.shape(), plain(x, w, c, got.shape()), 3 * rounding_of(dtype));
    }
  }
}

TEST_CASE("forms of convolutions, and depths of several blocks") {
  RandomArrays random(62);
  array x = random.dense({2, 9, 10, 130}, float32), w = random.dense({20, 3, 3, 130}, float32);
  array got = conv2d(x, w, {1, 2}, {1, 0});
  REQUIRE(got.shape() == Shape{2, 9, 4, 20});
  auto deep = [](const array& a) { return expand_dims(a, 1); };
  Settings c{{1, 1, 2}, {0, 1, 0}, {0, 1, 0}, {1, 1, 1}, {1, 1, 1}};
  check_close(deep(got), {2, 1, 9, 4, 20}, plain(deep(x), deep(w), c, {2, 1, 9, 4, 20}), 1e-5);
  CHECK(conv1d(ones({1, 10, 4}), ones({6, 3, 2}), 2, 1, 1, 2).shape() == Shape{1, 5, 6});
  CHECK(conv3d(ones({1, 4, 5, 6, 2}), ones({3, 2, 2, 2, 2})).shape() == Shape{1, 3, 4, 5, 3});
  // A transposed convolution is the adjoint: <conv(x), y> = <x, conv_transpose(y)>.
  array a = random.dense({1, 12, 3}, float32), k = random.dense({5, 4, 3}, float32);
  array forward = conv1d(a, k, 2, 1);
  array y = random.dense(forward.shape(), float32);
  array back = conv_transpose1d(y, transpose(k, {2, 1, 0}), 2, 1);
  REQUIRE(back.shape() == a.shape());
  CHECK(allclose(sum(forward * y), sum(a * back), 1e-4, 1e-4).item<bool>());
  CHECK(conv_transpose1d(ones({2, 5, 4}), ones({6, 3, 4}), 2, 1, 1, 1).shape() == Shape{2, 10, 6});
  CHECK(conv_transpose2d(ones({1, 5, 5, 4}), ones({6, 3, 3, 2}), {1, 1}, {0, 0}, {1, 1}, {0, 0}, 2)
            .shape() == Shape{1, 7, 7, 6});
  CHECK(conv_transpose3d(ones({1, 2, 2, 2, 1}), ones({1, 2, 2, 2, 1})).shape() ==
        Shape{1, 3, 3, 3, 1});
  CHECK(conv1d(ones({0, 10, 4}), ones({6, 3, 4})).shape() == Shape{0, 8, 6});
  check_values<float>(conv1d(ones({1, 2, 0}), ones({1, 1, 0})), {1, 2, 1}, {0, 0});
}

TEST_CASE("errors of convolutions") {
  auto fails = [](const std::function<void()>& call) {
    check_error<std::invalid_argument>("conv", call);
  };
  fails([] { conv1d(ones({1, 2, 4}), ones({3, 3, 4})); });
  fails([] { conv1d(ones({1, 5, 4}), ones({3, 3, 2})); });
  fails([] { conv1d(ones({1, 5, 4}), ones({3, 3, 2}), 1, 0, 1, 3); });
  fails([] { conv1d(ones({1, 5, 4}), ones({3, 3, 4}), 0); });
  fails([] { conv1d(ones({1, 5, 4}, int32), ones({3, 3, 4}, int32)); });
  fails([] { conv_general(ones({5, 4}), ones({3, 4}), {1}, {0}, {0}, {1}, {1}, 1, false); });
  fails(
      [] { conv_general(ones({1, 5, 4}), ones({3, 3, 4}), {1, 1}, {0}, {0}, {1}, {1}, 1, false); });
  check_error<std::invalid_argument>("conv2d", [] { conv2d(ones({1, 5, 4}), ones({3, 3, 4})); });
}
