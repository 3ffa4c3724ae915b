// compile: which calls become one node, and that no bit of a result depends on it.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/copy.h"
#include "transforms/compile_kernels_setting.h"
#include "transforms/compiled.h"
#include "transforms/differentiate.h"
#include "transforms/program.h"
#include "transforms/random_programs.h"

#include <holdfast/transforms_impl.h>

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

// The names of the nodes that a call makes.
std::vector<std::string> node_names(const Function& f, const Arrays& like,
                                    detail::ProgramOptions options = {}) {
  detail::InTracing tracing;
  Arrays inputs;
  for (const array& a : like) inputs.push_back(detail::placeholder(a.shape(), a.dtype()));
  std::vector<std::string> names;
  detail::Program program(inputs, f(inputs), options);
  for (const detail::Call& call : program.calls()) {
    names.push_back(call.primitive->name());
  }
  return names;
}

bool same_bits(array a, array b) {
  a = contiguous(a);
  b = contiguous(b);
  eval(a, b);
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

// A graph of several values, each computed from earlier ones: element-wise over matrices, rows and
// columns, and reductions along either axis.
Arrays random_graph(uint64_t seed, const Arrays& in) {
  Random random(seed);
  Arrays values = in;
  auto any = [&]() -> const array& {
    return values[static_cast<size_t>(draw(random, static_cast<int>(values.size())))];
  };
  int length = 5 + draw(random, 40);
  for (int i = 0; i < length; ++i) {
    array a = any(), b = any();
    switch (draw(random, 12)) {
      case 0:
        values.push_back(sum(a, -1, true));
        break;
      case 1:
        values.push_back(max(a, 0, true));
        break;
      case 2:
        values.push_back(sin(a));
        break;
      case 3:
        values.push_back(where(a > b, a, b * array(0.5f, b.dtype())));
        break;
      case 4:
        values.push_back(astype(a, draw(random, 2) ? float16 : float32));
        break;
      case 5:
        values.push_back(a - mean(a, -1, true));
        break;
      case 6:
        values.push_back(softmax(a, -1));
        break;
      case 7:
        values.push_back(logsumexp(a, -1, true));
        break;
      case 8:
        values.push_back(tanh(a) * b);
        break;
      default:
        values.push_back((a + b) * array(0.25f, a.dtype()));
    }
  }
  Arrays outputs = {values.back()};
  for (int i = 0; i < 3; ++i) outputs.push_back(any());
  return outputs;
}

// The same with whole numbers of at most 64, whose sums are exact in whatever order they go.
Arrays random_exact_graph(uint64_t seed, const Arrays& in) {
  Random random(seed);
  Arrays values = in;
  auto any = [&]() -> const array& {
    return values[static_cast<size_t>(draw(random, static_cast<int>(values.size())))];
  };
  auto wrapped = [](const array& a) { return remainder(a, array(64.0f, a.dtype())); };
  int length = 5 + draw(random, 40);
  for (int i = 0; i < length; ++i) {
    array a = any(), b = any();
    switch (draw(random, 8)) {
      case 0:
        values.push_back(wrapped(sum(a, -1, true)));
        break;
      case 1:
        values.push_back(max(a, 0, true));
        break;
      case 2:
        values.push_back(wrapped(sum(a * b, 0, true)));
        break;
      case 3:
        values.push_back(where(a > b, a, wrapped(negative(b))));
        break;
      case 4:
        values.push_back(astype(a, draw(random, 2) ? int32 : float32));
        break;
      case 5:
        values.push_back(max(a, -1, true) - a);
        break;
      default:
        values.push_back(wrapped(a + b));
    }
  }
  Arrays outputs = {values.back()};
  for (int i = 0; i < 3; ++i) outputs.push_back(any());
  return outputs;
}

void check_in_all_modes(const Function& f, const Arrays& inputs, uint64_t seed) {
  Arrays expected = f(inputs);
  for (CompileMode mode : {CompileMode::enabled, CompileMode::no_simplify, CompileMode::no_fuse}) {
    set_compile_mode(mode);
    Arrays got = compile(f)(inputs);
    enable_compile();
    for (size_t k = 0; k < expected.size(); ++k) {
      INFO("seed " << seed << ", output " << k << ", mode " << static_cast<int>(mode));
      CHECK(same_bits(got[k], expected[k]));
    }
  }
}

// How many seeds are tried, and from which on: HOLDFAST_TEST_SEED says where, for one.
std::pair<uint64_t, uint64_t> seeds(uint64_t count) {
  if (const char* given = std::getenv("HOLDFAST_TEST_SEED")) {
    uint64_t seed = std::strtoull(given, nullptr, 10);
    return {seed, seed};
  }
  return {1, count};
}

}  // namespace

