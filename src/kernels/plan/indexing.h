// How arrays of indices name elements of another array.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/plan/update.h"

namespace holdfast::kernels {

// Negative indices count from the end of their axis. An index beyond it is an error when the op
// runs, and is never followed.
enum class IndexKind : uint8_t {
  take,        // one array, one axis: (outer…, i…, inner…) names (outer…, indices[i…], inner…)
  along_axis,  // one array, one axis: (i, j, k) names (i, indices[i, j, k], k)
  slices,      // one array per axis, broadcast together: (i…, rest…) names element `rest` of the
               // slice that starts at the indices of i…
};

struct Indexing {
  IndexKind kind;
  std::span<const int> axes;
};

// The public function that scatters in this way, for errors.
const char* scatter_function(IndexKind kind, UpdateMode mode);

}  // namespace holdfast::kernels
