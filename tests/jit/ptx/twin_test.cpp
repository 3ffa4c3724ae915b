// What kernels for NVIDIA GPUs compute, without a GPU: their twins (twin.h) leave the bits of the
// CPU's own kernels, and the masks of their cross-lane instructions are those of the lanes that
// come to them.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "jit/ptx/twin.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::jit::testing;
using cuda::Positions;

namespace {

const char* name_of(Positions positions) {
  return positions == Positions::general ? "general"
         : positions == Positions::exact ? "exact"
                                         : "rows";
}

std::string check(const GpuCase& gpu_case, Positions positions, bool optimised, bool& gathers) {
  const TwinResult twin = run_twin(gpu_case, positions, optimised);
  gathers = twin.gathers;
  std::string problem = difference(twin.arguments, run_on_cpu(gpu_case));
  if (twin.wrong_masks > 0)
    problem += (problem.empty() ? "" : "; ") + std::to_string(twin.wrong_masks) + " wrong masks";
  if (problem.empty()) return "";
  return gpu_case.group + ", " + gpu_case.name + ", " + name_of(positions) +
         (optimised ? ", optimised" : "") + (twin.gathers ? ", gathers" : "") + ": " + problem;
}

void check_twins(const std::vector<GpuCase>& cases) {
  std::atomic<size_t> next = 0;
  std::atomic<int> gathering = 0;
  std::mutex mutex;
  std::vector<std::string> problems;
  testing::on_threads(
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), [&](int) {
        for (size_t i; (i = next++) < cases.size();) {
          std::vector<Positions> ways{Positions::general};
          if (cases[i].is_divisible()) {
            ways.push_back(cases[i].threadgroup[0] % 32 == 0 && cases[i].grid[0] % 32 == 0
                               ? Positions::rows
                               : Positions::exact);
          }
          for (Positions positions : ways) {
            std::string problem;
            bool gathers = false;
            try {
              problem = check(cases[i], positions, i % 2 == 0, gathers);
            } catch (const std::exception& error) {
              problem = cases[i].name + ": " + error.what();
            }
            gathering += gathers;
            std::lock_guard lock(mutex);
            if (!problem.empty()) problems.push_back(problem);
          }
        }
      });
  CHECK(!cases.empty());
  for (const std::string& problem : problems) CHECK_MESSAGE(false, problem);
  MESSAGE(cases.size(), " kernels, ", gathering.load(), " gather");
}

}  // namespace

TEST_CASE("PTX: twins of the features of the language") {
  std::vector<GpuCase> cases;
  for (GpuCase& one : feature_cases()) {
    if (one.has_fixed_result) cases.push_back(std::move(one));
  }
  check_twins(cases);
}

namespace {

struct LaneKernel {
  const char* name;
  const char* body;
  bool gathers;  // some mask is no value
};
const LaneKernel lane_kernels[] = {
    {"all lanes, special values", R"(
      to[0] = simd_min(mine);
      to[1] = simd_max(mine);
      to[2] = simd_sum(mine == mine ? mine : 1.0f);
      to[3] = simd_shuffle_down(mine, ushort(65535));
      to[4] = simd_shuffle_up(mine, ushort(40));
      to[5] = simd_shuffle(mine, ushort(33 + lane));
      to[6] = simd_product(1 + float(lane) * 0.01f);
      to[7] = simd_prefix_exclusive_sum(float(lane) * 0.1f);)",
     false},
    {"some lanes", R"(
      if (lane > 4) {
        to[0] = simd_max(-mine);
        to[1] = simd_shuffle_xor(mine, ushort(6));
        to[2] = simd_min(mine);
        bits[2 * i] = simd_sum(lane * 3 + 1);
        bits[2 * i + 1] = simd_prefix_inclusive_sum(lane);
        to[3] = simd_prefix_exclusive_sum(float(lane) * 0.1f);
        to[5] = simd_prefix_inclusive_product(1 + float(lane) * 0.01f);
        to[6] = simd_prefix_exclusive_sum(-0.0f);
        to[7] = simd_prefix_inclusive_sum(-0.0f);
      } else {
        to[0] = simd_sum(float(lane) * 0.3f);
      }
      to[4] = simd_sum(float(lane) * 0.7f);)",
     false},
    {"fewer lanes in each turn", R"(
      for (uint turn = 0; turn < lane; turn += 7) {
        to[0] += simd_sum(float(turn) + 0.1f);
        bits[2 * i] += simd_prefix_inclusive_sum(lane);
      }
      to[1] = simd_sum(float(lane) * 0.3f);)",
     false},
    {"a join of some of the lanes", R"(
      if (lane % 3 == 1 || ((bits[2 * i + 1] = 7), mine < 0.5f)) {
        to[0] = simd_min(mine);
        to[1] = simd_sum(float(lane) * 0.3f);
      }
      to[2] = simd_sum(float(lane) * 0.7f);)",
     true},
    {"lanes that leave a loop for two places", R"(
      uint turn = 0;
      do {
        if (x[turn] + mine < -4) return;
        bits[2 * i] += turn;
      } while (++turn < lane);
      to[0] = simd_sum(float(lane) * 0.3f);)",
     true},
};

