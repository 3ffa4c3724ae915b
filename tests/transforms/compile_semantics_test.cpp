// compile: shapeless traces, identities of functions, the bound of the cache, captured state.
#include <cstring>
#include <thread>

#include <holdfast/compile_impl.h>
#include <holdfast/primitives.h>
#include <holdfast/transforms_impl.h>

#include "benchmarks/layer_kernel.h"
#include "ops/array_testing.h"
#include "support/child.h"
#include "transforms/compile_cache.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

array numbered(const Shape& shape, float first = 1) {
  int size = 1;
  for (ShapeElem dim : shape) size *= dim;
  return reshape(arange(first, first + static_cast<float>(size), 1.0f), shape) * array(0.1f);
}

bool same_bits(array a, array b) {
  eval(a, b);
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

}  // namespace

TEST_CASE("shapeless compile: one trace for all shapes") {
  struct Case {
    std::string name;
    Function function;
  };
  Case cases[] = {
      {"element-wise", [](const Arrays& in) { return Arrays{exp(in[0]) * in[1] + in[0]}; }},
      {"norm",
       [](const Arrays& in) {
         array centred = in[0] - mean(in[0], -1, true);
         return Arrays{centred * rsqrt(var(in[0], -1, true) + array(1e-5f))};
       }},
      {"unbiased", [](const Arrays& in) { return Arrays{var(in[0], {0, 1}, false, 1)}; }},
      {"softmax", [](const Arrays& in) { return Arrays{softmax(in[0], -1), logsumexp(in[0], 0)}; }},
      {"product", [](const Arrays& in) { return Arrays{matmul(in[0], transpose(in[0])) + in[1]}; }},
      {"views",
       [](const Arrays& in) {
         array wide = expand_dims(in[0], 1);
         return Arrays{squeeze(sum(wide, 0, true), {0, 1}), concatenate({in[0], in[0]}, 0)};
       }},
      {"norms and attention",
       [](const Arrays& in) {
         array x = expand_dims(in[0], {0, 1});
         return Arrays{fast::rms_norm(in[0], std::nullopt, 1e-5f),
                       fast::scaled_dot_product_attention(x, x, x, 0.5f)};
       }},
      {"order", [](const Arrays& in) {
         return Arrays{sort(in[0], -1), argmax(in[0], 0), cumsum(in[0], 1),
                       take_along_axis(in[0], argmax(in[0], -1, true), -1)};
       }}};
  for (const Case& c : cases) {
    int calls = 0;
    Function fast = compile(Function([&](const Arrays& in) {
                              ++calls;
                              return c.function(in);
                            }),
                            true);
    for (const Shape& shape : {Shape{2, 3}, Shape{4, 5}, Shape{1, 7}, Shape{3, 1}, Shape{2, 3}}) {
      Arrays inputs = {numbered(shape), array({2.0f})};
      Arrays expected = c.function(inputs), got = fast(inputs);
      REQUIRE(got.size() == expected.size());
      for (size_t k = 0; k < got.size(); ++k) {
        INFO(c.name << ", output " << k << ", " << shape[0] << " x " << shape[1]);
        CHECK(same_bits(got[k], expected[k]));
      }
    }
    INFO(c.name);
    CHECK(calls == 1);
    // Another number of dimensions, and another dtype, are another trace.
    if (c.name == "element-wise") {
      fast({numbered({3}), array({2.0f})});
      CHECK(calls == 2);
      fast({astype(numbered({2, 2}), float16), array({2.0f})});
      CHECK(calls == 3);
    }
  }
}

TEST_CASE("compile takes functions of a vector by value") {
  auto plus_one = [](Arrays in) {
    in[0] = in[0] + array(1.0f);
    return in;
  };
  CHECK(compile(plus_one)({array(2.0f)})[0].item<float>() == 3.0f);
  CHECK(compile(+plus_one, true)({array(4.0f)})[0].item<float>() == 5.0f);
}

TEST_CASE("shapeless compile: what had one shape in the trace may broadcast later") {
  Function f = [](const Arrays& in) {
    array small = sin(in[0]) * array(2.0f);
    return Arrays{small, small + in[1], exp(small) - array(1.0f)};
  };
  Function fast = compile(f, true);
  for (auto [a, b] : {std::pair{Shape{2, 3}, Shape{2, 3}},
                      {Shape{1, 3}, Shape{4, 3}},
                      {Shape{4, 3}, Shape{1, 1}}}) {
    Arrays inputs = {numbered(a), numbered(b, 5)};
    Arrays expected = f(inputs), got = fast(inputs);
    for (size_t k = 0; k < 3; ++k) CHECK(same_bits(got[k], expected[k]));
  }
}

