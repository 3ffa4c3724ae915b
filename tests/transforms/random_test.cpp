// Random compositions of ops under random nestings of transforms, against differences and loops.
//
// HOLDFAST_TRANSFORM_SEED names the first seed.
#include <cstdlib>
#include <memory>

#include "ops/array_testing.h"

#include <random>

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Random = std::mt19937_64;
using Map = std::function<array(const array&)>;

int draw(Random& random, int count) { return std::uniform_int_distribution(0, count - 1)(random); }

// Numbers in float64 that only depend on the seed.
array numbers(const Shape& shape, uint64_t seed) {
  Random random(seed);
  std::uniform_real_distribution<double> distribution(-1, 1);
  size_t size = 1;
  for (ShapeElem dim : shape) size *= static_cast<size_t>(dim);
  std::vector<double> values(size);
  for (double& value : values) value = distribution(random);
  return array(values.begin(), shape, float64);
}

array number(double value) { return array(value, float64); }

// --- random programs: any array in, an array of one to six elements out ---

array apply_unary(int op, const array& x) {
  switch (op) {
    case 0:
      return sin(x);
    case 1:
      return tanh(x);
    case 2:
      return exp(number(0.5) * x);
    case 3:
      return log(number(1.5) + square(x));
    case 4:
      return sqrt(number(1) + square(x));
    case 5:
      return sigmoid(x);
    case 6:
      return x / (number(2) + cos(x));
    case 7:
      return logaddexp(x, negative(x));
    case 8:
      return erf(x);
    case 9:
      return power(number(1) + square(x), number(0.7));
    case 10:
      return arctan2(x, number(2) + x * x);
    default:
      return remainder(number(0.1) * x, number(50)) * number(0.1);
  }
}
constexpr int unary_ops = 12;

// Keeps or changes the shape; at most six elements.
array apply_shape(int op, const array& x, uint64_t seed) {
  if (x.ndim() == 0) return reshape(x, {1});
  int last = x.shape(-1), axis = static_cast<int>(seed % x.ndim());
  switch (op) {
    case 0:
      return transpose(x);
    case 1:
      return flatten(x);
    case 2:
      return x.ndim() > 1 ? sum(x, axis) : x * number(2);
    case 3:
      return softmax(x, axis);
    case 4:
      return cumsum(x, axis, seed % 2 == 0);
    case 5:
      return cumprod(x, axis);
    case 6:
      return flip(x, axis);
    case 7:
      return matmul(reshape(x, {-1, last}), numbers({last, last}, seed));
    case 8:
      return concatenate({slice(x, Shape(x.ndim(), 0), x.shape()), zeros_like(x)}, axis) *
             number(0.5);
    case 9:
      return take(x, array({0, -1}), axis);
    case 10:
      return fast::rms_norm(x, std::nullopt, 1e-2f);
    case 11:
      return logsumexp(x, axis, true) + x;
    case 12:
      return where(greater(numbers(x.shape(), seed), number(0)), x, sin(x));
    case 13:
      return roll(x, 1, axis);
    case 14:
      return x - mean(x, axis, true);
    case 15:
      return linalg::solve(numbers({last, last}, seed) + number(4) * eye(last, float64),
                           transpose(reshape(x, {-1, last})));
    case 16:
      return scatter_add_axis(x, zeros(Shape(x.ndim(), 1), int32), take(x, array({-1}), axis),
                              axis);
    default:
      return pad(x, 1, number(0.3));
  }
}
constexpr int shape_ops = 18;

struct Step {
  int kind, op, other;
  uint64_t seed;
};

array run(const std::vector<Step>& program, const array& x) {
  std::vector<array> values = {x};
  for (const Step& step : program) {
    array a = values.back();
    if (step.kind == 0) a = apply_unary(step.op % unary_ops, a);
    if (step.kind == 1) a = apply_shape(step.op % shape_ops, a, step.seed);
    if (step.kind == 2) {
      // With an earlier value of the same number of elements, else with constants.
      array b = values[static_cast<size_t>(step.other) % values.size()];
      b = b.size() == a.size() ? reshape(b, a.shape()) : numbers(a.shape(), step.seed);
      switch (step.op % 4) {
        case 0:
          a = a * b;
          break;
        case 1:
          a = a + sin(b);
          break;
        case 2:
          a = a / (number(2) + square(b));
          break;
        default:
          a = maximum(a, b) * number(0.5);
      }
    }
    if (a.size() > 6) a = slice(flatten(a), {0}, {4});
    values.push_back(a);
  }
  return values.back();
}

std::vector<Step> random_program(Random& random) {
  std::vector<Step> program;
  int length = 2 + draw(random, 6);
  for (int i = 0; i < length; ++i) {
    program.push_back({draw(random, 3), draw(random, 1000), draw(random, 1000), random()});
  }
  return program;
}

