// The calibrated suite of races: patterns that people use, each with and without the mistake.
#pragma once

#include <span>
#include <string>

namespace holdfast::jit::testing {

struct RacePair {
  const char* group;
  const char* name;
  // The body of a kernel (racy_or_clean). `@{this@|that@}` is `this` in the kernel that is right
  // and `that` in the one that races; $T is a barrier of the threadgroup, $D one for device memory,
  // $S one of the simdgroup, $F a fence.
  const char* body;
};

std::span<const RacePair> race_pairs();
std::string racy(const RacePair& pair);
std::string race_free(const RacePair& pair);

}  // namespace holdfast::jit::testing
