// put_along_axis and scatter_add_axis: elements along one axis at places that indices name.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/cpu/index_offsets.h"
#include "kernels/plan/layout.h"
#include "kernels/plan/update.h"

namespace holdfast::kernels::cpu {

// output[i, indices[i, j, k], k] is combined with values[i, j, k], in the order of j.
struct ScatterAxisPlan {
  Dtype::Val dtype, index_type;  // indices: int32, uint32 or int64
  UpdateMode mode;               // replace or add
  JointLayout lines;  // views: the output, the indices, the values, each without the axis
  int64_t axis_size, count;
  int64_t strides[3];  // of the axis, in the same order

  int64_t tasks() const { return divide_up(lines.size, grain()); }
  // Tasks [begin, end). Of the status, the index counts.
  IndexStatus run(int64_t begin, int64_t end, const void* indices, const void* values,
                  void* output) const;

 private:
  int64_t grain() const;
  template <UpdateMode mode, typename T, typename Index>
  IndexStatus run_lines(int64_t begin, int64_t end, const Index* indices, const T* values,
                        T* out) const;
};

}  // namespace holdfast::kernels::cpu
