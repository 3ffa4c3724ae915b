// What grad, vjp, jvp and vmap return for small functions, how they nest, and what they refuse.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;

array cube(const array& x) { return x * x * x; }
array total_cube(const array& x) { return sum(x * x * x); }

float item(array a) { return a.item<float>(); }

}  // namespace

TEST_CASE("grad: values, argument numbers, several outputs") {
  array x({1.0f, 2.0f, 3.0f});
  check_values<float>(grad(total_cube)(x), {3}, {3, 12, 27});
  auto [value, gradient] = value_and_grad(total_cube)(x);
  CHECK(item(value) == 36);
  check_values<float>(gradient, {3}, {3, 12, 27});

  auto product = [](const Arrays& in) { return sum(in[0] * in[1] * in[1]); };
  Arrays both = grad(product, std::vector<int>{1, 0})({x, x});
  check_values<float>(both[0], {3}, {2, 8, 18});
  check_values<float>(both[1], {3}, {1, 4, 9});
  check_values<float>(grad(product, -1)({x, x})[0], {3}, {2, 8, 18});

  // What comes along with the value has no gradient, and need not be a number.
  auto with_more = [](const Arrays& in) {
    return Arrays{sum(in[0] * in[0]), in[0] * array(2.0f), argmax(in[0])};
  };
  auto [outputs, gradients] = value_and_grad(with_more)({x});
  CHECK(outputs.size() == 3);
  check_values<float>(outputs[1], {3}, {2, 4, 6});
  check_values<float>(gradients[0], {3}, {2, 4, 6});
}

TEST_CASE("vjp and jvp: outputs, cotangents, tangents") {
  auto f = [](const Arrays& in) { return Arrays{in[0] * in[1], sin(in[0])}; };
  array a({1.0f, 2.0f}), b({3.0f, 4.0f}), zero({0.0f, 0.0f}), one({1.0f, 1.0f});
  auto [outputs, cotangents] = vjp(f, Arrays{a, b}, Arrays{one, zero});
  check_values<float>(outputs[0], {2}, {3, 8});
  check_values<float>(cotangents[0], {2}, {3, 4});
  check_values<float>(cotangents[1], {2}, {1, 2});
  auto [same, tangents] = jvp(f, Arrays{a, b}, Arrays{zero, one});
  check_values<float>(tangents[0], {2}, {1, 2});
  check_values<float>(tangents[1], {2}, {0, 0});
  CHECK(item(vjp(cube, array(2.0f), array(1.0f)).second) == 12);
  CHECK(item(jvp(cube, array(2.0f), array(1.0f)).second) == 12);
  // In the dtype of what they belong to.
  CHECK(vjp(cube, array(2.0f), array(1.0f, float16)).second.dtype() == float32);
  CHECK(jvp(cube, array(2.0f, float16), array(1.0f)).second.dtype() == float16);
  // What does not depend on an argument has no derivative by it.
  auto constant = [](const array&) { return array({1.0f, 2.0f}); };
  check_values<float>(vjp(constant, a, one).second, {2}, {0, 0});
  check_values<float>(jvp(constant, a, one).second, {2}, {0, 0});
}

TEST_CASE("transforms nest in any order") {
  auto derivative = grad(cube);
  CHECK(item(grad(derivative)(array(2.0f))) == 12);
  CHECK(item(grad(grad(derivative))(array(2.0f))) == 6);
  auto forward = [](const array& x) { return jvp(cube, x, array(1.0f)).second; };
  CHECK(item(grad(forward)(array(2.0f))) == 12);
  CHECK(item(jvp(derivative, array(2.0f), array(1.0f)).second) == 12);
  CHECK(item(jvp(forward, array(2.0f), array(1.0f)).second) == 12);

  array x({1.0f, 2.0f, 3.0f});
  check_values<float>(vmap(derivative)(x), {3}, {3, 12, 27});
  check_values<float>(vmap(grad(derivative))(x), {3}, {6, 12, 18});
  check_values<float>(vmap(forward)(x), {3}, {3, 12, 27});
  auto mapped = [](const array& y) { return sum(vmap(cube)(y)); };
  check_values<float>(grad(mapped)(x), {3}, {3, 12, 27});
  auto twice = vmap([](const array& row) { return vmap(cube)(row); });
  check_values<float>(twice(array({1.0f, 2.0f}, {2, 1})), {2, 1}, {1, 8});
  // The inner argument is a constant for the inner function, and a variable for the outer one.
  auto outer_function = [](const array& y) {
    return grad([&](const array& z) { return y * y * z; })(array(5.0f));
  };
  CHECK(item(grad(outer_function)(array(3.0f))) == 6);
  // A Hessian: forward over reverse for each direction.
  auto hessian =
      vmap([&](const array& direction) { return jvp(grad(total_cube), x, direction).second; });
  check_values<float>(hessian(eye(3)), {3, 3}, {6, 0, 0, 0, 12, 0, 0, 0, 18});
}