TEST_CASE("shapeless compile: ops that cannot are named") {
  auto refuses = [](const std::string& op, const Function& f) {
    INFO(op);
    Function fast = compile(f, true);
    CHECK_THROWS_WITH_AS(fast({numbered({2, 3})}),
                         doctest::Contains(("a function with " + op).c_str()),
                         std::invalid_argument);
    CHECK_NOTHROW(compile(f)({numbered({2, 3})}));
    CHECK(detail::tracing_depth() == 0);
  };
  refuses("AsStrided", [](const Arrays& in) { return Arrays{as_strided(in[0], {2}, {1}, 0)}; });
  refuses("View", [](const Arrays& in) { return Arrays{view(in[0], float16)}; });
  // What an op has read from a shape is not taken for a size that the user gave.
  refuses("Reshape", [](const Arrays& in) { return Arrays{kron(in[0], in[0])}; });
  // Shapes that do not fit are found when the function is called.
  Function product = compile(
      Function([](const Arrays& in) { return Arrays{matmul(in[0], in[1]), in[0] + in[0]}; }), true);
  product({numbered({2, 3}), numbered({3, 4})});
  CHECK_THROWS_WITH_AS(product({numbered({2, 3}), numbered({2, 4})}), doctest::Contains("[matmul]"),
                       std::invalid_argument);
}

TEST_CASE("compile: what it makes of equal functions is equivalent, and one op stays its class") {
  auto made_of = [](const Function& f, const array& x) { return compile(f)({x})[0]; };
  Function chain = [](const Arrays& in) { return Arrays{exp(in[0]) * array(2.0f)}; };
  Function norm = [](const Arrays& in) { return Arrays{in[0] - sum(in[0], -1, true)}; };
  array x = numbered({4, 64});
  for (const Function& f : {chain, norm}) {
    array first = made_of(f, x), second = made_of(f, x);
    CHECK(first.primitive_id() != second.primitive_id());
    CHECK(first.primitive().is_equivalent(second.primitive()));
    CHECK(!first.primitive().is_equivalent(made_of(f, astype(x, float16)).primitive()));
  }
  CHECK(!made_of(chain, x).primitive().is_equivalent(made_of(norm, x).primitive()));
  Function other = [](const Arrays& in) { return Arrays{in[0] * exp(in[0])}; };
  CHECK(!made_of(chain, x).primitive().is_equivalent(made_of(other, x).primitive()));
  array alone = made_of([](const Arrays& in) { return Arrays{exp(in[0])}; }, x);
  CHECK(dynamic_cast<Exp*>(&alone.primitive()) != nullptr);
  array reduced = made_of([](const Arrays& in) { return Arrays{sum(in[0], 1)}; }, x);
  CHECK(dynamic_cast<Reduce*>(&reduced.primitive()) != nullptr);
}

TEST_CASE("compile: what only hands a value on is left out, and equal calls are one") {
  set_compile_mode(CompileMode::no_fuse);
  Function f = [](const Arrays& in) {
    Arrays first = divmod(in[0], array(2.0f)), second = divmod(in[0], array(2.0f));
    return Arrays{exp(stop_gradient(copy(in[0]))) + exp(in[0]), first[1] + second[1],
                  in[0] * array(3.0f) + array(3.0f)};
  };
  array x = numbered({4});
  Arrays made = compile(f)({x}), expected = f({x});
  set_compile_mode(CompileMode::enabled);
  CHECK(made[0].inputs()[0].id() == made[0].inputs()[1].id());
  CHECK(made[0].inputs()[0].inputs()[0].id() == x.id());
  CHECK(made[1].inputs()[0].id() == made[1].inputs()[1].id());
  CHECK(made[2].inputs()[1].id() == made[2].inputs()[0].inputs()[1].id());
  for (size_t i = 0; i < 3; ++i) CHECK(same_bits(made[i], expected[i]));
}

