// Sums over a long depth in parts, by threadgroups of their own, where there are few outputs: the
// parts are added up afterwards, in order. How a depth is cut follows from shapes alone.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/metal/launch.h"
#include "kernels/plan/layout.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {

inline constexpr int64_t busy_threadgroups = 128;  // so many keep a large GPU busy

// Parts are multiples of `unit`, and of at least `smallest` for there to be several.
struct DepthCut {
  DepthCut(int64_t depth, int64_t threadgroups, int64_t unit, int64_t smallest = 512) {
    const int64_t wanted = std::min(busy_threadgroups / threadgroups, depth / smallest);
    part = divide_up(divide_up(depth, std::max<int64_t>(1, wanted)), unit) * unit;
    parts = divide_up(depth, part);
  }
  int64_t part, parts;
};

// out = the sums of `parts` arrays of float32. Those of each of `products` follow each other.
void add_parts(Encoder& encoder, const array& sums, int64_t parts, int64_t products, array& out);

// Calls encode(target), where target is `out` or, of sums in parts, a temporary for add_parts.
template <typename Encode>
void encode_in_parts(Encoder& encoder, int64_t parts, int64_t products, array& out, Encode encode) {
  if (parts == 1) return encode(out);
  const size_t bytes = out.size() * (out.dtype() == complex64 ? 8 : 4);
  array sums = make_temporary(encoder, bytes * static_cast<size_t>(parts));
  encode(sums);
  add_parts(encoder, sums, parts, products, out);
}

// "name_float16", of an array's dtype.
inline std::string entry_of(const std::string& name, const array& a) {
  return name + "_" + dtype_name(a.dtype().val());
}

}  // namespace holdfast::kernels::metal
