// The calibrated suite (race_pairs.h): no race is missed, no kernel that is right is reported.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "jit/checking.h"
#include "jit/race_pairs.h"

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;

namespace {

std::vector<exec::KernelFinding> check(const std::string& body) {
  const std::string source =
      "[[kernel]] void k(device float* out [[buffer(0)]], device const float* in [[buffer(1)]], "
      "device atomic_uint* counts [[buffer(2)]], device uint* plain [[buffer(3)]], "
      "uint gid [[thread_position_in_grid]], uint tid [[thread_index_in_threadgroup]], "
      "uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]], "
      "uint sg [[simdgroup_index_in_threadgroup]]) {\n" +
      body + "\n}\n";
  Ref<CpuPipeline> pipeline =
      CpuPipeline::load("k", compile_msl(source, Lowering::checked, host_instruction_set()));
  std::vector<Memory> memory(4);
  for (size_t slot = 0; slot < memory.size(); ++slot) {
    memory[slot].words.resize(slot < 2 ? 128 : 32);
  }
  for (size_t i = 0; i < 128; ++i) {
    const float value = static_cast<float>(i * 7 % 32);
    std::memcpy(&memory[1].words[i], &value, sizeof(value));
  }
  return run_checked(*pipeline, memory, {{128, 1, 1}, {64, 1, 1}});
}

std::string text_of(const std::vector<exec::KernelFinding>& findings) {
  std::string text;
  for (const exec::KernelFinding& one : findings) {
    text +=
        one.kind + std::string(" of ") + one.object + ", line " + std::to_string(one.line) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("calibrated suite: every race is found") {
  CHECK(race_pairs().size() >= 60);
  for (const RacePair& pair : race_pairs()) {
    INFO(std::string(pair.group), ": ", std::string(pair.name));
    std::vector<exec::KernelFinding> findings = check(racy(pair));
    CHECK_MESSAGE(!findings.empty(), racy(pair));
    for (const exec::KernelFinding& one : findings) {
      CHECK_MESSAGE(one.kind == std::string("race"), text_of(findings));
      CHECK(one.has_other_thread);
      CHECK(one.line != 0);
      CHECK(one.other_line != 0);
    }
  }
}

TEST_CASE("calibrated suite: no kernel that is right is reported") {
  for (const RacePair& pair : race_pairs()) {
    INFO(std::string(pair.group), ": ", std::string(pair.name));
    std::vector<exec::KernelFinding> findings = check(race_free(pair));
    CHECK_MESSAGE(findings.empty(), race_free(pair), "\n", text_of(findings));
  }
}
