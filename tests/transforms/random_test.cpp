// Random compositions of ops under random nestings of transforms, against differences and loops.
//
// HOLDFAST_TRANSFORM_SEED names the first seed.
#include <cstdlib>

#include "transforms/random_programs.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Map = std::function<array(const array&)>;

// --- the same function twice: with transforms, and without ---

struct Pair {
  Map transformed, plain;
  Shape shape;  // of the argument
};

double step_size = 0;

// To fourth order, so that differences of differences are still good for some digits.
array difference(const Map& f, const array& x, const array& direction) {
  double h = step_size;
  auto at = [&](double by) { return f(x + scalar(by) * direction); };
  array result = (scalar(8) * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / scalar(12 * h);
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

TEST_CASE_FIXTURE(OnCpu, "random compositions under random nestings") {
  uint64_t first = first_seed();
  int rough = 0;
  for (uint64_t seed = first; seed < first + 300; ++seed) rough += check_seed(seed);
  CHECK(rough < 30);
}

TEST_CASE_FIXTURE(OnCpu, "random compositions under random nestings, thousands [long]") {
  uint64_t first = first_seed() + 300;
  int rough = 0;
  for (uint64_t seed = first; seed < first + 5000; ++seed) rough += check_seed(seed);
  CHECK(rough < 500);
}
