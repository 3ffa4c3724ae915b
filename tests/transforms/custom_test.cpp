// Functions with rules of their own, and checkpoints.
#include <holdfast/memory.h>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

Arrays squares(const Arrays& in) { return {in[0] * in[0]}; }
// Not the derivative of a square, so that it is seen who was asked.
Arrays hundredfold(const Arrays&, const Arrays& cotangents, const Arrays&) {
  return {cotangents[0] * array(100.0f)};
}

array total(const Function& f, const array& x) { return sum(f({x})[0]); }

}  // namespace

TEST_CASE("custom_vjp: the rule is asked, for gradients only") {
  Function f = custom_vjp(squares, hundredfold);
  array x({1.0f, 2.0f});
  check_values<float>(f({x})[0], {2}, {1, 4});
  auto loss = [&](const array& y) { return total(f, y); };
  check_values<float>(grad(loss)(x), {2}, {100, 100});
  check_values<float>(jvp(f, {x}, {x}).second[0], {2}, {2, 8});
  // Mapped, the rule is mapped with the function.
  auto mapped = [&](const array& y) { return sum(vmap(f)({y})[0]); };
  check_values<float>(grad(mapped)(x), {2}, {100, 100});
  check_values<float>(vmap(grad(loss))(x), {2}, {100, 100});
  check_values<float>(vmap(f)({x})[0], {2}, {1, 4});
}

TEST_CASE("custom_function: each rule by itself") {
  array x({1.0f, 2.0f});
  auto tangent_rule = [](const Arrays&, const Arrays& tangents, const std::vector<int>& argnums) {
    CHECK(argnums == std::vector<int>{0});
    return Arrays{tangents[0] * array(7.0f)};
  };
  Function forward = custom_function(squares, std::nullopt, tangent_rule);
  check_values<float>(jvp(forward, {x}, {x}).second[0], {2}, {7, 14});
  check_values<float>(grad([&](const array& y) { return total(forward, y); })(x), {2}, {2, 4});
  auto mapped_forward = vmap(forward);
  check_values<float>(jvp(mapped_forward, {x}, {x}).second[0], {2}, {7, 14});

  auto map_rule = [](const Arrays& inputs, const std::vector<int>& axes) {
    return std::pair{Arrays{inputs[0] + array(1.0f)}, axes};
  };
  Function mapped = custom_function(squares, std::nullopt, std::nullopt, map_rule);
  check_values<float>(vmap(mapped)({x})[0], {2}, {2, 3});
  check_values<float>(mapped({x})[0], {2}, {1, 4});
}

TEST_CASE("custom_vjp under vmap: arguments that are not mapped get the sum over the calls") {
  Function f = custom_vjp([](const Arrays& in) { return Arrays{in[0] * in[1]}; },
                          [](const Arrays& primals, const Arrays& cotangents, const Arrays&) {
                            return Arrays{cotangents[0] * primals[1], cotangents[0] * primals[0]};
                          });
  auto loss = [&](const Arrays& in) { return sum(vmap(f, {1, -1}, {0})(in)[0]); };
  array rows({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3}), factor({10.0f, 20.0f});
  Arrays gradients = grad(loss, std::vector<int>{0, 1})({rows, factor});
  check_values<float>(gradients[0], {2, 3}, {10, 10, 10, 20, 20, 20});
  check_values<float>(gradients[1], {2}, {6, 15});
}

TEST_CASE("rules that return the wrong number of arrays are refused") {
  array x({1.0f, 2.0f});
  Function f =
      custom_vjp(squares, [](const Arrays&, const Arrays&, const Arrays&) { return Arrays{}; });
  CHECK_THROWS_AS(grad([&](const array& y) { return total(f, y); })(x), std::invalid_argument);
}

TEST_CASE("what a function captures is differentiated by its ops") {
  array x({1.0f, 2.0f}), weight({3.0f, 4.0f});
  auto loss = [](bool recomputed) {
    return [recomputed](const Arrays& in) {
      Function layer = [&](const Arrays& arguments) {
        return Arrays{sin(arguments[0] * in[1]) * in[1]};
      };
      return sum((recomputed ? checkpoint(layer) : layer)({in[0]})[0]);
    };
  };
  auto plain = loss(false), recomputed = loss(true);
  for (int argnum : {0, 1}) {
    CHECK(values_of<float>(grad(plain, argnum)({x, weight})[0]) ==
          values_of<float>(grad(recomputed, argnum)({x, weight})[0]));
  }
  auto list = [](auto f) { return [f](const Arrays& in) { return Arrays{f(in)}; }; };
  CHECK(values_of<float>(jvp(list(plain), {x, weight}, {weight, x}).second[0]) ==
        values_of<float>(jvp(list(recomputed), {x, weight}, {weight, x}).second[0]));
}

TEST_CASE_FIXTURE(OnCpu, "checkpoint: the same gradients from less memory") {
  constexpr int layers = 24;
  Function layer = [](const Arrays& in) {
    array x = in[0];
    for (int i = 0; i < 8; ++i) x = sin(cumsum(x, 0) * array(1e-4f));
    return Arrays{x};
  };
  Function kept_less = checkpoint(layer);
  auto peak_of = [&](const Function& f, array& gradient) {
    auto loss = [&](const array& x) {
      array y = x;
      for (int i = 0; i < layers; ++i) y = f({y})[0];
      return sum(y);
    };
    array x = reshape(arange(0, 1 << 16, float32), {1 << 16}) * array(1e-4f);
    x.eval();
    clear_cache();
    reset_peak_memory();
    gradient = grad(loss)(x);
    gradient.eval();
    return get_peak_memory();
  };
  array all(0.0f), less(0.0f);
  size_t peak_of_all = peak_of(layer, all), peak_of_less = peak_of(kept_less, less);
  CHECK(values_of<float>(all) == values_of<float>(less));
  CHECK_MESSAGE(peak_of_less * 2 < peak_of_all, peak_of_less << " of " << peak_of_all);
  // Checkpoints inside checkpoints, and second derivatives.
  Function nested = checkpoint([&](const Arrays& in) { return checkpoint(layer)(in); });
  array x({0.5f, -1.0f, 2.0f});
  auto plain = [&](const array& y) { return total(layer, y); };
  auto inside = [&](const array& y) { return total(nested, y); };
  CHECK(values_of<float>(grad(plain)(x)) == values_of<float>(grad(inside)(x)));
  auto of_gradient = [](auto f) { return [f](const array& y) { return sum(grad(f)(y) * y); }; };
  CHECK(values_of<float>(grad(of_gradient(plain))(x)) ==
        values_of<float>(grad(of_gradient(inside))(x)));
}
