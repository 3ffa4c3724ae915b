// Random numbers: the values are a contract. The golden ones were printed by MLX 0.32.
#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// A key with something in both words.
array test_key() { return random::key((uint64_t{1} << 40) + 5); }

template <typename T, typename U>
std::vector<U> bits_of(const array& a) {
  std::vector<U> result;
  for (T value : values_of<T>(a)) result.push_back(std::bit_cast<U>(value));
  return result;
}

// A sum in which every place counts differently.
template <typename U>
uint64_t weighted_sum(const std::vector<U>& values) {
  uint64_t total = 0;
  for (size_t i = 0; i < values.size(); ++i) total += (i + 1) * uint64_t{values[i]};
  return total;
}

}  // namespace

TEST_CASE("keys and splits") {
  check_values<uint32_t>(test_key(), {2}, {256, 5});
  std::vector<uint32_t> words = {2221101598u, 767178765u,  3471728158u, 3399764655u, 2367257586u,
                                 210261176u,  2881675662u, 2147882565u, 2539395885u, 4268579874u,
                                 150403559u,  3268830570u, 512393707u,  1766161347u};
  check_values<uint32_t>(random::split(test_key(), 7), {7, 2}, words);
  check_values<uint32_t>(random::bits({14}, test_key()), {14}, words);
  CHECK(weighted_sum(values_of<uint32_t>(random::split(test_key(), 50001))) ==
        10737754603540957416u);
  auto [first, second] = random::split(test_key());
  array both = random::split(test_key(), 2);
  CHECK(values_of<uint32_t>(first) == values_of<uint32_t>(take(both, 0, 0)));
  CHECK(values_of<uint32_t>(second) == values_of<uint32_t>(take(both, 1, 0)));
  CHECK(random::split(test_key(), 0).shape() == Shape{0, 2});
}

TEST_CASE("bits of one and two bytes are the bytes of the words") {
  for (int count : {1, 2, 3, 4, 5, 7, 8, 31, 1000}) {
    for (int width : {1, 2}) {
      int words = (count * width + 3) / 4;
      std::vector<uint32_t> whole = values_of<uint32_t>(random::bits({words}, 4, test_key()));
      array narrow = random::bits({count}, width, test_key());
      CHECK(narrow.dtype() == (width == 1 ? uint8 : uint16));
      narrow.eval();
      CHECK(std::memcmp(narrow.data<char>(), whole.data(), static_cast<size_t>(count * width)) ==
            0);
    }
  }
  check_error<std::invalid_argument>("bits", [] { random::bits({2}, 3, random::key(0)); });
  check_error<std::invalid_argument>("bits", [] { random::bits({2}, array({1, 2}, int32)); });
  check_error<std::invalid_argument>("bits", [] { random::bits({2}, array({1}, uint32)); });
  check_error<std::invalid_argument>("bits", [] { random::bits({-1}, random::key(0)); });
}

TEST_CASE("uniform is bit-exact") {
  array k = test_key();
  CHECK(bits_of<float, uint32_t>(random::uniform({7}, k)) ==
        std::vector<uint32_t>{0x3ef6d57fu, 0x3f06d9bbu, 0x3f24c46fu, 0x3d823f36u, 0x3e5357f3u,
                              0x3f68ec21u, 0x3e4a95bdu});
  CHECK(bits_of<float, uint32_t>(random::uniform(-0.1f, 0.7f, {5}, float32, k)) ==
        std::vector<uint32_t>{0x3dcb6233u, 0x3ef60445u, 0x3f056c76u, 0x3e82d489u, 0x3e2d9dc8u});
  CHECK(bits_of<float16_t, uint16_t>(random::uniform(-0.1f, 0.7f, {5}, float16, k)) ==
        std::vector<uint16_t>{0x2e5c, 0x37b0, 0x382b, 0x3418, 0x316d});
  CHECK(bits_of<bfloat16_t, uint16_t>(random::uniform(-0.1f, 0.7f, {5}, bfloat16, k)) ==
        std::vector<uint16_t>{0x3dcb, 0x3ef7, 0x3f05, 0x3e84, 0x3e30});
  CHECK(weighted_sum(bits_of<float, uint32_t>(random::uniform({100001}, k))) ==
        5264185817532109667u);
  CHECK(weighted_sum(bits_of<float16_t, uint16_t>(random::uniform({100001}, float16, k))) ==
        69144044426096u);
  array ranges =
      random::uniform(array({0.0f, 10.0f}), array({1.0f, 11.0f}), {3, 2}, float32, random::key(0));
  CHECK(values_of<float>(ranges)[1] == doctest::Approx(10.0997));
  CHECK(random::uniform({0, 3}).shape() == Shape{0, 3});
  CHECK(random::uniform({}, k).ndim() == 0);
  check_error<std::invalid_argument>("uniform", [] { random::uniform({}, int32); });
  check_error<std::invalid_argument>("uniform", [] { random::uniform({2}, float64); });
  check_error<std::invalid_argument>("uniform",
                                     [] { random::uniform(zeros({3}), ones({3}), {2}); });
}

