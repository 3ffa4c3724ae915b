// Traces for any shape: what they give for other shapes is what the function gives, or an
// exception, for every op.
#include <holdfast/transforms_impl.h>

#include "transforms/export_testing.h"
#include "transforms/samples.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;

// What a trace for the shapes of `first` gives for `second`; nothing: it was refused.
std::optional<Arrays> traced_elsewhere(const Function& f, const Arrays& first,
                                       const Arrays& second) {
  try {
    Function fast = compile(f, true);
    fast(first);
    return fast(second);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

array numbered(const Shape& shape) {
  int size = 1;
  for (ShapeElem dim : shape) size *= dim;
  return reshape(arange(1, 1 + size, float32), shape) * array(0.1f);
}

}  // namespace

TEST_CASE("shapeless compile: no op gives a value of the traced shapes for others") {
  size_t right = 0;
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    // What a path of contractions is depends on sizes, and is no array elsewhere.
    if (!accepts(row, float32) || std::string(row.name) == "einsum_path") continue;
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result) continue;
      auto inputs_of = [&](const registry::Sample& from, uint64_t seed) {
        Arrays inputs;
        for (const registry::Input& input : from.inputs) {
          inputs.push_back(registry::make_input(input, float32, seed++));
        }
        return inputs;
      };
      Function plain = [&](const Arrays& x) {
        return row.run(registry::Call(x, sample.arguments));
      };
      // The derivative, too: of the sum of what has one.
      Function slope = [&](const Arrays& x) {
        Arrays weights;
        for (const array& output : plain(x)) {
          weights.push_back(issubdtype(output.dtype(), inexact) ? sin(output) : output);
        }
        return vjp(plain, x, weights).second;
      };
      for (uint64_t seed = 0; seed < 3; ++seed) {
        registry::Sample other = registry::resized(sample, seed, false);
        Arrays first = inputs_of(sample, 10), second = inputs_of(other, 20);
        for (bool differentiated : {false, true}) {
          const Function& f = differentiated ? slope : plain;
          Arrays expected;
          try {
            expected = f(second);
            eval(expected);
          } catch (const std::exception&) {
            continue;  // the op refuses these
          }
          std::optional<Arrays> got = traced_elsewhere(f, first, second);
          if (!got) continue;
          INFO(std::string(row.name) << std::string(differentiated ? ", derivative, of " : " of ")
                                     << sample.text << " called with " << other.text);
          REQUIRE(got->size() == expected.size());
          for (size_t k = 0; k < expected.size(); ++k) {
            std::string difference = registry::difference((*got)[k], expected[k], 4);
            CHECK_MESSAGE(difference.empty(), difference);
          }
          ++right;
        }
      }
    }
  }
  CHECK(right > 1000);
  CHECK(detail::tracing_depth() == 0);
}

