// How one value differs between the lanes of a simdgroup.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

namespace holdfast::jit {

// What each lane adds to the base of a value.
using LaneOffsets = std::array<int64_t, 32>;

struct Shape {
  // `linear`: lane i holds base + i * stride; `pattern`: base + offsets[i]; both modulo the width
  // of the type. For all 32 lanes: the base is what the formula gives for lane 0, also where lane 0
  // is off.
  enum Kind : uint8_t { unknown, uniform, linear, pattern, varying };
  Kind kind = unknown;
  int64_t stride = 0;
  // The largest known power of two that divides the value of lane 0, up to 4096 (uniform, linear).
  uint32_t alignment = 1;
  const LaneOffsets* offsets = nullptr;  // of a pattern; equal ones are one object
  // The value of each lane is known: the base is `base`.
  bool is_fixed = false;
  int64_t base = 0;

  bool is_scalar() const { return kind != varying; }
  // Held as a base that is not the value of every lane.
  bool has_base() const { return kind == linear || kind == pattern; }
  int64_t offset(int64_t lane) const {
    return kind == pattern ? (*offsets)[static_cast<size_t>(lane)] : stride * lane;
  }
  bool moves_like(const Shape& other) const {
    return kind == other.kind && stride == other.stride && offsets == other.offsets;
  }
  bool operator==(const Shape&) const = default;
};

// Keeps the offsets of patterns.
class OffsetPool {
 public:
  const LaneOffsets* keep(const LaneOffsets& offsets) { return &*offsets_.insert(offsets).first; }

 private:
  std::set<LaneOffsets> offsets_;
};

inline constexpr uint32_t most_shape_alignment = 4096;
inline constexpr int64_t most_stride = int64_t{1} << 24;

// An alignment above the most is the most; a stride above it is no shape: the value varies.
Shape shape_with(Shape::Kind kind, int64_t stride, uint64_t alignment);
Shape uniform_shape(uint64_t alignment = 1);
Shape varying_shape();
Shape linear_shape(int64_t stride, uint64_t alignment = 1);

// The shape of a value that is one of two, by a choice that is the same in all lanes.
Shape join(Shape a, Shape b);
// Without what is known of lanes' values.
Shape without_values(Shape shape);
// Whether lanes add only bits below `alignment`: nothing carries into a base that is a multiple of
// it.
bool stays_below(const Shape& shape, uint64_t alignment);
// The largest power of two that divides a number.
uint64_t alignment_of(uint64_t value);

}  // namespace holdfast::jit
