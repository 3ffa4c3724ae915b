// Caches of keys and values and recurrences, by the kernels of each instruction set.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/kv_rows.h"
#include "kernels/cpu/simd/recurrent_kernels.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;

namespace {

std::vector<float> normal(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<float> values(count);
  for (float& value : values) value = draw(random);
  return values;
}

// A pool of one block and one head, of the same rows as keys and as values; and the rows as they
// are read back.
struct Block {
  std::vector<uint32_t> keys, values;
  std::vector<float> numbers;
};
constexpr int64_t positions = 64;

Block block_of(const KvCodec& codec, const std::vector<float>& rows) {
  const auto dims = static_cast<size_t>(codec.rows().dims);
  const auto width = static_cast<size_t>(codec.rows().width());
  Block block{std::vector<uint32_t>(width * positions), {}, {}};
  for (size_t t = 0; t < positions; ++t) {
    std::vector<float> row(rows.begin() + static_cast<long>(t * dims),
                           rows.begin() + static_cast<long>((t + 1) * dims));
    std::vector<float> spare(dims), read(dims);
    std::vector<uint32_t> words(width);
    codec.encode(row.data(), spare.data(), words.data());
    for (size_t w = 0; w < width; ++w) block.keys[w * positions + t] = words[w];
    block.values.insert(block.values.end(), words.begin(), words.end());
    simd::kv_kernels().unpack(codec.side(float32, nullptr, 0, 1, 1), words.data(), read.data());
    block.numbers.insert(block.numbers.end(), read.begin(), read.end());
  }
  return block;
}

}  // namespace

TEST_CASE("attention over stored rows, by each instruction set") {
  strided_test::on_each_instruction_set([&](const char* set) {
    for (int dims : {16, 80, 128}) {
      for (int bits : {2, 3, 4, 8}) {
        for (int64_t rows : {1, 3, 13}) {
          CAPTURE(std::string(set));
          CAPTURE(dims);
          CAPTURE(bits);
          CAPTURE(rows);
          const KvCodec codec({dims, bits, 1});
          const auto features = static_cast<size_t>(dims), count = static_cast<size_t>(rows);
          const Block block = block_of(codec, normal(positions * features, 5));
          const std::vector<float> queries = normal(count * features, 6);
          // Positions 5 to 60; the last row sees fewer, at both ends.
          std::vector<int64_t> visible;
          for (int64_t r = 0; r < rows; ++r) {
            visible.insert(visible.end(), {r + 1 == rows ? 9 : 5, r + 1 == rows ? 50 : 60});
          }
          const int64_t stride = simd::partial_header + dims;
          std::vector<float> out(count * static_cast<size_t>(stride));
          strided_test::Aligned<char> scratch(
              static_cast<int64_t>(simd::kv_kernels().split_scratch(dims, dims)));
          const int32_t zero = 0;
          simd::kv_kernels().split({codec.side(float32, block.keys.data(), 0, 1, positions),
                                    codec.side(float32, block.values.data(), 0, 1, positions),
                                    &zero, positions, 0, 5, 60, rows, queries.data(),
                                    visible.data(), out.data(), stride, scratch.get()});
          double worst = 0;
          for (size_t r = 0; r < count; ++r) {
            std::vector<double> scores, expected(features, 0);
            double largest = -INFINITY, total = 0;
            for (int64_t t = visible[2 * r]; t < visible[2 * r + 1]; ++t) {
              double score = 0;
              for (size_t d = 0; d < features; ++d) {
                score += static_cast<double>(queries[r * features + d]) *
                         static_cast<double>(block.numbers[static_cast<size_t>(t) * features + d]);
              }
              scores.push_back(score);
              largest = std::max(largest, score);
            }
            for (size_t i = 0; i < scores.size(); ++i) {
              const double weight = std::exp(scores[i] - largest);
              const size_t t = i + static_cast<size_t>(visible[2 * r]);
              total += weight;
              for (size_t d = 0; d < features; ++d) {
                expected[d] += weight * static_cast<double>(block.numbers[t * features + d]);
              }
            }
            const float* got = &out[r * static_cast<size_t>(stride)];
            worst = std::max(worst, std::abs(static_cast<double>(got[0]) - largest));
            worst = std::max(worst, std::abs(static_cast<double>(got[1]) / total - 1));
            for (size_t d = 0; d < features; ++d) {
              worst =
                  std::max(worst, std::abs(static_cast<double>(got[2 + d]) - expected[d]) / total);
            }
          }
          CHECK(worst < 1e-4);
        }
      }
    }
  });
}

TEST_CASE("the gated delta rule, by each instruction set") {
  strided_test::on_each_instruction_set([&](const char* set) {
    for (int64_t dims : {1, 24, 128}) {
      CAPTURE(std::string(set));
      CAPTURE(dims);
      constexpr int64_t rows = 7;
      const auto features = static_cast<size_t>(dims);
      const std::vector<float> key = normal(features, 1), query = normal(features, 2);
      const std::vector<float> value = normal(rows, 3), state = normal(rows * features, 4);
      const float decay = 0.5f, beta = 0.25f;
      std::vector<float> after(state.size()), out(rows);
      simd::recurrent_kernels().delta({1, dims, rows, query.data(), key.data(), value.data(),
                                       &decay, &beta, false, nullptr, state.data(), after.data(),
                                       out.data()});
      for (size_t r = 0; r < rows; ++r) {
        double known = 0, result = 0;
        for (size_t d = 0; d < features; ++d) {
          known += 0.5 * static_cast<double>(state[r * features + d]) * static_cast<double>(key[d]);
        }
        const double delta = (static_cast<double>(value[r]) - known) * 0.25;
        for (size_t d = 0; d < features; ++d) {
          const double expected = 0.5 * static_cast<double>(state[r * features + d]) +
                                  delta * static_cast<double>(key[d]);
          CHECK(std::abs(static_cast<double>(after[r * features + d]) - expected) < 1e-4);
          result += expected * static_cast<double>(query[d]);
        }
        CHECK(std::abs(static_cast<double>(out[r]) - result) < 2e-3);
      }
    }
  });
}