TEST_CASE("shapeless compile: shapes that follow") {
  struct Row {
    std::string name;
    Function f;
  };
  auto loss = [](const std::function<array(const array&)>& f) {
    return Function([f](const Arrays& in) { return Arrays{grad(f)(in[0])}; });
  };
  Row rows[] = {
      {"reshape to what is left",
       [](const Arrays& in) {
         return Arrays{reshape(in[0], {-1}), reshape(in[0], {2, -1}), reshape(in[0], {-1, 2, 3})};
       }},
      {"flatten", [](const Arrays& in) { return Arrays{flatten(expand_dims(in[0], 0), 0, 1)}; }},
      {"unflatten",
       [](const Arrays& in) {
         return Arrays{unflatten(in[0], -1, {3, -1}), unflatten(in[0], 0, {2, -1})};
       }},
      {"broadcast_to",
       [](const Arrays& in) {
         return Arrays{broadcast_to(sum(in[0]), {5, 2}), broadcast_to(array(2.0f), {3})};
       }},
      {"broadcast_arrays",
       [](const Arrays& in) {
         return broadcast_arrays({in[0], sum(in[0], 0, true), array(1.0f)});
       }},
      {"like others",
       [](const Arrays& in) {
         return Arrays{zeros_like(in[0]), ones_like(in[0]) * in[0], full_like(in[0], array(3.0f))};
       }},
      {"take", [](const Arrays& in) { return Arrays{take(in[0], array({0, 1}), 0)}; }},
      {"diagonal", [](const Arrays& in) { return Arrays{diagonal(in[0]), trace(in[0])}; }},
      {"pad", [](const Arrays& in) { return Arrays{pad(in[0], std::pair{1, 2})}; }},
      {"divmod", [](const Arrays& in) { return divmod(in[0], array(0.7f)); }},
      {"slices that move",
       [](const Arrays& in) {
         return Arrays{slice(in[0], array({1}), {0}, {1, 3}),
                       slice_update(in[0], zeros({1, 1}), array({0, 1}), {0, 1})};
       }},
      {"slices",
       [](const Arrays& in) {
         return Arrays{slice(in[0], {1, 0}, {2, 100}),
                       slice(in[0], {-2, 1}, {100, -1}),
                       slice(in[0], {0, -1}, {2, -100}, {1, -2}),
                       take(in[0], -1, 1),
                       take(in[0], 1, 0),
                       flip(in[0], 1),
                       diff(in[0])};
       }},
      {"parts",
       [](const Arrays& in) {
         Arrays all = split(in[0], 2, 0);
         for (const array& part : split(in[0], Shape{1, -1}, 1)) all.push_back(part);
         return all;
       }},
      {"slices that are replaced",
       [](const Arrays& in) {
         array row = slice(in[0], {0, 0}, {1, 100}) * array(2.0f);
         return Arrays{slice_update(in[0], row, {-2, 0}, {100, 100}),
                       slice_update(in[0], array(3.0f), {0, 1}, {100, -1}),
                       slice_update_add(in[0], row, {1, 0}, {2, 100}),
                       slice_update_max(in[0], array(0.5f), {0, 0}, {100, 100}, {1, 2}),
                       slice_update(in[0], in[0], {0, 0}, {100, 100})};
       }},
      {"derivative of slices", loss([](const array& x) {
         array changed = slice_update(x, sin(slice(x, {0, 0}, {1, 100})), {1, 0}, {2, 100});
         return sum(square(slice(changed, {0, 1}, {100, 100}))) + sum(take(x, -1, 0) * array(3.0f));
       })},
      {"derivative of a padded array",
       loss([](const array& x) { return sum(square(pad(x, std::pair{1, 0})) * array(2.0f)); })},
      {"mapped slices",
       [](const Arrays& in) {
         return vmap(Function([](const Arrays& x) {
           array part = slice(x[0], {1}, {-1});
           return Arrays{part, slice_update(x[0], part * part, {0}, {-2})};
         }))(in);
       }},
      {"matrices by number",
       [](const Arrays& in) {
         array matrices = expand_dims(in[0], {0, -1}), others = expand_dims(in[0], -2);
         return Arrays{gather_mm(matrices, others, array({0, 1}), array({1, 0}))};
       }},
      {"derivative of a sum", loss([](const array& x) { return sum(x * x); })},
      {"derivative of a mean", loss([](const array& x) { return mean(square(x)); })},
      {"derivative of a flat array", loss([](const array& x) { return sum(square(flatten(x))); })},
      {"derivative of a broadcast",
       loss([](const array& x) { return sum(sin(x) * sum(x, 0, true) + x * mean(x)); })},
      {"derivative of softmax", loss([](const array& x) { return sum(softmax(x, -1) * x); })},
      {"derivative of a maximum", loss([](const array& x) { return sum(max(x, 1)); })},
      {"derivative of a loss", loss([](const array& x) {
         array places = argmax(x, -1, true);
         return sum(logsumexp(x, -1, true) - take_along_axis(x, places, -1));
       })},
      {"mapped",
       [](const Arrays& in) {
         return vmap(Function([](const Arrays& x) { return Arrays{x[0] / sum(x[0])}; }))(in);
       }},
      {"mapped and flat", [](const Arrays& in) {
         return vmap(Function([](const Arrays& x) { return Arrays{reshape(x[0], {-1, 3})}; }))(in);
       }}};
  TemporaryFolder folder;
  for (const Row& row : rows) {
    INFO(row.name);
    Function fast = compile(row.f, true);
    export_function(folder / "f", row.f, {numbered({4, 6})}, true);
    ImportedFunction saved = import_function(folder / "f");
    for (const Shape& shape : {Shape{4, 6}, Shape{2, 3}, Shape{8, 12}, Shape{6, 9}}) {
      Arrays inputs = {numbered(shape)}, expected = row.f(inputs), got = fast(inputs),
             loaded = saved(inputs);
      REQUIRE(got.size() == expected.size());
      REQUIRE(loaded.size() == expected.size());
      for (size_t k = 0; k < expected.size(); ++k) {
        INFO("output " << k << ", " << shape[0] << " x " << shape[1]);
        CHECK(has_same_bits(got[k], expected[k]));
        CHECK(has_same_bits(loaded[k], expected[k]));
      }
    }
  }
}

