// fast::scaled_dot_product_attention against the definition.
#include "ops/numeric_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

struct Case {
  array q, k, v;
  double scale;
  bool causal = false;
  std::optional<array> mask = {}, sinks = {};
};

std::vector<double> reference(const Case& c) {
  auto q = doubles_of(c.q), k = doubles_of(c.k), v = doubles_of(c.v);
  int batch = c.q.shape(0), heads = c.q.shape(1), rows = c.q.shape(2), features = c.q.shape(3);
  int key_heads = c.k.shape(1), keys = c.k.shape(2), value_features = c.v.shape(3);
  std::vector<double> mask, sinks, out;
  bool boolean = c.mask && c.mask->dtype() == bool_;
  if (c.mask) mask = doubles_of(broadcast_to(*c.mask, {batch, heads, rows, keys}));
  if (c.sinks) sinks = doubles_of(*c.sinks);
  const double lowest = -3.4e38;
  for (int b = 0; b < batch; ++b) {
    for (int h = 0; h < heads; ++h) {
      int key_head = b * key_heads + h / (heads / key_heads);
      for (int i = 0; i < rows; ++i) {
        int row = (b * heads + h) * rows + i;
        std::vector<double> scores;
        double largest = c.sinks ? sinks[size_t(h)] : -INFINITY, total = 0;
        for (int j = 0; j < keys; ++j) {
          double score = 0;
          for (int d = 0; d < features; ++d) {
            score +=
                q[size_t(row * features + d)] * k[size_t((key_head * keys + j) * features + d)];
          }
          score *= c.scale;
          if (boolean && mask[size_t(row * keys + j)] == 0) score = lowest;
          if (c.mask && !boolean) score += mask[size_t(row * keys + j)];
          if (c.causal && j > i + keys - rows) score = lowest;
          scores.push_back(score);
          largest = std::max(largest, score);
        }
        if (c.sinks) total += std::exp(sinks[size_t(h)] - largest);
        for (double score : scores) total += std::exp(score - largest);
        for (int d = 0; d < value_features; ++d) {
          double sum = 0;
          for (int j = 0; j < keys; ++j) {
            sum += std::exp(scores[size_t(j)] - largest) / total *
                   v[size_t((key_head * keys + j) * value_features + d)];
          }
          out.push_back(sum);
        }
      }
    }
  }
  return out;
}

void check(const Case& c) {
  CAPTURE(c.q.shape());
  CAPTURE(c.k.shape());
  CAPTURE(c.v.shape());
  array got = fast::scaled_dot_product_attention(c.q, c.k, c.v, float(c.scale),
                                                 c.causal ? "causal" : "", c.mask, c.sinks);
  CHECK(got.dtype() == c.q.dtype());
  check_close(got, {c.q.shape(0), c.q.shape(1), c.q.shape(2), c.v.shape(3)}, reference(c),
              c.q.dtype() == float32 ? 1e-5 : rounding_of(c.q.dtype()));
}

}  // namespace

TEST_CASE("attention over random shapes, layouts, masks and sinks") {
  RandomArrays random(31);
  for (Dtype dtype : taken_here({float32, bfloat16, float16, float64})) {
    CAPTURE(std::string(dtype_name(dtype)));
    for (int round = 0; round < 60; ++round) {
      int batch = random.pick(1, 2), key_heads = random.pick(1, 2);
      int heads = key_heads * random.pick(1, 5), rows = random.flip() ? 1 : random.pick(1, 40);
      int keys = random.flip() ? random.pick(1, 30) : random.pick(200, 600);
      bool even = random.flip();
      int features = even ? 32 * random.pick(1, 3) : random.pick(1, 50);
      int value_features = even ? 64 * random.pick(1, 2) : random.pick(1, 70);
      Case c{random.strided({batch, heads, rows, features}, dtype),
             random.strided({batch, key_heads, keys, features}, dtype),
             random.strided({batch, key_heads, keys, value_features}, dtype), 0.25};
      int kind = random.pick(0, 3);
      if (kind == 1) c.causal = true;
      if (kind == 2) c.mask = random.strided({rows, keys}, float32) > 0.0f;
      if (kind == 3) {
        c.mask = random.strided({random.flip() ? batch : 1, heads, random.flip() ? rows : 1, keys},
                                dtype == float32 || dtype == float64 ? float32 : dtype);
      }
      if (random.flip()) c.sinks = random.strided({heads}, dtype);
      check(c);
    }
  }
}