TEST_CASE("compile: element-wise calls are one node") {
  array x({1.0f, 2.0f});
  Function chain = [](const Arrays& in) {
    return Arrays{sin(in[0]) * array(2.0f) + in[0] * array(3.0f)};
  };
  CHECK(node_names(chain, {x}) == std::vector<std::string>{"Compiled"});
  CHECK(node_names(chain, {x}, {.fuse = false}).size() == 4);
  // The second product is not needed by the first call, and yet belongs to the pass.
  array result = compile(chain)({x})[0];
  CHECK(std::string(result.primitive().name()) == "Compiled");
  CHECK(result.inputs().size() == 3);
  set_compile_mode(CompileMode::no_fuse);
  array apart = compile(chain)({x})[0];
  enable_compile();
  CHECK(std::string(apart.primitive().name()) == "Add");
  CHECK(same_bits(result, apart));
  // An op alone stays what it is.
  CHECK(node_names([](const Arrays& in) { return Arrays{sin(in[0])}; }, {x}) ==
        std::vector<std::string>{"Sin"});
}

TEST_CASE("compile: chains that have nothing to do with each other stay apart") {
  array x({1.0f, 2.0f});
  Function two = [](const Arrays& in) {
    array a = in[0] * array(2.0f), b = in[1] * array(2.0f);
    return Arrays{sin(a) + a, sin(b) + b};
  };
  CHECK(node_names(two, {x, x}) == std::vector<std::string>{"Compiled", "Compiled"});
  check_values<float>(compile(two)({array({0.0f}), array({0.0f})})[1], {1}, {0});
}

TEST_CASE("compile: nothing joins a group that its inputs wait for") {
  array x({1.0f, 2.0f, 3.0f});
  // `b` has the shape of `a`, but needs the sum of it.
  Function f = [](const Arrays& in) {
    array a = in[0] * array(2.0f) + in[0];
    array total = cumsum(a, 0);
    array b = a * total - array(1.0f);
    return Arrays{b, a};
  };
  std::vector<std::string> names = node_names(f, {x});
  REQUIRE(names.size() == 3);
  CHECK(names[0] == "Compiled");
  CHECK(names[2] == "Compiled");
  check_values<float>(compile(f)({x})[0], {3}, {8, 53, 161});
  check_values<float>(compile(f)({x})[1], {3}, {3, 6, 9});
}

TEST_CASE("compile: long chains and many inputs are cut, not refused") {
  Function f = [](const Arrays& in) {
    array y = in[0];
    for (int i = 0; i < 100; ++i) y = sin(y) + in[static_cast<size_t>(i) % in.size()];
    return Arrays{y};
  };
  Arrays inputs;
  for (int i = 0; i < 20; ++i) inputs.push_back(full({5}, 0.1f * static_cast<float>(i)));
  CHECK(node_names(f, inputs).size() > 5);
  CHECK(same_bits(compile(f)(inputs)[0], f(inputs)[0]));
}

TEST_CASE_FIXTURE(OnCpu, "compile: a compiled call takes over memory that nobody else needs") {
  Function f = compile([](const Arrays& in) { return Arrays{in[0] * array(2.0f) + array(1.0f)}; });
  array x = ones({1000});
  x.eval();
  const void* memory = x.data<char>();
  array y = f({x})[0];
  x = array(0.0f);
  y.eval();
  CHECK(y.data<char>() == memory);
  array z = f({y})[0];
  z.eval();
  CHECK(z.data<char>() != y.data<char>());
  CHECK(z.data<float>()[0] == 7);
}

namespace {

void check_random_graphs(uint64_t first, uint64_t last) {
  for (uint64_t seed = first; seed <= last; ++seed) {
    Random random(seed);
    int rows = 1 + draw(random, 20), length = 1 + draw(random, 200);
    Arrays inputs = {numbers({rows, length}, seed, float32), numbers({rows, 1}, seed + 1, float32),
                     numbers({1, length}, seed + 2, float32)};
    if (seed % 4 == 0) {
      for (array& input : inputs)
        input =
            astype(input, seed % 8 == 0 && default_device() == Device::cpu ? float64 : bfloat16);
    }
    if (seed % 3 == 0)
      inputs[0] = slice(concatenate({inputs[0], inputs[0]}, 1), {0, 0}, {rows, length});
    check_in_all_modes([seed](const Arrays& in) { return random_graph(seed, in); }, inputs, seed);
    // Sums of an array that is not row-major may go by its columns, those of a program by its rows.
    array turned = transpose(floor(numbers({length, rows}, seed + 3, float32) * array(64.0f)));
    for (array& input : inputs) input = floor(astype(input, float32) * array(64.0f));
    inputs[0] = turned;
    check_in_all_modes([seed](const Arrays& in) { return random_exact_graph(seed, in); }, inputs,
                       seed);
  }
}

}  // namespace

TEST_CASE("compile: random graphs, bit for bit, in all modes") {
  auto [first, last] = seeds(400);
  check_random_graphs(first, last);
}

TEST_CASE("compile: random graphs as kernels, bit for bit, in all modes") {
  CompileKernelsSetting setting(CompileKernels::at_once);
  auto [first, last] = seeds(40);
  check_random_graphs(first, last);
}

TEST_CASE("compile: hundreds of random graphs as kernels [long]") {
  CompileKernelsSetting setting(CompileKernels::at_once);
  check_random_graphs(7000, 7800);
}