TEST_CASE("normal agrees to the rounding of erfinv") {
  array k = test_key();
  auto check = [](const array& got, const std::vector<float>& expected, double epsilon) {
    std::vector<float> values = values_of<float>(astype(got, float32));
    REQUIRE(values.size() == expected.size());
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == doctest::Approx(expected[i]).epsilon(epsilon));
  };
  check(random::normal({5}, k),
        {-0.677212656f, 0.599639356f, 0.760368586f, -0.139798164f, -0.420845419f}, 1e-6);
  check(random::normal({5}, 2.0f, 3.0f, k),
        {-0.031637907f, 3.798918009f, 4.281105995f, 1.580605507f, 0.737463832f}, 2e-6);
  check(random::normal({5}, float16, k),
        {-0.6767578125f, 0.599609375f, 0.76025390625f, -0.1397705078125f, -0.4208984375f}, 1e-3);
  std::vector<complex64_t> c = values_of<complex64_t>(random::normal({2}, complex64, k));
  CHECK(c[0].real() == doctest::Approx(0.184027329));
  CHECK(c[0].imag() == doctest::Approx(-0.198500171));
  CHECK(c[1].imag() == doctest::Approx(-0.123081416));
  array many = random::normal({100000}, 1.0f, 2.0f, k);
  CHECK(mean(many).item<float>() == doctest::Approx(1.0).epsilon(0.02));
  CHECK(holdfast::std(many).item<float>() == doctest::Approx(2.0).epsilon(0.02));
  CHECK(values_of<bool>(all(isfinite(many)))[0]);
  CHECK(random::normal({3, 2}, float32, array({1.0f, 2.0f}), ones({3, 1}), k).shape() ==
        Shape{3, 2});
  check_error<std::invalid_argument>("normal", [] { random::normal({2}, int32); });
  check_error<std::invalid_argument>(
      "normal", [] { random::normal({2}, float32, zeros({3}), std::nullopt, std::nullopt); });
}

TEST_CASE("the default sequence: seeded, per thread, all from one time") {
  random::seed(5);
  CHECK(bits_of<float, uint32_t>(random::uniform({2})) ==
        std::vector<uint32_t>{0x3ed15163u, 0x3ef61733u});
  CHECK(bits_of<float, uint32_t>(random::uniform({2})) ==
        std::vector<uint32_t>{0x3ee403d9u, 0x3e9b550eu});
  std::vector<float> from_threads[2];
  for (std::vector<float>& values : from_threads) {
    std::thread([&] { values = values_of<float>(random::uniform({4})); }).join();
  }
  CHECK(from_threads[0] == from_threads[1]);
  random::KeySequence one(9), other(9);
  CHECK(values_of<uint32_t>(one.next()) == values_of<uint32_t>(other.next()));
}

TEST_CASE("randint, bernoulli, permutation: limits and errors") {
  array k = test_key();
  std::vector<int> drawn = values_of<int>(random::randint(-3, 4, {10000}, int32, k));
  CHECK(*std::min_element(drawn.begin(), drawn.end()) == -3);
  CHECK(*std::max_element(drawn.begin(), drawn.end()) == 3);
  check_values<int>(random::randint(5, 2, {2}, int32, k), {2}, {5, 5});
  check_values<int>(random::randint(1 << 24, (1 << 24) + 1, {2}, int32, k), {2},
                    {1 << 24, 1 << 24});
  CHECK(random::randint(0, 2, {3}, bool_, k).dtype() == bool_);
  check_error<std::invalid_argument>("randint", [] { random::randint(0, 2, {3}, float32); });
  CHECK(values_of<bool>(random::bernoulli(1.0f, {100}, k)) == std::vector<bool>(100, true));
  CHECK(values_of<bool>(random::bernoulli(0.0, {100}, k)) == std::vector<bool>(100, false));
  CHECK(random::bernoulli(std::optional<array>(k)).shape() == Shape{});
  CHECK(random::bernoulli(array({0.5f, 0.1f})).shape() == Shape{2});
  check_error<std::invalid_argument>("bernoulli", [] { random::bernoulli(array({1, 0})); });
  check_error<std::invalid_argument>("bernoulli", [] { random::bernoulli(zeros({2}), {3}); });
  check_values<int>(sort(astype(random::permutation(50, k), int32)), {50},
                    values_of<int>(arange(50)));
  CHECK(random::permutation(0).shape() == Shape{0});
  check_error<std::invalid_argument>("permutation", [] { random::permutation(-1); });
  check_error<std::out_of_range>("permutation", [] { random::permutation(array(1)); });
}