GpuCase lane_case(const LaneKernel& kernel) {
  GpuCase one;
  one.group = "lanes";
  one.name = kernel.name;
  one.source.kernel = "k";
  one.source.text = std::string(R"(#include <metal_stdlib>
    using namespace metal;
    kernel void k(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
                  device uint* bits [[buffer(2)]], uint i [[thread_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]]) {
      device float* to = out + 8 * i;
      float mine = x[i];)") +
                    kernel.body + "}";
  constexpr uint32_t threads = 100;
  one.grid = {threads, 1, 1};
  one.threadgroup = {64, 1, 1};
  one.argument = [](const msl::KernelArgument& argument) -> GpuArgument {
    if (argument.slot != 0) {
      return {std::vector<char>(threads * (argument.slot == 1 ? 32 : 8)), true,
              argument.slot == 1 ? ElementKind::float32 : ElementKind::bits};
    }
    std::vector<float> values(threads);
    for (uint32_t i = 0; i < threads; ++i) {
      // Zeros of both signs are the least and the largest of most simdgroups.
      values[i] = i < 32   ? (i % 5 == 2 ? -0.0f : 0.0f)
                  : i < 64 ? (i % 3 == 1 ? NAN
                              : i % 2    ? 0.0f
                                         : -0.0f)
                           : static_cast<float>(i % 7) - 3;
    }
    auto* first = reinterpret_cast<const char*>(values.data());
    return {std::vector<char>(first, first + 4 * values.size())};
  };
  return one;
}

}  // namespace

TEST_CASE("PTX: twins of cross-lane operations where lanes are missing or values are special") {
  for (const LaneKernel& kernel : lane_kernels) {
    GpuCase one = lane_case(kernel);
    for (bool optimised : {false, true}) {
      bool gathers = !kernel.gathers;
      CHECK(check(one, Positions::general, optimised, gathers) == "");
      CHECK(gathers == kernel.gathers);
    }
    one.grid = {96, 1, 1};
    one.threadgroup = {32, 1, 1};
    for (Positions positions : {Positions::rows, Positions::exact, Positions::general}) {
      bool gathers = false;
      CHECK(check(one, positions, true, gathers) == "");
    }
  }
}

TEST_CASE("PTX: twins of the kernels of `bench kernels`") {
  std::vector<GpuCase> cases = bench_cases();
  // A threadgroup or two.
  for (GpuCase& one : cases) {
    for (size_t axis = 0; axis < 3; ++axis)
      one.grid[axis] = std::min(one.grid[axis], (axis == 0 ? 2 : 1) * one.threadgroup[axis]);
  }
  check_twins(cases);
}

TEST_CASE("PTX: twins of random kernels") {
  uint64_t first = 1, last = 25;
  if (const char* given = std::getenv("HOLDFAST_TEST_SEED")) {
    char* rest = nullptr;
    first = last = std::strtoull(given, &rest, 10);
    if (rest[0] == '.' && rest[1] == '.') last = std::strtoull(rest + 2, nullptr, 10);
  }
  std::vector<GpuCase> cases;
  for (uint64_t seed = first; seed <= last; ++seed) cases.push_back(random_case(seed));
  check_twins(cases);
}
