// Half types in chains: moved and rounded as by the kernels for blocks, and functions that are less
// exact for them than for floats are still exact enough.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "elementwise_test_support.h"
#include "kernels/cpu/chain.h"

using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace holdfast::kernels::cpu::test;

namespace {

struct HalfType {
  Val dtype;
  const char* name;
  const simd::ChainEncoding& (*encoding)(const simd::ChainKernels&);
  int digits, lowest_exponent;  // of the significand; of the smallest subnormal
  double largest;
};

const HalfType half_types[] = {
    {Val::bfloat16, "bfloat16",
     [](const simd::ChainKernels& k) -> const simd::ChainEncoding& { return k.bfloat16; }, 8, -133,
     0x1.fep127},
    {Val::float16, "float16",
     [](const simd::ChainKernels& k) -> const simd::ChainEncoding& { return k.float16; }, 11, -24,
     65504}};

// Calls body(type, encoding) for each instruction set and half type that chains know there.
template <typename Body>
void for_each_encoding(const Body& body) {
  for_each_instruction_set([&] {
    for (const HalfType& type : half_types) {
      const simd::ChainEncoding& encoding = type.encoding(simd::chain_kernels());
      INFO(std::string(type.name));
      if (encoding.load) body(type, encoding);
    }
  });
}

template <typename T>
ChainStage stage(StageCode code, const std::vector<T>& values) {
  return {code, reinterpret_cast<char*>(const_cast<T*>(values.data())), sizeof(T)};
}

void run(std::vector<ChainStage> stages, size_t count) {
  const simd::ChainKernels& chains = simd::chain_kernels();
  stages.push_back({chains.end, nullptr, 0});
  chains.run(stages.data(), 0, static_cast<int64_t>(count));
}

// Floats with all upper halves and the lower halves where rounding changes. In order, subnormal
// values and NaN fill tiles of their own; mixed, they stand beside ordinary ones.
std::vector<float> floats_around_halves(bool mixed) {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 0x10000u; ++upper) {
    for (uint32_t lower : {0x0u, 0x1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
      uint32_t bits = upper << 16 | lower;
      std::memcpy(&values.emplace_back(), &bits, sizeof(float));
    }
  }
  if (mixed) std::shuffle(values.begin(), values.end(), std::mt19937(1));
  values.resize(values.size() - 5);  // leaves a rest behind the tiles
  return values;
}

}  // namespace

TEST_CASE("chains round to half types as blocks do") {
  for (bool mixed : {false, true}) {
    std::vector<float> values = floats_around_halves(mixed);
    auto count = static_cast<int64_t>(values.size());
    for_each_encoding([&](const HalfType& type, const simd::ChainEncoding& encoding) {
      StageCode load = simd::chain_kernels().float32.load;
      std::vector<uint16_t> expected(values.size());
      store_kernel(type.dtype)(expected.data(), values.data(), count);
      for (StageCode store : {encoding.store, encoding.store_past_cache}) {
        // Past the cache only where the memory is aligned.
        std::vector<uint16_t> memory(values.size() + 32);
        auto address = (reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63};
        auto* stored = reinterpret_cast<uint16_t*>(address);
        run({stage(load, values), {store, reinterpret_cast<char*>(stored), sizeof(uint16_t)}},
            values.size());
        CHECK(std::memcmp(stored, expected.data(), expected.size() * sizeof(uint16_t)) == 0);
      }
      std::vector<float> rounded(values.size()), expected_floats(values.size());
      round_kernel(type.dtype)(expected_floats.data(), values.data(), count);
      run({stage(load, values),
           {encoding.round, nullptr, 0},
           stage(simd::chain_kernels().float32.store, rounded)},
          values.size());
      CHECK(std::memcmp(rounded.data(), expected_floats.data(), rounded.size() * sizeof(float)) ==
            0);
      run({stage(encoding.load, expected), stage(simd::chain_kernels().float32.store, rounded)},
          values.size());
      CHECK(std::memcmp(rounded.data(), expected_floats.data(), rounded.size() * sizeof(float)) ==
            0);
    });
  }
}

TEST_CASE("exp of every half value is right to 0.51 units in the last place") {
  for_each_encoding([](const HalfType& type, const simd::ChainEncoding& encoding) {
    std::vector<uint16_t> halves(0x10000), results(halves.size());
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
    const simd::ChainKernels& chains = simd::chain_kernels();
    auto index = static_cast<size_t>(ElementwiseOp::Exp);
    StageCode exp = chains.half_ops[index] ? chains.half_ops[index] : chains.ops[index];
    run({stage(encoding.load, halves), {exp, nullptr, 0}, stage(encoding.store, results)},
        halves.size());
    std::vector<float> x(halves.size()), y(halves.size());
    load_kernel(type.dtype)(x.data(), halves.data(), static_cast<int64_t>(halves.size()));
    load_kernel(type.dtype)(y.data(), results.data(), static_cast<int64_t>(halves.size()));
    double worst = 0;
    for (size_t i = 0; i < halves.size(); ++i) {
      double exact = std::exp(static_cast<double>(x[i])), result = static_cast<double>(y[i]);
      if (std::isnan(x[i])) {
        CHECK(std::isnan(y[i]));
        continue;
      }
      int exponent = exact > 0 ? std::max(std::ilogb(exact) - type.digits + 1, type.lowest_exponent)
                               : type.lowest_exponent;
      if (std::isinf(y[i])) {
        // As if the exponent had no end.
        CHECK(exact > type.largest);
        result = std::ldexp(1.0, std::ilogb(type.largest) + 1);
        if (exact > result) continue;
      }
      worst = std::max(worst, std::abs(exact - result) / std::ldexp(1.0, exponent));
    }
    CHECK(worst < 0.51);
  });
}
