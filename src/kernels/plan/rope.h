// What a rotary position embedding is called with.
#pragma once

#include <optional>

namespace holdfast::kernels {

// Pair i of position p turns by the angle (offset + p) * scale * rate(i); rate(i) is
// base^(-2 i / dims), or 1 / frequencies[i].
struct RopeSettings {
  int dims;                   // features that turn, an even number
  bool traditional;           // a pair is two neighbours, not an element of each half
  std::optional<float> base;  // empty: frequencies are an input
  float scale;
  std::optional<int> offset;  // empty: offsets are an input
  bool operator==(const RopeSettings&) const = default;
};

}  // namespace holdfast::kernels
