// First steps: what grad, vjp and jvp return for small functions.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("grad of a polynomial") {
  auto f = [](const array& x) { return sum(x * x * x); };
  array x({1.0f, 2.0f, 3.0f});
  check_values<float>(grad(f)(x), {3}, {3, 12, 27});
}
