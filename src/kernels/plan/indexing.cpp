#include "kernels/plan/indexing.h"

namespace holdfast::kernels {

const char* scatter_function(IndexKind kind, UpdateMode mode) {
  if (kind == IndexKind::along_axis) {
    return mode == UpdateMode::replace ? "put_along_axis" : "scatter_add_axis";
  }
  constexpr const char* names[] = {"scatter", "scatter_add", "scatter_prod", "scatter_max",
                                   "scatter_min"};
  return names[static_cast<size_t>(mode)];
}

}  // namespace holdfast::kernels
