#include "kernels/cpu/rope.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/simd/rope_kernels.h"
#include "kernels/cpu/simd/target_table.h"
#include "kernels/plan/layout.h"

HOLDFAST_SIMD_TABLE(RopeKernels, rope_kernels)

namespace holdfast::kernels::cpu {
namespace {

constexpr int64_t rope_task_elements = int64_t{64} << 10;
// The angles of a position serve all heads of a task.
constexpr int64_t fewest_heads = 32, most_heads = 256;
// Rows of this many bytes that lie together keep the memory busy, and their angles in the cache.
constexpr int64_t run_bytes = int64_t{64} << 10;
// Tasks there should be before runs are made longer than this.
constexpr int64_t usual_rope_tasks = 64, shortest_run = 16;

}  // namespace

RopePlan::RopePlan(Dtype::Val dtype, const RopeShape& shape, int64_t pairs, bool traditional,
                   std::optional<double> base, double scale)
    : dtype_(dtype),
      item_(static_cast<int64_t>(item_size(dtype))),
      shape_(shape),
      pairs_(pairs),
      padded_pairs_(divide_up(std::max<int64_t>(pairs, 1), 8) * 8),
      traditional_(traditional),
      scale_(scale),
      kernels_(simd::rope_kernels()) {
  if (base) {
    rates_.assign(static_cast<size_t>(padded_pairs_), 0.0);
    double step = -std::log2(*base) / static_cast<double>(pairs);
    for (int64_t i = 0; i < pairs; ++i) {
      rates_[static_cast<size_t>(i)] = std::exp2(step * static_cast<double>(i));
    }
    kernels_.arrange(dtype, traditional, pairs, rates_.data());
  }
  int64_t elements = shape.batch * shape.heads * shape.positions * shape.features;
  if (elements == 0) return;
  stream_ = static_cast<size_t>(elements * item_) > stream_threshold();
  int64_t run = std::clamp(run_bytes / (shape.features * item_), int64_t{1}, shape.positions);
  int64_t rows = std::max<int64_t>(1, rope_task_elements / shape.features);
  heads_per_task_ = std::min(shape.heads, std::clamp(rows / run, fewest_heads, most_heads));
  head_tasks_ = divide_up(shape.heads, heads_per_task_);
  int64_t share = divide_up(shape.batch * head_tasks_ * shape.positions, usual_rope_tasks);
  positions_per_task_ = std::min(run, std::max(share, shortest_run));
  position_tasks_ = divide_up(shape.positions, positions_per_task_);
  tasks_ = shape.batch * head_tasks_ * position_tasks_;
}

size_t RopePlan::task_scratch_bytes() const {
  auto count = static_cast<size_t>(padded_pairs_);
  return count * sizeof(double) +
         2 * count * sizeof(float) * static_cast<size_t>(positions_per_task_);
}

void RopePlan::run(int64_t task, const void* input, const int64_t* offsets, int64_t offset_stride,
                   const float* frequencies, void* output, void* task_scratch) const noexcept {
  int64_t first_position = task % position_tasks_ * positions_per_task_;
  int64_t first_head = task / position_tasks_ % head_tasks_ * heads_per_task_;
  int64_t batch = task / position_tasks_ / head_tasks_;
  int64_t positions = std::min(positions_per_task_, shape_.positions - first_position);
  int64_t heads = std::min(heads_per_task_, shape_.heads - first_head);

  auto* own_rates = static_cast<double*>(task_scratch);
  auto* cosines = reinterpret_cast<float*>(own_rates + padded_pairs_);
  float* sines = cosines + padded_pairs_ * positions_per_task_;
  const double* rates = rates_.data();
  if (rates_.empty()) {
    for (int64_t i = 0; i < padded_pairs_; ++i) {
      own_rates[i] = i < pairs_ ? 1.0 / static_cast<double>(frequencies[i]) : 0.0;
    }
    kernels_.arrange(dtype_, traditional_, pairs_, own_rates);
    rates = own_rates;
  }
  auto offset = static_cast<double>(offsets[batch * offset_stride]);
  double position = (offset + static_cast<double>(first_position)) * scale_;
  kernels_.angles({position, scale_, rates, padded_pairs_, positions, cosines, sines});
  int64_t from = batch * shape_.batch_stride + first_head * shape_.head_stride +
                 first_position * shape_.position_stride;
  int64_t output_head_stride = shape_.positions * shape_.features;
  int64_t to =
      (batch * shape_.heads + first_head) * output_head_stride + first_position * shape_.features;
  kernels_.rotate(
      dtype_, traditional_,
      {static_cast<const char*>(input) + from * item_, shape_.position_stride, shape_.head_stride,
       static_cast<char*>(output) + to * item_, output_head_stride, cosines, sines, padded_pairs_,
       heads, positions, pairs_, shape_.features, stream_});
  if (stream_) end_stream();
}

}  // namespace holdfast::kernels::cpu