TEST_CASE("compile: thousands of random graphs [long]") { check_random_graphs(1000, 6000); }

TEST_CASE("compile: sums of columns, in another order, stay within the rounding of a sum") {
  constexpr int rows = 64, length = 300;
  array x = transpose(numbers({length, rows}, 7, float32));
  Function f = [](const Arrays& in) { return Arrays{sum(square(in[0]) * in[1], -1)}; };
  array weight = numbers({length}, 8, float32);
  array got = compile(f)({x, weight})[0], expected = f({x, weight})[0];
  array sizes = sum(square(x) * abs(weight), -1);
  eval(got, expected, sizes);
  // Each of the two sums is off by at most (n - 1) u times the sum of the terms' sizes.
  constexpr double bound = 2.0 * (length - 1) * 0x1p-24;
  for (int i = 0; i < rows; ++i) {
    double distance = std::abs(double{got.data<float>()[i]} - double{expected.data<float>()[i]});
    CHECK(distance <= bound * double{sizes.data<float>()[i]});
  }
}

TEST_CASE_FIXTURE(OnCpu, "compile: reductions of rows take in what stands around them") {
  auto norm = [](const array& x, const array& weight) {
    array centred = x - mean(x, -1, true);
    return centred * rsqrt(mean(square(centred), -1, true) + array(1e-5f)) * weight;
  };
  auto loss = [](const array& x) { return sum(logsumexp(x, -1)); };
  struct Case {
    std::string name;
    Function function;
    std::vector<std::string> nodes;  // that remain
  };
  Case cases[] = {
      {"norm", [&](const Arrays& in) { return Arrays{norm(in[0], in[1])}; }, {"CompiledRows"}},
      {"softmax of a product",
       [](const Arrays& in) {
         array x = in[0] * in[1], power = exp(x - max(x, -1, true));
         return Arrays{power / sum(power, -1, true)};
       },
       {"CompiledRows"}},
      // What is squeezed is used inside and returned: a view of what the program gives.
      {"without the axis",
       [](const Arrays& in) {
         array total = sum(in[0] * in[0], -1);
         return Arrays{total + array(1.0f), in[0] / expand_dims(total, -1), total};
       },
       {"CompiledRows"}},
      {"gradient of a loss",
       [&](const Arrays& in) { return Arrays{grad(loss)(in[0]), in[0] > in[1]}; },
       {"CompiledRows", "Greater"}},
      {"other dtypes",
       [](const Arrays& in) {
         array x = astype(in[0], float64), is_large = x > mean(x, -1, true);
         return Arrays{sum(where(is_large, x, array(0.0, float64)), -1, true) * x,
                       astype(sum(is_large, -1), float32)};
       },
       {"CompiledRows"}},
      {"long chains",
       [](const Arrays& in) {
         array y = in[0];
         for (int i = 0; i < 100; ++i) y = in[1] - sin(y);
         return Arrays{y - sum(y, -1, true)};
       },
       {"CompiledRows"}},
  };
  for (const Case& c : cases) {
    for (const Shape& shape : {Shape{300, 1000}, Shape{5, 7, 32}, Shape{4, 8192}}) {
      Arrays inputs = {numbers(shape, 1, float32), numbers({shape.back()}, 2, float32)};
      std::vector<std::string> names = node_names(c.function, inputs);
      INFO(c.name << ", rows of " << shape.back());
      CHECK(names == c.nodes);
      Arrays expected = c.function(inputs);
      for (bool past_cache : {false, true}) {
        if (past_cache) kernels::cpu::force_stream_threshold(1);
        Arrays got = compile(c.function)(inputs);
        eval(got);
        kernels::cpu::unforce_stream_threshold();
        for (size_t k = 0; k < got.size(); ++k) CHECK(same_bits(got[k], expected[k]));
      }
    }
  }
}

TEST_CASE("compile: rows that look like something else stay what they are") {
  // As many rows as elements in one: what has lost its axis broadcasts along the other one.
  array square_matrix = numbers({64, 64}, 1, float32);
  Function f = [](const Arrays& in) {
    array total = sum(in[0], -1) * array(2.0f);
    return Arrays{in[0] * total, in[0] * expand_dims(total, -1), total};
  };
  Arrays expected = f({square_matrix}), got = compile(f)({square_matrix});
  for (size_t k = 0; k < got.size(); ++k) CHECK(same_bits(got[k], expected[k]));
  array cube = numbers({32, 32, 32}, 1, float32);
  expected = f({cube}), got = compile(f)({cube});
  for (size_t k = 0; k < got.size(); ++k) CHECK(same_bits(got[k], expected[k]));
  // Other axes, other streams, few rows.
  Function other = [](const Arrays& in) {
    array x = in[0] * in[0];
    return Arrays{x - sum(x, 0, true), x - sum(x)};
  };
  std::vector<std::string> names = node_names(other, {square_matrix});
  CHECK(std::count(names.begin(), names.end(), "CompiledRows") == 0);
}
