// compile: traces, what they depend on, and that they give what the function gives.
#include <atomic>
#include <cstring>
#include <thread>

#include "transforms/differentiate.h"
#include "transforms/program.h"
#include "transforms/random_programs.h"

#include <holdfast/transforms_impl.h>

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

std::atomic<int> plain_calls{0};
Arrays plain(const Arrays& in) {
  ++plain_calls;
  return {in[0] + in[0]};
}

// Calls that remain of a function of one array.
size_t program_size(const Function& f, const array& like, bool simplify) {
  detail::InTracing tracing;
  Arrays inputs = {detail::placeholder(like.shape(), like.dtype())};
  return detail::Program(inputs, f(inputs), {.simplify = simplify, .fuse = false}).calls().size();
}

}  // namespace

TEST_CASE("compile: one trace for each signature") {
  int calls = 0;
  Function f = compile([&](const Arrays& in) {
    ++calls;
    return Arrays{in[0] * array(2.0f), in[0]};
  });
  array x({1.0f, 2.0f}), y({3.0f, 4.0f});
  check_values<float>(f({x})[0], {2}, {2, 4});
  check_values<float>(f({y})[0], {2}, {6, 8});
  check_values<float>(f({y})[1], {2}, {3, 4});
  CHECK(calls == 1);
  check_values<float>(f({array({1.0f, 2.0f, 3.0f})})[0], {3}, {2, 4, 6});
  CHECK(calls == 2);
  CHECK(f({array({1, 2})})[0].dtype() == float32);
  CHECK(calls == 3);
  f({x, y});
  CHECK(calls == 4);
  f({x});
  CHECK(calls == 4);
  Stream other = new_stream(Device::cpu);
  {
    StreamContext context(other);
    array result = f({x})[0];
    CHECK(result.primitive().stream() == other);
    check_values<float>(result, {2}, {2, 4});
  }
  CHECK(calls == 5);
}

TEST_CASE("compile: functions without state share their traces") {
  plain_calls = 0;
  array x({1.0f, 2.0f});
  check_values<float>(compile(plain)({x})[0], {2}, {2, 4});
  check_values<float>(compile(plain)({x})[0], {2}, {2, 4});
  CHECK(plain_calls == 1);
  auto lambda = [](const Arrays& in) { return Arrays{in[0] - in[0]}; };
  check_values<float>(compile(lambda)({x})[0], {2}, {0, 0});
}

TEST_CASE("compile: modes, and nothing to compile") {
  int calls = 0;
  Function f = compile([&](const Arrays& in) {
    ++calls;
    return Arrays{in[0] * in[0]};
  });
  array x({1.0f, 2.0f});
  disable_compile();
  f({x});
  f({x});
  CHECK(calls == 2);
  CHECK_NOTHROW(compile(nullptr));
  for (CompileMode mode : {CompileMode::no_simplify, CompileMode::no_fuse, CompileMode::enabled}) {
    set_compile_mode(mode);
    check_values<float>(f({x})[0], {2}, {1, 4});
  }
  enable_compile();
  CHECK(calls == 5);  // a trace for each mode
  CHECK_THROWS_AS(compile(nullptr), std::invalid_argument);
}

TEST_CASE("compile: what is the same is computed once") {
  array x({1.0f, 2.0f});
  Function twice = [](const Arrays& in) {
    array a = sin(in[0]) * array(2.0f), b = sin(in[0]) * array(2.0f);
    return Arrays{a + b, stop_gradient(a)};
  };
  CHECK(program_size(twice, x, false) == 6);
  CHECK(program_size(twice, x, true) == 3);
  // The same op with other numbers, shapes or axes is not the same.
  Function different = [](const Arrays& in) {
    array row = reshape(in[0], {1, 2}), column = reshape(in[0], {2, 1});
    return Arrays{in[0] * array(2.0f) + in[0] * array(3.0f), sum(row, 0) + sum(row, 1),
                  sum(column, 1), astype(in[0], float16), astype(in[0], int32)};
  };
  CHECK(program_size(different, x, true) == program_size(different, x, false));
  // Parts of one split are not each other.
  Function parts = [](const Arrays& in) {
    Arrays both = split(in[0], 2), again = split(in[0], 2);
    return Arrays{both[1] - again[0], both[0] - again[0]};
  };
  CHECK(program_size(parts, x, true) == 3);
  check_values<float>(compile(parts)({x})[0], {1}, {1});
  check_values<float>(compile(parts)({x})[1], {1}, {0});
}

