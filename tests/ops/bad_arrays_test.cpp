// What ops are given that is no array and no dtype: handles that were moved from, and dtypes that a
// program made up.
#include <doctest/doctest.h>

#include <functional>
#include <sstream>
#include <vector>

#include <holdfast/holdfast.h>

#include "registry/registry.h"

using namespace holdfast;

namespace {

array moved_from() {
  array a = ones({2, 3});
  array other = std::move(a);
  return a;
}

}  // namespace

TEST_CASE("every op of the registry refuses an array that was moved from") {
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result) continue;
      INFO(std::string(row.name) << " of " << sample.text);
      for (size_t moved = 0; moved < sample.inputs.size(); ++moved) {
        std::vector<array> inputs;
        for (const registry::Input& input : sample.inputs) {
          inputs.push_back(registry::make_input(input, float32, 1));
        }
        inputs[moved] = moved_from();
        CHECK_THROWS_AS(row.run(registry::Call(std::move(inputs), sample.arguments)),
                        std::invalid_argument);
      }
    }
  }
}

TEST_CASE("an array that was moved from is told where it is asked, evaluated or printed") {
  array a = moved_from();
  CHECK_THROWS_WITH_AS(a.shape(), "[array] expected an array, got one that was moved from",
                       std::invalid_argument);
  CHECK_THROWS_AS(a.dtype(), std::invalid_argument);
  CHECK_THROWS_AS(a.size(), std::invalid_argument);
  CHECK_THROWS_AS(a.item<float>(), std::invalid_argument);
  CHECK_THROWS_AS(a.data<float>(), std::invalid_argument);
  CHECK_THROWS_AS(a.has_primitive(), std::invalid_argument);
  CHECK_THROWS_AS(a.eval(), std::invalid_argument);
  CHECK_THROWS_AS(a.wait(), std::invalid_argument);
  CHECK_THROWS_AS(a.detach(), std::invalid_argument);
  CHECK_THROWS_AS(array::unsafe_weak_copy(a), std::invalid_argument);
  array unevaluated = ones({2}) + ones({2});
  CHECK_THROWS_AS(eval(unevaluated, a), std::invalid_argument);
  CHECK_THROWS_AS(async_eval(unevaluated, a), std::invalid_argument);
  CHECK(unevaluated.shape(0) == 2);
  std::ostringstream out;
  CHECK_THROWS_AS(out << a, std::invalid_argument);
  auto primitive = (ones({2}) + ones({2})).primitive_ptr();
  CHECK_THROWS_AS(array({2}, float32, primitive, {unevaluated, a}), std::invalid_argument);
  CHECK_THROWS_AS(array::make_arrays({{2}}, {float32}, primitive, {a, a}), std::invalid_argument);
  CHECK_THROWS_AS(grad([](const array&) { return moved_from(); })(array(1.0f)),
                  std::invalid_argument);
  CHECK_THROWS_AS(vmap([](const array&) { return moved_from(); })(ones({2})),
                  std::invalid_argument);
  CHECK_THROWS_AS(compile([](const std::vector<array>&) {
                    return std::vector<array>{moved_from()};
                  })({ones({2})}),
                  std::invalid_argument);
  // What is left to do with it.
  array copy = a;
  copy = a;
  copy = std::move(a);
  a = ones({2});
  CHECK(sum(a).item<float>() == 2);
}

TEST_CASE("dtypes that a program made up are refused by all that takes one") {
  const array a = ones({2, 3}), key = random::key(0);
  const std::vector<std::function<array(Dtype)>> calls = {
      [](Dtype d) { return array(1.0f, d); },
      [](Dtype d) { return array({1, 2}, d); },
      [](Dtype d) { return array({1.0f, 2.0f}, {2}, d); },
      [](Dtype d) { return array({1.0f, 2.0f}, {0}, d); },
      [](Dtype d) { return array(std::vector<int>{1, 2}.begin(), {2}, d); },
      [](Dtype d) { return array({2}, d, nullptr, {}); },
      [&](Dtype d) { return array({2, 3}, d, (a + a).primitive_ptr(), {a, a}); },
      [](Dtype d) { return zeros({2}, d); },
      [](Dtype d) { return ones({2}, d); },
      [](Dtype d) { return full({2}, 1.0f, d); },
      [](Dtype d) { return full({0}, array(1), d); },
      [&](Dtype d) { return full_like(a, 1.0f, d); },
      [&](Dtype d) { return zeros_like(a, d); },
      [&](Dtype d) { return ones_like(a, d); },
      [](Dtype d) { return arange(0, 5, 1, d); },
      [](Dtype d) { return linspace(0, 1, 5, d); },
      [](Dtype d) { return eye(3, d); },
      [](Dtype d) { return identity(3, d); },
      [](Dtype d) { return tri(3, d); },
      [&](Dtype d) { return astype(a, d); },
      [&](Dtype d) { return view(a, d); },
      [&](Dtype d) { return trace(a, 0, 0, 1, d); },
      [&](Dtype d) { return number_of_elements(a, {0}, false, d); },
      [&](Dtype d) { return cumsum(a, 0, false, true, d); },
      [&](Dtype d) { return cumprod(a, 0, false, true, d); },
      [&](Dtype d) { return random::uniform({2}, d, key); },
      [&](Dtype d) { return random::normal({2}, d, key); },
      [&](Dtype d) { return random::randint(0, 5, {2}, d, key); },
      [&](Dtype d) { return random::truncated_normal(array(0.0f), array(1.0f), d, key); },
      [&](Dtype d) { return random::gumbel({2}, d, key); },
      [&](Dtype d) { return random::laplace({2}, d, key); },
      [&](Dtype d) {
        return random::multivariate_normal(zeros({2}), eye(2), {1}, d, key, Device::cpu);
      },
      [](Dtype d) { return from_fp8(zeros({2}, uint8), d); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    INFO("call " << i);
    CHECK_THROWS_AS(calls[i](Dtype(static_cast<Dtype::Val>(99), 4)), std::invalid_argument);
    CHECK_THROWS_AS(calls[i](Dtype(static_cast<Dtype::Val>(14), 0)), std::invalid_argument);
    // A known value of another size: refused, or not asked for its size.
    for (Dtype dtype : {Dtype(Dtype::Val::float32, 1), Dtype(Dtype::Val::bfloat16, 4)}) {
      try {
        CHECK(calls[i](dtype).itemsize() == dtype_of(dtype.val()).size());
      } catch (const std::invalid_argument&) {
      }
    }
  }
  CHECK_THROWS_AS(zeros({2}, Dtype(Dtype::Val::float32, 1)), std::invalid_argument);
  CHECK_THROWS_AS(array(1.0f, Dtype(Dtype::Val::float32, 1)), std::invalid_argument);
  Dtype dtype(static_cast<Dtype::Val>(99), 4);
  CHECK_THROWS_WITH_AS(zeros({2}, dtype), "[dtype] expected one of the 14 dtypes, got number 99",
                       std::invalid_argument);
  CHECK_THROWS_AS(finfo{dtype}, std::invalid_argument);
  CHECK_THROWS_AS(iinfo{dtype}, std::invalid_argument);
  CHECK_THROWS_AS(dtype_name(dtype.val()), std::invalid_argument);
  CHECK_THROWS_AS(promote_types(dtype, int8), std::invalid_argument);
}