TEST_CASE(
    "shapeless compile: what was equal in the trace and is broadcast later has its derivative") {
  Function f = [](const Arrays& in) {
    return vjp([](const Arrays& x) { return Arrays{x[0] * x[1]}; }, in, {in[0] * in[1]}).second;
  };
  Function fast = compile(f, true);
  fast({numbered({4, 6}), numbered({4, 6})});
  Arrays inputs = {numbered({4, 6}), numbered({1, 6})};
  Arrays got = fast(inputs), expected = f(inputs);
  CHECK(has_same_bits(got[0], expected[0]));
  CHECK(has_same_bits(got[1], expected[1]));
}

TEST_CASE("shapeless compile: given sizes that do not fit are refused when it is called") {
  Function fixed =
      compile(Function([](const Arrays& in) { return Arrays{reshape(in[0], {24})}; }), true);
  CHECK(fixed({numbered({4, 6})})[0].shape() == Shape{24});
  CHECK(fixed({numbered({3, 8})})[0].shape() == Shape{24});
  CHECK_THROWS_WITH_AS(fixed({numbered({4, 5})}), doctest::Contains("[reshape]"),
                       std::invalid_argument);
  Function wide = compile(
      Function([](const Arrays& in) { return Arrays{broadcast_to(in[0], {3, 4, 6})}; }), true);
  CHECK(wide({numbered({4, 6})})[0].shape() == Shape{3, 4, 6});
  CHECK(wide({numbered({1, 6})})[0].shape() == Shape{3, 4, 6});
  CHECK_THROWS_WITH_AS(wide({numbered({8, 6})}), doctest::Contains("broadcast"),
                       std::invalid_argument);
}

TEST_CASE("shapeless compile: convolutions follow their input, and their kernel where they can") {
  auto images = [](int batch, int size) { return numbered({batch, size, size + 1, 2}); };
  array weight = numbered({4, 3, 2, 2}), larger = numbered({2, 4, 3, 2});
  // Of two high paddings that give one shape in the trace, each keeps its own.
  Function plain = [](const Arrays& in) {
    std::vector<int> two = {2, 2}, one = {1, 1}, none = {0, 0};
    return Arrays{conv2d(in[0], in[1], {1, 1}, {1, 2}),
                  conv_general(in[0], in[1], two, none, none, one, one, 1, true),
                  conv_general(in[0], in[1], two, none, {1, 1}, one, one, 1, true)};
  };
  Function compiled = compile(plain, true);
  for (const Arrays& in :
       {Arrays{images(1, 5), weight}, Arrays{images(3, 8), weight}, Arrays{images(2, 6), larger}}) {
    Arrays got = compiled(in), expected = plain(in);
    for (size_t k = 0; k < got.size(); ++k) CHECK(array_equal(got[k], expected[k]).item<bool>());
  }
  CHECK_THROWS_WITH_AS(compiled({images(1, 1), larger}), doctest::Contains("does not fit"),
                       std::invalid_argument);

  // The padding of a transposed one is made of the size of its kernel.
  Function transposed = [](const Arrays& in) {
    return Arrays{conv_transpose2d(in[0], in[1], {2, 2}, {1, 1})};
  };
  compiled = compile(transposed, true);
  for (const array& in : {images(1, 5), images(2, 7)}) {
    CHECK(array_equal(compiled({in, weight})[0], transposed({in, weight})[0]).item<bool>());
  }
  CHECK_THROWS_AS(compiled({images(1, 5), larger}), std::invalid_argument);

  // That of a derivative, of all sizes.
  Function slope = [](const Arrays& in) {
    return Arrays{grad([&](const array& x) { return sum(conv2d(x, in[1])); })(in[0])};
  };
  CHECK_THROWS_WITH_AS(compile(slope, true)({images(1, 5), weight}),
                       doctest::Contains("a function with Convolution"), std::invalid_argument);
}

