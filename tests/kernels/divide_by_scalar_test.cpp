// x / d by a reciprocal must be x / d by division, bit for bit.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/chain.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/instruction_set.h"

using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;

namespace {

void divide_in_chain(const std::vector<float>& x, float divisor, std::vector<float>& out) {
  const simd::ChainKernels& chains = simd::chain_kernels();
  std::vector<float> tile(static_cast<size_t>(chains.tile), divisor);
  auto at = [](const std::vector<float>& values) {
    return reinterpret_cast<char*>(const_cast<float*>(values.data()));
  };
  const ChainStage stages[] = {{chains.float32.load, at(x), sizeof(float)},
                               {chains.divide_by_scalar, at(tile), 0},
                               {chains.float32.store, at(out), sizeof(float)},
                               {chains.end, nullptr, 0}};
  chains.run(stages, 0, static_cast<int64_t>(x.size()));
}

// Compares the two ways over `x`; the number of elements that differ.
int64_t differences(const std::vector<float>& x, float divisor) {
  int64_t n = static_cast<int64_t>(x.size());
  std::vector<float> divisors(x.size(), divisor), fast(x.size()), exact(x.size());
  const void* in[] = {x.data(), divisors.data()};
  divide_in_chain(x, divisor, fast);
  elementwise_kernel(ElementwiseOp::Divide, Lane::f32)(exact.data(), in, n);
  int64_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    bool both_nan = fast[i] != fast[i] && exact[i] != exact[i];
    if (!both_nan && std::memcmp(&fast[i], &exact[i], sizeof(float)) != 0) ++count;
  }
  return count;
}

constexpr float interesting_divisors[] = {
    1.41421356f,
    2.0f,
    3.0f,
    -7.0f,
    0.1f,
    1e-30f,
    1e30f,
    1.9999999f,
    1.0000001f,
    255.0f,
    1e-17f,
    0.0f,
    -0.0f,
    1e-45f,
    std::numeric_limits<float>::infinity(),
    std::numeric_limits<float>::quiet_NaN(),
};

}  // namespace

TEST_CASE("division by a scalar: every significand") {
  std::vector<float> x(1 << 16);
  for (InstructionSet set : available_instruction_sets()) {
    force_instruction_set(set);
    for (float divisor : {1.41421356f, 3.0f, 1.9999999f, 1.0000001f, 0.7f}) {
      int64_t wrong = 0;
      for (uint32_t high = 0; high < 128; ++high) {
        for (uint32_t low = 0; low < x.size(); ++low) {
          uint32_t bits = 0x3f800000u | (high << 16) | low;
          std::memcpy(&x[low], &bits, sizeof(float));
        }
        wrong += differences(x, divisor);
      }
      CHECK(wrong == 0);
    }
  }
  unforce_instruction_set();
}

TEST_CASE("division by a scalar: any bits") {
  std::mt19937 random(5);
  std::vector<float> x(100'003);
  for (InstructionSet set : available_instruction_sets()) {
    force_instruction_set(set);
    for (int round = 0; round < 200; ++round) {
      for (float& value : x) {
        uint32_t bits = random();
        // Runs without special operands take the fast path, runs with them the slow one.
        if (round % 2 == 0) bits = (bits & 0x807fffffu) | ((100u + bits % 60u) << 23);
        std::memcpy(&value, &bits, sizeof(float));
      }
      x[0] = 0.0f;
      float divisor = round < 16 ? interesting_divisors[round] : x[17];
      CHECK(differences(x, divisor) == 0);
    }
  }
  unforce_instruction_set();
}