TEST_CASE("attention to many keys in long splits") {
  RandomArrays random(33);
  for (Dtype dtype : {float32, bfloat16}) {
    for (int keys : {4095, 4096, 4500}) {
      check({random.dense({1, 4, 1, 64}, dtype), random.dense({1, 2, keys, 64}, dtype),
             random.dense({1, 2, keys, 64}, dtype), 0.25});
    }
  }
}

TEST_CASE("a query that sees nothing takes the mean; added -infinity removes a key") {
  RandomArrays random(32);
  for (int rows : {1, 60}) {
    Case c{random.dense({1, 1, rows, 8}, float32), random.dense({1, 1, 300, 8}, float32),
           random.dense({1, 1, 300, 8}, float32), 1.0};
    c.mask = zeros({rows, 300}, bool_);
    check(c);
    std::vector<float> add(300, -INFINITY);
    add[280] = 0.5f;
    c.mask = array(add.begin(), {300});
    check(c);
    c.mask = full({300}, -INFINITY);
    array nothing = fast::scaled_dot_product_attention(c.q, c.k, c.v, 1.0f, "array", c.mask);
    CHECK(all(isnan(nothing)).item<bool>());
  }
  // More queries than keys: the first ones see nothing.
  check({random.dense({1, 2, 300, 8}, float32), random.dense({1, 1, 5, 8}, float32),
         random.dense({1, 1, 5, 8}, float32), 1.0, true});
}

TEST_CASE("dtypes, empty arrays and errors of attention") {
  auto attend = [](const array& q, const array& k, const array& v, const std::string& mode = "",
                   const std::optional<array>& mask = {}, const std::optional<array>& sinks = {}) {
    return fast::scaled_dot_product_attention(q, k, v, 1.0f, mode, mask, sinks);
  };
  array q = ones({2, 4, 3, 8}), k = ones({2, 2, 5, 8}), v = ones({2, 2, 5, 6});
  CHECK(attend(astype(q, float16), k, v).dtype() == float32);
  CHECK(attend(q, k, v, "array", ones({5})).shape() == Shape{2, 4, 3, 6});
  CHECK(values_of<float>(attend(zeros({2, 4, 0, 8}), k, v)).empty());
  check_values<float>(attend(ones({1, 1, 1, 8}), zeros({1, 1, 0, 8}), zeros({1, 1, 0, 2})),
                      {1, 1, 1, 2}, {0, 0});
  auto fails = [](const std::function<void()>& call) {
    check_error<std::invalid_argument>("scaled_dot_product_attention", call);
  };
  fails([&] { attend(ones({4, 3, 8}), k, v); });
  fails([&] { attend(q, ones({1, 2, 5, 8}), v); });
  fails([&] { attend(q, ones({2, 2, 5, 4}), v); });
  fails([&] { attend(q, k, ones({2, 2, 4, 6})); });
  fails([&] { attend(ones({2, 3, 3, 8}), k, v); });
  fails([&] { attend(ones({2, 4, 3, 8}, int32), astype(k, int32), astype(v, int32)); });
  fails([&] { attend(q, k, v, "other"); });
  fails([&] { attend(q, k, v, "array"); });
  fails([&] { attend(q, k, v, "causal", ones({5})); });
  fails([&] { attend(q, k, v, "", ones({3, 4})); });
  fails([&] { attend(q, k, v, "", ones({1, 1, 1, 3, 5})); });
  fails([&] {
    attend(astype(q, float16), astype(k, float16), astype(v, float16), "", ones({3, 5}));
  });
  fails([&] { attend(q, k, v, "", {}, ones({2})); });
}
