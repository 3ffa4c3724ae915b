#include "kernels/cpu/attention.h"

#include <algorithm>

#include "kernels/cpu/simd/target_table.h"
#include "kernels/plan/layout.h"

HOLDFAST_SIMD_TABLE(AttentionKernels, attention_kernels)

namespace holdfast::kernels::cpu {
namespace {

// A split costs the time of some ten keys: where there would be many, they are longer.
constexpr int64_t short_split = 256, long_split = 512, keys_of_long_splits = 4096;

}  // namespace

AttentionPlan::AttentionPlan(Dtype::Val dtype, const AttentionShape& shape)
    : dtype_(dtype),
      item_(static_cast<int64_t>(item_size(dtype))),
      compute_item_(dtype == Dtype::Val::float64 ? 8 : 4),
      shape_(shape),
      heads_per_group_(shape.heads / std::max<int64_t>(1, shape.key_heads)),
      rows_(heads_per_group_ * shape.queries),
      split_(rows_ <= simd::attention_partial_rows || shape.keys == 0) {
  split_keys_ = shape.keys < keys_of_long_splits ? short_split : long_split;
  splits_ = divide_up(shape.keys, split_keys_);
  row_tasks_ = divide_up(rows_, simd::attention_rows);
}

int64_t AttentionPlan::tasks(int stage) const {
  int64_t groups = shape_.batch * shape_.key_heads;
  if (!split_) return groups * row_tasks_;
  return stage == 0 ? groups * splits_ : groups * rows_;
}

size_t AttentionPlan::partial_bytes() const {
  if (!split_) return 0;
  int64_t rows = shape_.batch * shape_.key_heads * splits_ * rows_;
  return static_cast<size_t>(rows * (2 + shape_.value_features) * compute_item_);
}

size_t AttentionPlan::task_scratch_bytes() const {
  const simd::AttentionKernels& kernels = simd::attention_kernels();
  return split_ ? kernels.partial_scratch(dtype_, split_keys_, shape_.features)
                : kernels.whole_scratch(dtype_, shape_.features, shape_.value_features);
}

void AttentionPlan::point_at_rows(const AttentionOperands& operands, int64_t group, int64_t first,
                                  int64_t count, int64_t first_key, const void** queries,
                                  simd::AttentionMask* masks) const {
  int64_t batch = group / shape_.key_heads;
  int64_t mask_item = shape_.mask_kind == MaskKind::boolean ? 1 : compute_item_;
  for (int64_t i = 0; i < count; ++i) {
    int64_t head = head_of(group, first + i), position = position_of(first + i);
    queries[i] = static_cast<const char*>(operands.queries) +
                 (batch * shape_.query_strides.batch + head * shape_.query_strides.head +
                  position * shape_.query_strides.position) *
                     item_;
    int64_t visible = shape_.causal ? shape_.keys - shape_.queries + position + 1 : shape_.keys;
    masks[i].visible = std::clamp<int64_t>(visible - first_key, 0, shape_.keys);
    if (shape_.mask_kind == MaskKind::none) continue;
    masks[i].data = static_cast<const char*>(operands.mask) +
                    (batch * shape_.mask_batch + head * shape_.mask_head +
                     position * shape_.mask_query + first_key * shape_.mask_key) *
                        mask_item;
    masks[i].key_stride = shape_.mask_key;
  }
}

void AttentionPlan::run(int stage, int64_t begin, int64_t end, const AttentionOperands& operands,
                        void* task_scratch) const noexcept {
  for (int64_t task = begin; task < end; ++task) {
    if (!split_) {
      run_whole(task, operands, task_scratch);
    } else if (stage == 0) {
      run_split(task, task + 1 == end, operands, task_scratch);
    } else {
      run_combine(task, operands);
    }
  }
}

void AttentionPlan::run_whole(int64_t task, const AttentionOperands& operands,
                              void* task_scratch) const {
  int64_t group = task / row_tasks_;
  // Later queries see more keys when causal: the long tasks come first.
  int64_t first = (row_tasks_ - 1 - task % row_tasks_) * simd::attention_rows;
  int64_t count = std::min(simd::attention_rows, rows_ - first);
  const void* queries[simd::attention_rows];
  simd::AttentionMask masks[simd::attention_rows];
  void* outputs[simd::attention_rows];
  double sinks[simd::attention_rows];  // room for either type
  point_at_rows(operands, group, first, count, 0, queries, masks);
  int64_t batch = group / shape_.key_heads, key_head = group % shape_.key_heads;
  for (int64_t i = 0; i < count; ++i) {
    int64_t head = head_of(group, first + i), position = position_of(first + i);
    outputs[i] =
        static_cast<char*>(operands.output) +
        ((batch * shape_.heads + head) * shape_.queries + position) * shape_.value_features * item_;
    if (operands.sinks == nullptr) continue;
    if (compute_item_ == 8) {
      sinks[i] = static_cast<const double*>(operands.sinks)[head];
    } else {
      reinterpret_cast<float*>(sinks)[i] = static_cast<const float*>(operands.sinks)[head];
    }
  }
  const auto* keys =
      static_cast<const char*>(operands.keys) +
      (batch * shape_.key_strides.batch + key_head * shape_.key_strides.head) * item_;
  const auto* values =
      static_cast<const char*>(operands.values) +
      (batch * shape_.value_strides.batch + key_head * shape_.value_strides.head) * item_;
  simd::attention_kernels().whole(
      dtype_,
      {count, queries, masks, shape_.mask_kind, keys, shape_.key_strides.position, values,
       shape_.value_strides.position, shape_.keys, shape_.features, shape_.value_features,
       shape_.scale, task_scratch},
      operands.sinks == nullptr ? nullptr : sinks, outputs);
}

const void* AttentionPlan::keys_of(int64_t split, const AttentionOperands& operands) const {
  int64_t group = split / splits_;
  return static_cast<const char*>(operands.keys) +
         (group / shape_.key_heads * shape_.key_strides.batch +
          group % shape_.key_heads * shape_.key_strides.head +
          split % splits_ * split_keys_ * shape_.key_strides.position) *
             item_;
}

void AttentionPlan::run_split(int64_t task, bool is_last, const AttentionOperands& operands,
                              void* task_scratch) const {
  int64_t group = task / splits_;
  int64_t first_key = task % splits_ * split_keys_;
  int64_t key_count = std::min(split_keys_, shape_.keys - first_key);
  const void* queries[simd::attention_partial_rows];
  simd::AttentionMask masks[simd::attention_partial_rows];
  point_at_rows(operands, group, 0, rows_, first_key, queries, masks);
  int64_t batch = group / shape_.key_heads, key_head = group % shape_.key_heads;
  const auto* values = static_cast<const char*>(operands.values) +
                       (batch * shape_.value_strides.batch + key_head * shape_.value_strides.head +
                        first_key * shape_.value_strides.position) *
                           item_;
  int64_t all = shape_.batch * shape_.key_heads * splits_ * rows_;
  auto* maxima = static_cast<char*>(operands.partial);
  char* sums = maxima + all * compute_item_;
  char* outputs = sums + all * compute_item_;
  int64_t row = task * rows_;
  simd::attention_kernels().partial(
      dtype_,
      {rows_, queries, masks, shape_.mask_kind, keys_of(task, operands),
       shape_.key_strides.position, values, shape_.value_strides.position, key_count,
       shape_.features, shape_.value_features, shape_.scale, task_scratch,
       is_last ? nullptr : keys_of(task + 1, operands)},
      maxima + row * compute_item_, sums + row * compute_item_,
      outputs + row * shape_.value_features * compute_item_);
}

void AttentionPlan::run_combine(int64_t task, const AttentionOperands& operands) const {
  int64_t group = task / rows_, row = task % rows_;
  int64_t batch = group / shape_.key_heads;
  int64_t head = head_of(group, row), position = position_of(row);
  int64_t all = shape_.batch * shape_.key_heads * splits_ * rows_;
  // Without keys there are no partial results, and no memory for them.
  int64_t first = splits_ == 0 ? 0 : group * splits_ * rows_ + row;
  const auto* maxima = static_cast<const char*>(operands.partial);
  const char* sums = maxima + all * compute_item_;
  const char* outputs = sums + all * compute_item_;
  const char* sink = operands.sinks == nullptr
                         ? nullptr
                         : static_cast<const char*>(operands.sinks) + head * compute_item_;
  char* to =
      static_cast<char*>(operands.output) +
      ((batch * shape_.heads + head) * shape_.queries + position) * shape_.value_features * item_;
  simd::attention_kernels().combine(
      dtype_, splits_, rows_, maxima + first * compute_item_, sums + first * compute_item_,
      outputs + first * shape_.value_features * compute_item_, shape_.value_features, sink, to);
}

}  // namespace holdfast::kernels::cpu