TEST_CASE("categorical draws from one distribution as MLX does") {
  array k = random::key(7), logits({0.0f, 1.0f, 2.0f, 3.0f}, {1, 4});
  check_values<uint32_t>(random::categorical(logits, -1, 8, k), {1, 8}, {0, 3, 2, 1, 3, 3, 3, 3});
  check_values<uint32_t>(random::categorical(transpose(logits), 0, Shape{2, 3}, k), {2, 3},
                         {1, 2, 3, 3, 3, 2});
  // What has no probability is never drawn, at either end.
  array certain({-INFINITY, 0.0f, -INFINITY}, {1, 3});
  for (uint32_t drawn : values_of<uint32_t>(random::categorical(certain, -1, 1000, k))) {
    CHECK(drawn == 1);
  }
}

TEST_CASE("categorical, gumbel, laplace, truncated_normal: shapes and errors") {
  array k = test_key(), logits = random::normal({3, 4, 5}, k);
  CHECK(random::categorical(logits).shape() == Shape{3, 4});
  CHECK(random::categorical(logits, 0, 7, k).shape() == Shape{4, 5, 7});
  CHECK(random::categorical(logits, 1, Shape{2, 3, 5}, k).shape() == Shape{2, 3, 5});
  check_values<uint32_t>(random::categorical(array({0.0f, -INFINITY}), -1, Shape{3}, k), {3},
                         {0, 0, 0});
  check_error<std::out_of_range>("categorical", [&] { random::categorical(logits, 3); });
  check_error<std::invalid_argument>("categorical",
                                     [&] { random::categorical(logits, 0, Shape{3}); });
  check_error<std::invalid_argument>("categorical", [&] { random::categorical(logits, 0, -1); });
  check_error<std::invalid_argument>("gumbel", [] { random::gumbel({2}, int32); });
  check_error<std::invalid_argument>("laplace", [] { random::laplace({2}, complex64); });
  check_error<std::invalid_argument>(
      "truncated_normal", [] { random::truncated_normal(array(0), array(1), {2}, int32); });
  check_error<std::invalid_argument>("truncated_normal",
                                     [] { random::truncated_normal(zeros({2}), array(1), {3}); });
  array drawn = random::truncated_normal(array(-0.5f), array(2.0f), {10000}, float32, k);
  CHECK(values_of<float>(min(drawn))[0] >= -0.5f);
  CHECK(values_of<float>(max(drawn))[0] <= 2.0f);
  CHECK(values_of<float>(mean(random::laplace({100000}, 1.0f, 0.5f, k)))[0] ==
        doctest::Approx(1).epsilon(0.02));
}

TEST_CASE_FIXTURE(OnCpu, "multivariate_normal") {
  array k = random::key(11), mean({0.0f, 1.0f}), cov({1.0f, 0.5f, 0.5f, 2.0f}, {2, 2});
  // Printed by MLX 0.32.
  std::vector<float> expected = {1.9525762f, 0.91711324f, 0.81849223f, 3.9120486f};
  std::vector<float> got =
      values_of<float>(random::multivariate_normal(mean, cov, {4}, float32, k));
  REQUIRE(got.size() == 8);
  for (size_t i = 0; i < 4; ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  CHECK(random::multivariate_normal(zeros({3, 2}), cov, {4, 3}, float32).shape() == Shape{4, 3, 2});
  CHECK(random::multivariate_normal(zeros({3, 2}), cov, {}, float32).shape() == Shape{3, 2});
  const char* op = "multivariate_normal";
  check_error<std::invalid_argument>(op,
                                     [&] { random::multivariate_normal(mean, cov, {4}, float16); });
  check_error<std::invalid_argument>(
      op, [&] { random::multivariate_normal(mean, zeros({3, 3}), {4}, float32); });
  check_error<std::invalid_argument>(
      op, [&] { random::multivariate_normal(mean, zeros({2, 3}), {4}, float32); });
  check_error<std::invalid_argument>(
      op, [&] { random::multivariate_normal(zeros({3, 2}), cov, {4}, float32); });
}
