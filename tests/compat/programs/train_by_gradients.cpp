// Trains a network of two hidden layers with value_and_grad, and compares what transforms return
// with what is known by hand.
#include <cmath>

#include "mlx/mlx.h"

#include "check.h"

namespace mx = mlx::core;

mx::array network(const std::vector<mx::array>& p, const mx::array& x) {
  mx::array h = mx::tanh(mx::addmm(p[1], x, p[0]));
  h = mx::fast::layer_norm(mx::matmul(h, p[2]) + p[3], std::nullopt, std::nullopt, 1e-5f);
  return mx::addmm(p[5], mx::maximum(h, mx::array(0.0f)), p[4]);
}

// Cross entropy with classes 0 and 1.
mx::array loss_of(const mx::array& logits, const mx::array& labels) {
  mx::array picked = mx::take_along_axis(logits, labels, -1);
  return mx::mean(mx::logsumexp(logits, -1, true) - picked);
}

int main() {
  int points = 128, hidden = 24;
  mx::random::seed(7);
  mx::array radius = mx::random::uniform({points, 1});
  mx::array labels = mx::astype(mx::random::bernoulli(mx::array(0.5f), {points, 1}), mx::int32);
  mx::array angle = radius * 4.0f + mx::astype(labels, mx::float32) * 3.1415926f;
  mx::array x = mx::concatenate({radius * mx::cos(angle), radius * mx::sin(angle)}, 1);

  std::vector<mx::array> parameters = {mx::random::normal({2, hidden}),
                                       mx::zeros({hidden}),
                                       mx::random::normal({hidden, hidden}) * 0.2f,
                                       mx::zeros({hidden}),
                                       mx::random::normal({hidden, 2}) * 0.2f,
                                       mx::zeros({2})};
  auto loss = [&](const std::vector<mx::array>& p) { return loss_of(network(p, x), labels); };
  auto step = mx::value_and_grad(loss, {0, 1, 2, 3, 4, 5});

  float first = 0, last = 0;
  for (int i = 0; i < 150; ++i) {
    auto [value, gradients] = step(parameters);
    for (size_t k = 0; k < parameters.size(); ++k) {
      parameters[k] = parameters[k] - 0.3f * gradients[k];
    }
    mx::eval(parameters);
    last = value.item<float>();
    if (i == 0) first = last;
  }
  std::cout << "loss " << first << " -> " << last << std::endl;
  CHECK(last < 0.5f * first);

  // Traced once, the step gives the same numbers.
  int traces = 0;
  auto compiled = mx::compile([&](const std::vector<mx::array>& p) {
    ++traces;
    auto [value, gradients] = step(p);
    gradients.push_back(value);
    return gradients;
  });
  for (int i = 0; i < 3; ++i) {
    auto [value, gradients] = step(parameters);
    std::vector<mx::array> both = compiled(parameters);
    CHECK(mx::array_equal(both.back(), value).item<bool>());
    for (size_t k = 0; k < gradients.size(); ++k) {
      CHECK(mx::array_equal(both[k], gradients[k]).item<bool>());
      parameters[k] = parameters[k] - 0.3f * both[k];
    }
  }
  CHECK(traces == 1);

  // The loss of a batch is the mean of the losses of its points.
  auto of_point = [&](const mx::array& point, const mx::array& label) {
    return loss_of(mx::expand_dims(network(parameters, mx::expand_dims(point, 0)), 0),
                   mx::reshape(label, {1, 1, 1}));
  };
  mx::array each = mx::vmap(of_point)(x, labels);
  CHECK(each.shape() == mx::Shape{points});
  CHECK(mx::allclose(mx::mean(each), loss(parameters), 1e-4, 1e-5).item<bool>());

  // Derivatives of a function of one number.
  auto f = [](mx::array y) { return mx::exp(mx::sin(y)); };
  float at = 0.7f, expected = std::exp(std::sin(at)) * std::cos(at);
  CHECK(std::abs(mx::grad(f)(mx::array(at)).item<float>() - expected) < 1e-5f);
  CHECK(std::abs(mx::jvp(f, mx::array(at), mx::array(1.0f)).second.item<float>() - expected) <
        1e-5f);
  CHECK(std::abs(mx::vjp(f, mx::array(at), mx::array(1.0f)).second.item<float>() - expected) <
        1e-5f);
  float curvature = mx::grad(mx::grad(f))(mx::array(at)).item<float>();
  float by_hand = std::exp(std::sin(at)) * (std::cos(at) * std::cos(at) - std::sin(at));
  CHECK(std::abs(curvature - by_hand) < 1e-5f);

  // A function with a rule of its own, and one that is computed twice.
  auto identity = [](std::vector<mx::array> in) { return in; };
  auto reversed = mx::custom_vjp(
      identity, [](std::vector<mx::array>, std::vector<mx::array> cotangents,
                   std::vector<mx::array>) { return std::vector<mx::array>{-cotangents[0]}; });
  auto through = [&](const mx::array& y) { return mx::sum(reversed({y * y})[0]); };
  CHECK(mx::grad(through)(mx::array(3.0f)).item<float>() == -6.0f);
  auto twice = mx::checkpoint(
      [](const std::vector<mx::array>& in) { return std::vector<mx::array>{mx::square(in[0])}; });
  auto checked = [&](const mx::array& y) { return twice({y})[0]; };
  CHECK(mx::grad(checked)(mx::array(3.0f)).item<float>() == 6.0f);

  bool refused = false;
  try {
    mx::grad(f)(mx::array(1));
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}