TEST_CASE("shapeless compile: low-bit products, scatters and searches follow their inputs") {
  std::vector<array> packed = quantize(numbered({8, 64}), 32, 4);
  Function product = [&](const Arrays& in) {
    return Arrays{quantized_matmul(in[0], packed[0], packed[1], packed[2], true, 32, 4)};
  };
  Function put = [](const Arrays& in) {
    return Arrays{scatter_add(in[0], in[1], in[2], 0), searchsorted(flatten(in[0]), in[2])};
  };
  Function compiled_product = compile(product, true), compiled_put = compile(put, true);
  for (int size : {2, 3, 5}) {
    Arrays x = {numbered({size, 64})};
    CHECK(array_equal(compiled_product(x)[0], product(x)[0]).item<bool>());
    Arrays in = {numbered({4, size}), array({1, 3}), numbered({2, 1, size})};
    Arrays got = compiled_put(in), expected = put(in);
    for (size_t k = 0; k < 2; ++k) CHECK(array_equal(got[k], expected[k]).item<bool>());
  }
  CHECK_THROWS_WITH_AS(compiled_product({numbered({2, 32})}), doctest::Contains("must match"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(compiled_put({numbered({4, 3}), array({1, 3}), numbered({2, 1, 4})}),
                       doctest::Contains("[scatter_add] expected updates"), std::invalid_argument);
}

TEST_CASE("shapeless compile: products with low-bit matrices by number follow their inputs") {
  std::vector<array> packed = quantize(numbered({3, 8, 64}), 32, 4);
  // Without numbers for x each of its matrices is multiplied by the one of its place.
  Function plain = [&](const Arrays& in) {
    return Arrays{
        gather_qmm(in[0], packed[0], packed[1], packed[2], std::nullopt, in[1], true, 32, 4),
        gather_qmm(in[0], packed[0], packed[1], packed[2], in[1], std::nullopt, true, 32, 4)};
  };
  Function compiled = compile(plain, true);
  for (int size : {3, 1}) {
    Arrays in = {numbered({size, 2, 64}), size == 3 ? array({2, 0, 1}) : array({0})};
    Arrays got = compiled(in), expected = plain(in);
    for (size_t k = 0; k < got.size(); ++k) CHECK(has_same_bits(got[k], expected[k]));
  }
  Function slope = [&](const Arrays& in) {
    return vjp(plain, {in[0], in[1]}, {ones({3, 2, 8}), ones({3, 2, 8})}).second;
  };
  CHECK_THROWS_AS(compile(slope, true)({numbered({3, 2, 64}), array({2, 0, 1})}),
                  std::invalid_argument);
}

TEST_CASE("shapeless compile: a kernel of the user's is right for the shapes of its call") {
  if (!metal::is_available()) return;
  auto kernel = fast::metal_kernel("doubled", {"x"}, {"y"},
                                   "uint i = thread_position_in_grid.x; y[i] = 2 * x[i];");
  Function plain = [&](const Arrays& in) {
    int size = static_cast<int>(in[0].size());
    return Arrays{kernel({in[0]}, {in[0].shape()}, {float32}, {size, 1, 1}, {size, 1, 1}, {},
                         std::nullopt, false, {})[0] +
                  sum(in[1])};
  };
  Function compiled = compile(plain, true);
  for (int other : {2, 5}) {
    Arrays in = {numbered({3, 4}), numbered({other})};
    CHECK(has_same_bits(compiled(in)[0], plain(in)[0]));
  }
  CHECK_THROWS_WITH_AS(compiled({numbered({2, 4}), numbered({2})}),
                       doctest::Contains("numbers of the call that was traced"),
                       std::invalid_argument);
  TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(
      export_function(folder / "f", plain, {numbered({3, 4}), numbered({2})}, true),
      doctest::Contains("doubled"), std::invalid_argument);
}

TEST_CASE("shapeless compile: negative sizes that are no -1 name no dimension") {
  Function f =
      compile(Function([](const Arrays& in) { return Arrays{reshape(in[0], {-2, 6})}; }), true);
  CHECK_THROWS_AS(f({numbered({4, 6})}), std::invalid_argument);
}
