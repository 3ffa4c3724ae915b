// Random bits against values that MLX 0.32 gives, and the independence of cutting.
#include <doctest/doctest.h>

#include "kernels/cpu/threefry.h"
#include "kernels/strided_test_support.h"

using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace strided_test;

namespace {

template <typename T>
std::vector<T> bits(RandomWords key, int64_t count) {
  uint32_t words[2] = {key.first, key.second};
  RandomBitsPlan plan(CollapsedLayout{2, {2}, {1}}, count * static_cast<int64_t>(sizeof(T)));
  std::vector<T> result(static_cast<size_t>(count));
  for (int64_t task = 0; task < plan.tasks(); ++task) plan.run(task, words, result.data());
  return result;
}

using Words = std::vector<uint32_t>;

}  // namespace

TEST_CASE("the published test vectors of Threefry-2x32, 20 rounds") {
  // From the Random123 distribution's known answers.
  RandomWords zero = threefry2x32({0, 0}, {0, 0});
  CHECK((zero.first == 0x6b200159u && zero.second == 0x99ba4efeu));
  RandomWords ones = threefry2x32({~0u, ~0u}, {~0u, ~0u});
  CHECK((ones.first == 0x1cb996fcu && ones.second == 0xbb002be7u));
  RandomWords pi = threefry2x32({0x13198a2eu, 0x03707344u}, {0x243f6a88u, 0x85a308d3u});
  CHECK((pi.first == 0xc4923a9cu && pi.second == 0x483df7a0u));
}

TEST_CASE("bits of key 7 are MLX's") {
  RandomWords key{0, 7};
  on_each_instruction_set([&](const char* name) {
    CAPTURE(name);
    CHECK(bits<uint32_t>(key, 1) == Words{0xd817648b});
    CHECK(bits<uint32_t>(key, 2) == Words{0x0ba028bf, 0xf22056bf});
    CHECK(bits<uint32_t>(key, 3) == Words{0x399897a9, 0x6d18d948, 0x741fbe03});
    CHECK(bits<uint32_t>(key, 4) == Words{0x399897a9, 0x3af75d5d, 0x741fbe03, 0x3f1826cb});
    CHECK(bits<uint32_t>(key, 9) == Words{0xd5917e25, 0x3f2ac64d, 0x450ec957, 0xd4d14192,
                                          0x952584a1, 0x7415e54e, 0x39814001, 0xaf0038f5,
                                          0xb0320b05});
    CHECK(bits<uint32_t>(key, 13) ==
          Words{0xc4ecee8a, 0xe89b4652, 0x2c54196b, 0x6f89011f, 0x80563126, 0xd228648b, 0x78b2fc3f,
                0xadba3be0, 0xee3d8a15, 0x6a3d9eff, 0xca546e29, 0x1ff9f32e, 0x8ac8aebe});
    CHECK(bits<uint16_t>(key, 1) == std::vector<uint16_t>{0x648b});
    CHECK(bits<uint16_t>(key, 5) == std::vector<uint16_t>{0x97a9, 0x3998, 0xd948, 0x6d18, 0xbe03});
    CHECK(bits<uint16_t>(key, 8) ==
          std::vector<uint16_t>{0x97a9, 0x3998, 0x5d5d, 0x3af7, 0xbe03, 0x741f, 0x26cb, 0x3f18});
    CHECK(bits<uint8_t>(key, 3) == std::vector<uint8_t>{0x8b, 0x64, 0x17});
    CHECK(bits<uint8_t>(key, 5) == std::vector<uint8_t>{0xbf, 0x28, 0xa0, 0x0b, 0xbf});
    CHECK(bits<uint8_t>(key, 13) == std::vector<uint8_t>{0xa9, 0x97, 0x98, 0x39, 0x5d, 0x5d, 0xf7,
                                                         0x3a, 0x03, 0xbe, 0x1f, 0x74, 0xcb});
    // split(key(7), 3)
    CHECK(bits<uint32_t>(key, 6) ==
          Words{276534068, 861967409, 1905761346, 1641862660, 2900896126, 1402713516});
    CHECK(bits<uint32_t>(key, 0).empty());
  });
}

TEST_CASE("the first uniform floats of key 7 follow from the bits") {
  // mx.random.uniform(shape=(4,), key=key(7))
  Words words = bits<uint32_t>({0, 7}, 1000003);
  CHECK(static_cast<float>(words[0]) / 4294967296.0f == doctest::Approx(0.11581547));
  CHECK(static_cast<float>(words[1]) / 4294967296.0f == doctest::Approx(0.77283746));
  CHECK(static_cast<float>(words[2]) / 4294967296.0f == doctest::Approx(0.8576421));
  CHECK(static_cast<float>(words[3]) / 4294967296.0f == doctest::Approx(0.58830243));
}

TEST_CASE("many keys, strided keys, any cut and any order give the same words") {
  Random random(3);
  for (int64_t bytes : {1, 6, 40, 4 * 40001, 4 * 33334 + 1}) {
    uint32_t keys[3][4];
    for (auto& row : keys) {
      for (uint32_t& word : row) word = static_cast<uint32_t>(random());
    }
    // Keys are columns 1 and 3 of each row.
    CollapsedLayout layout{6, {3, 2}, {4, 2}};
    RandomBitsPlan plan(layout, bytes);
    Aligned<uint8_t> expected(3 * bytes);
    for (int64_t which = 0; which < 3; ++which) {
      int64_t count = (bytes + 3) / 4;
      std::vector<uint32_t> words(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) {
        random_words({keys[which][1], keys[which][3]}, count, i, i + 1,
                     &words[static_cast<size_t>(i)]);
      }
      std::memcpy(expected.get() + which * bytes, words.data(), static_cast<size_t>(bytes));
    }
    for (Order order : {Order::forward, Order::backward, Order::shuffled, Order::threads}) {
      Aligned<uint8_t> result(3 * bytes);
      run_tasks(plan.tasks(), order,
                [&](int64_t task) { plan.run(task, &keys[0][1], result.get()); });
      CHECK(result.same_bits(expected));
    }
  }
}