TEST_CASE("compile: its steps, one by one") {
  array x({1.0f, 2.0f, 3.0f});
  detail::ArrayFnWithExtra f = [](const Arrays& in) {
    return detail::ArraysAndExtra{{sin(in[0]) * array(2.0f) + sin(in[0]) * array(2.0f), in[0]},
                                  std::make_shared<int>(7)};
  };
  auto [inputs, outputs, extra] = detail::compile_trace(f, {x}, false);
  CHECK(*static_cast<int*>(extra.get()) == 7);
  CHECK(!detail::in_tracing());
  auto [tape, parents] = detail::compile_dfs(inputs, outputs, {x});
  CHECK(tape.size() == 5);
  CHECK(parents.at(inputs[0].id()).size() == 2);
  Arrays simple = outputs;
  detail::compile_simplify(tape, parents, simple, 0);
  CHECK(tape.size() == 5);
  detail::compile_simplify(tape, parents, simple, 3);
  REQUIRE(tape.size() == 3);
  CHECK(parents.at(tape[1].id()).size() == 2);
  CHECK(parents.at(tape[1].id())[1].second == 1);
  CHECK_NOTHROW(detail::compile_validate_shapeless(tape));
  for (const Arrays& of : {outputs, simple}) {
    Arrays got = detail::compile_replace(tape, inputs, of, {x}, false);
    CHECK(same_bits(got[0], f({x}).first[0]));
    CHECK(same_bits(got[1], x));
  }
  array other({4.0f});
  CHECK(same_bits(detail::compile_replace(tape, inputs, simple, {other}, true)[0],
                  f({other}).first[0]));
  CHECK_THROWS_AS(detail::compile_replace(tape, inputs, simple, {other}, false),
                  std::invalid_argument);
  CHECK_THROWS_AS(detail::compile_replace(tape, inputs, simple, {}, true), std::invalid_argument);
  // What the function should have taken as an argument.
  auto [tracers, captured, nothing] = detail::compile_trace(
      [&](const Arrays& in) { return detail::ArraysAndExtra{{in[0] + x}, nullptr}; }, {x}, false);
  CHECK_THROWS_AS(detail::compile_dfs(tracers, captured, {x}), std::invalid_argument);
  auto [shapes, sliced, none] = detail::compile_trace(
      [](const Arrays& in) { return detail::ArraysAndExtra{{view(in[0], float16)}, nullptr}; }, {x},
      true);
  CHECK_THROWS_WITH_AS(
      detail::compile_validate_shapeless(detail::compile_dfs(shapes, sliced, {}).first),
      doctest::Contains("View"), std::invalid_argument);
}

TEST_CASE("compile: identities, constants and what a function returns beside arrays") {
  int calls = 0;
  detail::ArrayFnWithExtra f = [&](const Arrays& in) {
    ++calls;
    return detail::ArraysAndExtra{{in[0] + in[0]}, std::make_shared<int>(calls)};
  };
  auto extra = [](const detail::ArraysAndExtra& result) {
    return *static_cast<int*>(result.second.get());
  };
  std::uintptr_t id = reinterpret_cast<std::uintptr_t>(&calls);
  array x({1.0f, 2.0f});
  auto first = detail::compile(f, id, false, {7}), same = detail::compile(f, id, false, {7});
  CHECK(extra(first({x})) == 1);
  CHECK(extra(same({x})) == 1);
  check_values<float>(same({x}).first[0], {2}, {2, 4});
  CHECK(extra(detail::compile(f, id, false, {8})({x})) == 2);
  CHECK(extra(first({x})) == 1);
  detail::compile_erase(detail::compile_cache(), id);
  CHECK(extra(first({x})) == 3);
  detail::compile_clear_cache(detail::compile_cache());
  CHECK(extra(first({x})) == 4);
  // Without an identity nothing is shared.
  Function plain = [&](const Arrays& in) { return f(in).first; };
  detail::compile(plain, 0)({x});
  detail::compile(plain, 0)({x});
  CHECK(calls == 6);
  CHECK(detail::compile_available_for_device(Device::cpu));
  detail::compile_erase(detail::compile_cache(), id);
}

