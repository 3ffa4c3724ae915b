// compile: which calls become one node, and that no bit of a result depends on it.
#include <cstring>

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

TEST_CASE("compile: a compiled call takes over memory that nobody else needs") {
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

TEST_CASE("compile: random graphs, bit for bit, in all modes") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    int rows = 1 + draw(random, 9), length = 1 + draw(random, 70);
    Arrays inputs = {astype(numbers({rows, length}, seed), float32),
                     astype(numbers({rows, 1}, seed + 1), float32),
                     astype(numbers({1, length}, seed + 2), float32)};
    if (seed % 3 == 0) {
      inputs[0] = transpose(astype(numbers({length, rows}, seed + 3), float32));
    }
    if (seed % 4 == 0) {
      for (array& input : inputs) input = astype(input, seed % 8 == 0 ? float64 : bfloat16);
    }
    Function f = [seed](const Arrays& in) { return random_graph(seed, in); };
    Arrays expected = f(inputs);
    for (CompileMode mode :
         {CompileMode::enabled, CompileMode::no_simplify, CompileMode::no_fuse}) {
      set_compile_mode(mode);
      Arrays got = compile(f)(inputs);
      enable_compile();
      for (size_t k = 0; k < expected.size(); ++k) {
        INFO("seed " << seed << ", output " << k << ", mode " << static_cast<int>(mode));
        CHECK(same_bits(got[k], expected[k]));
      }
    }
  }
}