// --- the same function twice: with transforms, and without ---

struct Pair {
  Map transformed, plain;
  Shape shape;  // of the argument
};

double step_size = 0;

// To fourth order, so that differences of differences are still good for some digits.
array difference(const Map& f, const array& x, const array& direction) {
  double h = step_size;
  auto at = [&](double by) { return f(x + number(by) * direction); };
  array result = (number(8) * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / number(12 * h);
  result.eval();
  return result;
}

Pair add_transform(const Pair& inner, int kind, uint64_t seed) {
  Map f = inner.transformed, g = inner.plain;
  Shape shape = inner.shape;
  if (kind == 0) {  // a directional derivative, forwards
    array direction = numbers(shape, seed);
    return {[=](const array& x) { return jvp(f, x, direction).second; },
            [=](const array& x) { return difference(g, x, direction); }, shape};
  }
  if (kind == 1) {  // a gradient, backwards
    auto weights = [seed](const array& out) { return numbers(out.shape(), seed); };
    return {[=](const array& x) {
              return grad([&](const array& y) {
                array out = f(y);
                return sum(out * weights(out));
              })(x);
            },
            [=](const array& x) {
              std::vector<array> parts;
              for (int i = 0; i < static_cast<int>(x.size()); ++i) {
                array unit = reshape(take(eye(static_cast<int>(x.size()), float64), i, 0), shape);
                array out = difference(g, x, unit);
                parts.push_back(sum(out * weights(out)));
              }
              return reshape(stack(parts), shape);
            },
            shape};
  }
  if (kind == 2) {  // mapped along an axis, with what comes out of it along another
    int axis = static_cast<int>(seed % (shape.size() + 1));
    Shape wide = shape;
    wide.insert(wide.begin() + axis, 2);
    return {vmap(f, axis, 0),
            [=](const array& x) { return stack({g(take(x, 0, axis)), g(take(x, 1, axis))}); },
            wide};
  }
  auto list = [f](const std::vector<array>& in) { return std::vector<array>{f(in[0])}; };
  return {[=](const array& x) { return checkpoint(list)({x})[0]; }, g, shape};
}

// 1 where some elements could not be checked.
int check_seed(uint64_t seed) {
  Random random(seed);
  std::vector<Step> program = random_program(random);
  Map f = [program](const array& x) { return run(program, x); };
  static const Shape shapes[] = {{}, {2}, {3}, {2, 2}, {1, 3}};
  Pair pair{f, f, shapes[draw(random, 5)]};
  int depth = 1 + draw(random, 3), derivatives = 0;
  std::string nesting;
  for (int i = 0; i < depth; ++i) {
    int kind = draw(random, 4);
    if (kind < 2 && ++derivatives > 2) kind = 2;  // a third difference has no digits left
    pair = add_transform(pair, kind, random());
    nesting += std::string(kind == 0   ? " jvp"
                           : kind == 1 ? " grad"
                           : kind == 2 ? " vmap"
                                       : " checkpoint");
  }
  INFO("seed " << seed << ", inside out:" << nesting);
  array x = numbers(pair.shape, random());
  array got = pair.transformed(x);
  step_size = 4e-3;
  array expected = pair.plain(x);
  step_size = 3e-3;
  array other = pair.plain(x);
  REQUIRE(got.shape() == expected.shape());
  std::vector<double> ours = values_of<double>(got), theirs = values_of<double>(expected),
                      others = values_of<double>(other);
  int rough = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    double scale = std::max(1.0, std::abs(theirs[i]));
    // Differences that depend on the step are not a derivative: a kink lies in between.
    if (std::abs(theirs[i] - others[i]) > 3e-6 * scale) {
      rough = 1;
      continue;
    }
    CHECK_MESSAGE(std::abs(ours[i] - theirs[i]) <= 1e-5 * scale,
                  "element " << i << ": " << ours[i] << " instead of " << theirs[i]);
  }
  return rough;
}

uint64_t first_seed() {
  const char* given = std::getenv("HOLDFAST_TRANSFORM_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

}  // namespace

TEST_CASE("random compositions under random nestings") {
  uint64_t first = first_seed();
  int rough = 0;
  for (uint64_t seed = first; seed < first + 300; ++seed) rough += check_seed(seed);
  CHECK(rough < 30);
}

TEST_CASE("random compositions under random nestings, thousands [long]") {
  uint64_t first = first_seed() + 300;
  int rough = 0;
  for (uint64_t seed = first; seed < first + 5000; ++seed) rough += check_seed(seed);
  CHECK(rough < 500);
}
