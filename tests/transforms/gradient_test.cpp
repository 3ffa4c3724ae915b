// Every op of the registry: its first and second derivatives against central differences, and jvp
// against vjp.
#include <set>

#include "transforms/cases.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::vector<array> moved(const std::vector<array>& inputs, const std::vector<array>& direction,
                         double by) {
  std::vector<array> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!issubdtype(inputs[i].dtype(), inexact)) {
      result.push_back(inputs[i]);
      continue;
    }
    result.push_back(inputs[i] + array(by, inputs[i].dtype()) * direction[i]);
  }
  return result;
}

// (f(x + h d) - f(x - h d)) / 2h, multiplied by the weights and summed up.
double central_difference(const Function& f, const std::vector<array>& inputs,
                          const std::vector<array>& direction, const std::vector<array>& weights,
                          double h) {
  return (dot(f(moved(inputs, direction, h)), weights) -
          dot(f(moved(inputs, direction, -h)), weights)) /
         (2 * h);
}

void check_close(double got, double expected, double tolerance, const std::string& what) {
  double scale = std::max({1.0, std::abs(got), std::abs(expected)});
  CHECK_MESSAGE(std::abs(got - expected) <= tolerance * scale,
                what << ": " << got << " instead of " << expected);
}

bool is_inexact(const array& a) { return issubdtype(a.dtype(), inexact); }

// All checks at one point.
void check_derivatives(const Function& f, const std::vector<array>& inputs, std::mt19937_64& random,
                       double h, double tolerance) {
  std::vector<array> direction = random_like(inputs, random);
  std::vector<array> weights = random_like(f(inputs), random);
  auto gradient = [&](const std::vector<array>& x) { return vjp(f, x, weights).second; };
  double expected = central_difference(f, inputs, direction, weights, h);
  check_close(dot(gradient(inputs), direction), expected, tolerance, "vjp");
  check_close(dot(jvp(f, inputs, direction).second, weights), expected, tolerance, "jvp");

  std::vector<array> second = random_like(inputs, random);
  double curvature = central_difference(gradient, inputs, direction, second, h);
  check_close(dot(jvp(gradient, inputs, direction).second, second), curvature, tolerance,
              "jvp of vjp");
  check_close(dot(vjp(gradient, inputs, second).second, direction), curvature, tolerance,
              "vjp of vjp");
  auto tangent = [&](const std::vector<array>& x) { return jvp(f, x, direction).second; };
  check_close(dot(vjp(tangent, inputs, weights).second, second), curvature, tolerance,
              "vjp of jvp");
}

}  // namespace

TEST_CASE_FIXTURE(OnCpu, "derivatives of every op against central differences") {
  uint64_t seed = 20;
  size_t checked = 0;
  for (const registry::Row& row : registry::rows()) {
    std::string name = row.name;
    // Low-bit weights and others without float64: more_cases() has them.
    if (row.family == registry::Family::products && !accepts(row, float64)) continue;
    // Reads bits as other numbers; has no derivative on purpose, or not for all shapes; rounds its
    // frequencies to float32 (all tested elsewhere).
    static const std::set<std::string> left_out = {"view", "stop_gradient", "linalg.lu",
                                                   "linalg.lu_factor", "fast.rope.frequencies"};
    if (left_out.contains(name)) continue;
    Dtype dtype = accepts(row, float64) ? float64 : float32;
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result) continue;
      // A step from a symmetric matrix would have to be one: more_cases() has such ops.
      if (std::any_of(sample.inputs.begin(), sample.inputs.end(),
                      [](const registry::Input& input) { return input.kind == "y"; })) {
        continue;
      }
      std::mt19937_64 random(seed++);
      std::vector<array> inputs;
      for (const registry::Input& input : sample.inputs) {
        inputs.push_back(random_input(name, input, dtype, random));
      }
      Function f = [&](const std::vector<array>& x) {
        return row.run(registry::Call(x, sample.arguments));
      };
      INFO(name << " of " << sample.text);
      std::vector<array> outputs;
      try {
        outputs = f(inputs);
      } catch (const std::invalid_argument&) {
        continue;  // an op of integers
      }
      if (std::none_of(inputs.begin(), inputs.end(), is_inexact) ||
          std::none_of(outputs.begin(), outputs.end(), is_inexact)) {
        continue;
      }
      bool is_double = std::all_of(outputs.begin(), outputs.end(),
                                   [](const array& a) { return a.dtype() != complex64; });
      if (!is_double) continue;
      bool is_exact =
          dtype == float64 && std::all_of(outputs.begin(), outputs.end(), [](const array& a) {
            return a.dtype() == float64 || !is_inexact(a);
          });
      ++checked;
      check_derivatives(f, inputs, random, is_exact ? 1e-5 : 1e-2, is_exact ? 2e-6 : 2e-2);
    }
  }
  CHECK(checked > 100);
}