TEST_CASE("compile: the cache is bounded, and a function that is gone leaves nothing in it") {
  auto cache = detail::compile_cache().lock();
  cache->clear();
  array x({1.0f});
  {
    Function f = compile([y = x](const Arrays& in) { return Arrays{in[0] + y}; });
    Function copy = f;
    f = nullptr;
    check_values<float>(copy({x})[0], {1}, {2});
    CHECK(cache->size() == 1);
  }
  CHECK(cache->size() == 0);
  Function f = [](const Arrays& in) { return Arrays{in[0] + in[0]}; };
  for (std::uintptr_t id = 1; id <= detail::CompileCache::kept_functions + 100; ++id) {
    detail::compile(f, id)({x});
  }
  CHECK(cache->size() == detail::CompileCache::kept_functions);
  cache->clear();
  int calls = 0;
  Function many = compile([&](const Arrays& in) {
    ++calls;
    return Arrays{in[0] + in[0]};
  });
  int shapes = static_cast<int>(detail::CompileCache::kept_traces) + 10;
  for (int n = 1; n <= shapes; ++n)
    check_values<float>(many({ones({n})})[0], {n}, std::vector<float>(static_cast<size_t>(n), 2));
  CHECK(calls == shapes);
  many({ones({shapes})});
  CHECK(calls == shapes);
  check_values<float>(many({ones({1})})[0], {1}, {2});  // dropped, and traced anew
  CHECK(calls == shapes + 1);
}

TEST_CASE("compile: random state is part of the trace, a key that is passed is not") {
  Function captured =
      compile(Function([](const Arrays& in) { return Arrays{in[0] + random::normal({3})}; }));
  array x = zeros({3});
  CHECK(same_bits(captured({x})[0], captured({x})[0]));
  Function passed = compile(
      Function([](const Arrays& in) { return Arrays{in[0] + random::normal({3}, in[1])}; }));
  array one = passed({x, random::key(1)})[0], two = passed({x, random::key(2)})[0];
  CHECK_FALSE(same_bits(one, two));
  CHECK(same_bits(one, x + random::normal({3}, random::key(1))));
}

TEST_CASE("compile: results of concurrent first calls, other shapes and streams are never mixed") {
  Function f = compile([](const Arrays& in) {
    array total = sum(in[0] * in[1], -1, true);
    return Arrays{in[0] / total, total * in[1]};
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        Shape shape = {1 + (i + t) % 3, 2 + i % 5};
        Arrays inputs = {numbered(shape, static_cast<float>(t + 1)),
                         array(static_cast<float>(i + 1))};
        array total = sum(inputs[0] * inputs[1], -1, true);
        Arrays got = f(inputs);
        if (!same_bits(got[0], inputs[0] / total) || !same_bits(got[1], total * inputs[1])) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("compile: twelve layers of one kernel name, each with its own weights") {
  if (!metal::is_available()) return;
  bench::LayerStack stack = bench::make_layer_stack({64, 12, 2}, 11);
  Function layers = [&](const Arrays& in) { return Arrays{bench::apply_layers(stack, in[0])}; };
  Function fast = compile(layers), nested = compile([&](const Arrays& in) { return fast(in); });
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    array x = random::normal({64}, random::key(seed));
    eval(x);
    std::vector<float> expected(x.data<float>(), x.data<float>() + 64);
    bench::apply_layers_plainly(stack, expected);
    for (const Function& function : {fast, nested}) {
      array y = function({x})[0];
      eval(y);
      CHECK(std::memcmp(y.data<float>(), expected.data(), 64 * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("compile: disabled by the environment [child]") {
  if (!is_child("compile: disabled by the environment [child]")) return;
  int calls = 0;
  Function f = compile([&](const Arrays& in) {
    ++calls;
    return Arrays{in[0] + in[0]};
  });
  array x({1.0f});
  f({x});
  f({x});
  int disabled = calls;
  enable_compile();
  f({x});
  f({x});
  report(std::to_string(disabled) + " " + std::to_string(calls - disabled));
}

TEST_CASE("compile: disabled by the environment") {
  const char* child = "compile: disabled by the environment [child]";
  CHECK(reported(run_child(child, {"HOLDFAST_DISABLE_COMPILE=1"})) == "2 1\n");
  CHECK(reported(run_child(child, {"HOLDFAST_DISABLE_COMPILE=0"})) == "1 0\n");
}

TEST_CASE("vmap in two halves is vmap") {
  Function f = [](const Arrays& in) { return Arrays{in[0] * in[1], sum(in[0])}; };
  Arrays inputs = {numbered({3, 2}), array(2.0f)};
  auto [traced, outputs] = detail::vmap_trace(f, inputs, {0, -1});
  CHECK(traced[0].shape() == Shape{2});
  Arrays got = detail::vmap_replace(inputs, traced, outputs, {0, -1}, {1, 0});
  Arrays expected = vmap(f, {0, -1}, {1, 0})(inputs);
  for (size_t k = 0; k < 2; ++k) CHECK(same_bits(contiguous(got[k]), contiguous(expected[k])));
  CHECK(got[0].shape() == Shape{2, 3});
}