TEST_CASE("compile: inside and around other transforms") {
  Function squares = compile([](const Arrays& in) { return Arrays{sum(in[0] * in[0])}; });
  array x({1.0f, 2.0f, 3.0f});
  squares({x});
  auto loss = [&](const array& y) { return squares({y})[0]; };
  check_values<float>(grad(loss)(x), {3}, {2, 4, 6});
  check_values<float>(vmap(loss)(reshape(x, {3, 1})), {3}, {1, 4, 9});
  Function gradient = compile([&](const Arrays& in) { return Arrays{grad(loss)(in[0])}; });
  check_values<float>(gradient({x})[0], {3}, {2, 4, 6});
  check_values<float>(gradient({x + x})[0], {3}, {4, 8, 12});
  Function nested = compile([&](const Arrays& in) { return gradient({gradient(in)[0]}); });
  check_values<float>(nested({x})[0], {3}, {4, 8, 12});
  check_values<float>(nested({x + x})[0], {3}, {8, 16, 24});
}

TEST_CASE("compile: what is captured is part of the trace, arguments are not") {
  array scale(2.0f);
  Function f = compile([&](const Arrays& in) { return Arrays{in[0] * scale}; });
  check_values<float>(f({array({1.0f})})[0], {1}, {2});
  scale = array(5.0f);
  check_values<float>(f({array({1.0f})})[0], {1}, {2});
  Function g = compile([](const Arrays& in) { return Arrays{in[0] * in[1]}; });
  check_values<float>(g({array({1.0f}), array(2.0f)})[0], {1}, {2});
  check_values<float>(g({array({1.0f}), array(5.0f)})[0], {1}, {5});
}

TEST_CASE("compile: a failed trace leaves nothing behind") {
  bool fails = true;
  Function f = compile([&](const Arrays& in) {
    array y = in[0] * in[0];
    if (fails) y.eval();
    return Arrays{y};
  });
  array x({3.0f});
  CHECK_THROWS_WITH_AS(f({x}), doctest::Contains("cannot be evaluated"), std::invalid_argument);
  CHECK_THROWS_AS(f({x}), std::invalid_argument);
  fails = false;
  check_values<float>(f({x})[0], {1}, {9});
  CHECK_FALSE(x.is_tracer());
}

TEST_CASE("compile: many threads at once") {
  Function f = compile([](const Arrays& in) {
    array y = in[0];
    for (int i = 0; i < 10; ++i) y = sin(y) + in[0];
    return Arrays{y};
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i < 40; ++i) {
        array x = full({1 + (i + t) % 5}, 0.01f * static_cast<float>(i));
        float expected = 0.01f * static_cast<float>(i), start = expected;
        for (int k = 0; k < 10; ++k) expected = std::sin(expected) + start;
        array result = f({x})[0];
        result.eval();
        if (std::abs(result.data<float>()[0] - expected) > 1e-5f) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(OnCpu, "compile: random programs, bit for bit") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    std::vector<Step> program = random_program(random);
    Function f = [&](const Arrays& in) { return Arrays{run(program, in[0])}; };
    Function g = [&](const Arrays& in) {
      auto loss = [&](const array& y) { return sum(run(program, y)); };
      auto [value, gradient] = value_and_grad(loss)(in[0]);
      return Arrays{value, gradient};
    };
    for (const Function& function : {f, g}) {
      Function fast = compile(function);
      for (const Shape& shape : {Shape{3}, Shape{2, 2}, Shape{3}}) {
        array x = numbers(shape, random());
        Arrays expected = function({x}), got = fast({x});
        for (size_t k = 0; k < expected.size(); ++k) {
          INFO("seed " << seed << ", output " << k);
          std::vector<double> ours = values_of<double>(got[k]),
                              theirs = values_of<double>(expected[k]);
          REQUIRE(ours.size() == theirs.size());
          CHECK(std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(double)) == 0);
        }
      }
    }
  }
}

TEST_CASE("compile: calls of different ops with the same arguments stay apart") {
  array a({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2}), b({5.0f, 6.0f, 7.0f, 8.0f}, {2, 2});
  Arrays got = compile([](const Arrays& x) {
    return Arrays{matmul(x[0], x[1]), x[0] + x[1], copy(x[0]), contiguous(x[0]), square(x[0])};
  })({a, b});
  check_values<float>(got[0], {2, 2}, {19, 22, 43, 50});
  check_values<float>(got[1], {2, 2}, {6, 8, 10, 12});
  check_values<float>(got[4], {2, 2}, {1, 4, 9, 16});
}