TEST_CASE_FIXTURE(OnCpu, "derivatives of what has no row") {
  uint64_t seed = 200;
  for (const Case& c : more_cases()) {
    INFO(c.name);
    std::mt19937_64 random(seed++);
    std::vector<array> inputs = inputs_of_case(c, random);
    bool is_exact = c.dtype == float64;
    check_derivatives(c.f, inputs, random, is_exact ? 1e-5 : 1e-2, is_exact ? 2e-5 : 2e-2);
  }
}

// The transpose of the transpose: no numbers are approximated, so complex dtypes can take part.
TEST_CASE("what has no elements, or sees none, has gradients of zeros") {
  auto check_zeros = [](const std::vector<array>& inputs, auto f) {
    auto total = [&](const std::vector<array>& in) { return sum(f(in)); };
    std::vector<int> all;
    for (size_t i = 0; i < inputs.size(); ++i) all.push_back(static_cast<int>(i));
    std::vector<array> gradients = grad(total, all)(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      CHECK(array_equal(gradients[i], zeros_like(inputs[i])).item<bool>());
    }
  };
  check_zeros({ones({1, 6})}, [](const auto& in) { return diagonal(in[0], -3); });
  check_zeros({ones({2, 3})}, [](const auto& in) { return diagonal(in[0], 5); });
  auto attend = [](const auto& in) {
    return fast::scaled_dot_product_attention(in[0], in[1], in[2], 0.5f);
  };
  check_zeros({ones({0, 4, 3, 8}), ones({0, 2, 5, 8}), ones({0, 2, 5, 8})}, attend);
  check_zeros({ones({2, 4, 3, 8}), ones({2, 2, 0, 8}), ones({2, 2, 0, 8})}, attend);
}

TEST_CASE("jvp is the transpose of vjp for complex numbers, and vjp the derivative") {
  uint64_t seed = 300;
  size_t checked = 0;
  auto real_dot = [](const std::vector<array>& a, const std::vector<array>& b) {
    double total = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!is_inexact(a[i])) continue;
      array products = real(conjugate(a[i]) * b[i]);
      for (double value : values_of<double>(astype(products, float64, Device::cpu))) {
        if (std::isfinite(value)) total += value;
      }
    }
    return total;
  };
  auto random_complex = [](const std::vector<array>& like, std::mt19937_64& random) {
    std::vector<array> parts = random_like(like, random), others = random_like(like, random);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (like[i].dtype() == complex64) {
        parts[i] = parts[i] + array(complex64_t(0, 1)) * others[i];
      }
    }
    return parts;
  };
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    if (row.family == registry::Family::products) continue;  // more_cases() has them
    std::string name = row.name;
    // Steps in the complex plane, or not differentiable (see above).
    std::set<std::string> left_out = {"view", "stop_gradient", "remainder", "rint", "round"};
    if (left_out.contains(name) || !accepts(row, complex64)) continue;
    for (const registry::Sample& sample : registry::samples_of(row)) {
      std::mt19937_64 random(seed++);
      std::vector<array> inputs;
      for (const registry::Input& input : sample.inputs) {
        array part = random_input(name, input, float32, random);
        inputs.push_back(part);
        if (is_numeric(input) && input.kind != "f") {
          array other = random_input(name, input, float32, random);
          inputs.back() = astype(part, complex64) + array(complex64_t(0, 1)) * other;
        }
      }
      Function f = [&](const std::vector<array>& x) {
        return row.run(registry::Call(x, sample.arguments));
      };
      INFO(name << " of " << sample.text);
      std::vector<array> outputs;
      try {
        outputs = f(inputs);
      } catch (const std::invalid_argument&) {
        continue;
      }
      if (std::none_of(inputs.begin(), inputs.end(), is_inexact) ||
          std::none_of(outputs.begin(), outputs.end(), is_inexact)) {
        continue;
      }
      ++checked;
      std::vector<array> direction = random_complex(inputs, random);
      std::vector<array> weights = random_complex(outputs, random);
      double by_vjp = real_dot(vjp(f, inputs, weights).second, direction);
      double by_jvp = real_dot(weights, jvp(f, inputs, direction).second);
      check_close(by_jvp, by_vjp, 1e-4, "jvp against vjp");
      // Many elements lie so close that a step in float32 would change their order.
      bool is_sparse =
          std::all_of(inputs.begin(), inputs.end(), [](const array& a) { return a.size() <= 100; });
      if (!is_sparse) continue;
      double h = 3e-3;
      double expected = (real_dot(weights, f(moved(inputs, direction, h))) -
                         real_dot(weights, f(moved(inputs, direction, -h)))) /
                        (2 * h);
      check_close(by_vjp, expected, 3e-2, "vjp");
    }
  }
  CHECK(checked > 80);
}