TEST_CASE("vmap: axes, constants, sizes") {
  array a({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  auto total = [](const array& row) { return sum(row); };
  check_values<float>(vmap(total)(a), {2}, {6, 15});
  check_values<float>(vmap(total, 1)(a), {3}, {5, 7, 9});
  auto same = [](const array& row) { return row; };
  check_values<float>(vmap(same, 1, 1)(a), {2, 3}, {1, 2, 3, 4, 5, 6});
  check_values<float>(vmap(same, 0, 1)(a), {3, 2}, {1, 4, 2, 5, 3, 6});
  auto scaled = [](const array& row, const array& factor) { return row * factor; };
  check_values<float>(vmap(scaled, 0, -1)(a, array(2.0f)), {2, 3}, {2, 4, 6, 8, 10, 12});
  // What is the same for all calls is repeated.
  auto constant = [](const array&) { return array(7.0f); };
  check_values<float>(vmap(constant)(a), {2}, {7, 7});
  check_values<float>(vmap(cube)(zeros({0, 3})), {0, 3}, {});
}

TEST_CASE("evaluating inside a function that is differentiated changes nothing") {
  array x({1.0f, 2.0f, 3.0f});
  auto f = [](const array& y) {
    array squared = y * y;
    squared.eval();
    array cubed = squared * y;
    if (sum(cubed).item<float>() > 100) return sum(squared);
    return sum(cubed);
  };
  check_values<float>(grad(f)(x), {3}, {3, 12, 27});
  CHECK(item(grad(grad([](const array& y) {
          array squared = y * y;
          squared.eval();
          return squared * y;
        }))(array(2.0f))) == 12);
}

TEST_CASE("stop_gradient stops, and takes no cotangent") {
  array x({1.0f, 2.0f});
  auto f = [](const array& y) { return sum(y * stop_gradient(y)); };
  check_values<float>(grad(f)(x), {2}, {1, 2});
  auto g = [](const Arrays& in) { return Arrays{stop_gradient(in[0]), in[0] * in[0]}; };
  auto [outputs, cotangents] = vjp(g, Arrays{x}, Arrays{array({1.0f, 1.0f})});
  check_values<float>(cotangents[0], {2}, {2, 4});
  check_values<float>(jvp(g, Arrays{x}, Arrays{x}).second[0], {2}, {0, 0});
}

TEST_CASE("what is evaluated afterwards lets go of the graph") {
  array x({1.0f, 2.0f});
  auto [value, gradient] = value_and_grad(total_cube)(x);
  eval(value, gradient);
  CHECK_FALSE(value.has_primitive());
  CHECK_FALSE(gradient.has_primitive());
  CHECK_FALSE(value.is_tracer());
}

TEST_CASE("ties as in MLX: equal elements share a maximum, and the second of two equal arguments") {
  array tied({1.0f, 2.0f, 2.0f});
  auto largest = [](const array& x) { return max(x); };
  check_values<float>(grad(largest)(tied), {3}, {0, 0.5f, 0.5f});
  auto pair = [](const Arrays& in) { return maximum(in[0], in[1]); };
  Arrays both = grad(pair, std::vector<int>{0, 1})({array(1.0f), array(1.0f)});
  CHECK(item(both[0]) == 0);
  CHECK(item(both[1]) == 1);
  CHECK(item(grad([](const array& x) { return abs(x); })(array(0.0f))) == 0);
  // Products with zeros are exact.
  auto product = [](const array& x) { return prod(x); };
  check_values<float>(grad(product)(array({0.0f, 2.0f, 3.0f})), {3}, {6, 0, 0});
  auto running = [](const array& x) { return sum(cumprod(x, 0)); };
  check_values<float>(grad(running)(array({2.0f, 0.0f, 2.0f})), {3}, {1, 6, 0});
  // Of several updates of one element the last is seen.
  auto updated = [](const array& u) {
    return sum(scatter(zeros({2}), array({0, 0}), reshape(u, {2, 1}), 0));
  };
  check_values<float>(grad(updated)(array({4.0f, 5.0f})), {2}, {0, 1});
}

TEST_CASE("scatter_prod: the product of the others, also where some are zero") {
  auto f = [](const array& u) {
    return sum(
        scatter_prod(array({2.0f, 3.0f, 5.0f}), array({0, 0, 1, 1, 2}), reshape(u, {5, 1}), 0));
  };
  array updates({4.0f, 0.0f, 0.0f, 0.0f, 7.0f});
  check_values<float>(grad(f)(updates), {5}, {0, 8, 0, 0, 5});
}

TEST_CASE("logcumsumexp: gradients stay finite where exponents do not") {
  auto f = [](const array& x) { return sum(logcumsumexp(x, 0)); };
  check_values<float>(grad(f)(array({-200.0f, 0.0f, 300.0f})), {3}, {1, 1, 1});
}

TEST_CASE_FIXTURE(OnCpu, "bad input is refused, in words") {
  array x({1.0f, 2.0f}), whole({1, 2});
  auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    } catch (const std::out_of_range& error) {
      return std::string("out of range: ") + error.what();
    }
    return "nothing was thrown";
  };
  auto contains = [](const std::string& text, const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  auto list_sum = [](const Arrays& in) { return sum(in[0]); };
  contains(message([&] { grad(total_cube)(whole); }), "[grad] argument 0 is of int32");
  contains(message([&] { grad(list_sum, 1)({x}); }), "argument number 1 is out of range");
  contains(message([&] { grad(list_sum, -2)({x}); }), "argument number -2 is out of range");
  contains(message([&] { grad(list_sum, std::vector<int>{0, -1})({x}); }), "named once");
  contains(message([&] { grad(list_sum, std::vector<int>{}); }), "one argument number or more");
  contains(message([&] { grad(cube)(x); }), "0-d array");
  contains(message([&] { grad([](const array& y) { return argmax(y); })(x); }), "floating");
  auto nothing = [](const Arrays&) { return Arrays{}; };
  contains(message([&] { value_and_grad(nothing)({x}); }), "must return");
  contains(message([&] { vjp(cube, x, array({1.0f, 2.0f, 3.0f})); }), "[vjp] cotangents 0");
  auto one = [](const Arrays& in) { return Arrays{in[0] * in[0]}; };
  contains(message([&] { vjp(one, Arrays{x}, Arrays{x, x}); }), "expected 1 cotangents, got 2");
  contains(message([&] { jvp(one, Arrays{x}, Arrays{}); }), "expected 1 tangents, got 0");
  contains(message([&] { jvp(cube, x, array(1.0f)); }), "[jvp] tangents 0");
  contains(message([&] { vmap(cube, 1)(x); }), "out of range: [vmap] axis 1");
  contains(message([&] { vmap(cube, 0, 1)(x); }), "out of range: [vmap] output axis 1");
  contains(message([&] { vmap(cube, -1)(x); }), "expected an input with a mapped axis");
  contains(message([&] { vmap(one, {0}, {-1})({x}); }), "needs an axis");
  contains(message([&] { vmap(one, {0, 0})({x}); }), "expected 1 in_axes");
  auto sum_of_two = [](const array& a, const array& b) { return a + b; };
  contains(message([&] { vmap(sum_of_two)(x, zeros({3})); }), "one size, got 2 and 3");
  auto evaluates = [](const array& y) {
    array z = y * y;
    z.eval();
    return z;
  };
  contains(message([&] { vmap(evaluates)(x); }), "cannot be evaluated");
  auto bits = [](const array& y) { return sum(view(view(y, int32), float32)); };
  check_values<float>(grad(bits)(x), {2}, {0, 0});  // integers carry no gradient
  auto halves = [](const array& y) { return sum(view(y, float16)); };
  contains(message([&] { grad(halves)(x); }), "not implemented for View");
  auto spectrum = [](const array& y) { return sum(abs(linalg::eigvals(y))); };
  contains(message([&] { grad(spectrum)(ones({2, 2})); }), "not implemented for Eig");
  contains(message([&] { grad(spectrum)(ones({2, 2})); }), "stop_gradient");
  // A failed trace leaves nothing behind.
  CHECK_FALSE(x.is_tracer());
  check_values<float>(grad(total_cube)(x), {2}, {3, 12});
}
