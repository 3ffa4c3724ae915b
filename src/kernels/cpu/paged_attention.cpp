#include "kernels/cpu/paged_attention.h"

#include <algorithm>
#include <stdexcept>

#include "base/text.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {
namespace {

constexpr int64_t rows_per_task = 16;  // of what is prepared and combined
constexpr int64_t many_tokens = 4;     // of a sequence: its rows are tasks enough
constexpr size_t most_partial_bytes = size_t{64} << 20;

}  // namespace

PagedPlan::PagedPlan(const PagedAttention& attention, const PagedShape& shape)
    : shape_(shape),
      keys_(attention.keys),
      values_(attention.values),
      scale_(attention.scale),
      window_(attention.window),
      group_(shape.heads / std::max<int64_t>(1, shape.key_heads)),
      rows_(shape.tokens * shape.heads),
      most_splits_(divide_up(shape.most_blocks * shape.block_size, simd::split_positions)) {
  const int64_t rows_per_head = shape.tokens * group_;
  const int64_t each = shape.sequences > 0 ? shape.tokens / shape.sequences * group_ : 0;
  most_tiles_ = shape.has_starts ? rows_per_head / simd::most_split_rows + shape.sequences
                                 : shape.sequences * divide_up(each, simd::most_split_rows);
  cuts_splits_ = true;
  cuts_splits_ =
      shape.tokens <= many_tokens * shape.sequences && partial_bytes() <= most_partial_bytes;
}

int64_t PagedPlan::tasks(int stage) const {
  if (stage != 1) return divide_up(rows_, rows_per_task);
  return most_tiles_ * shape_.key_heads * (cuts_splits_ ? most_splits_ : 1);
}

size_t PagedPlan::prepared_bytes() const {
  return static_cast<size_t>(rows_ * keys_.rows().dims) * sizeof(float);
}

size_t PagedPlan::partial_bytes() const {
  if (!cuts_splits_) return 0;
  return static_cast<size_t>(rows_ * most_splits_ * partial_row()) * sizeof(float);
}

size_t PagedPlan::task_scratch_bytes(int stage) const {
  const int64_t rows = keys_.spare() + values_.spare() + values_.rows().dims;
  const size_t small = static_cast<size_t>(rows + partial_row()) * sizeof(float);
  if (stage != 1) return small;
  const size_t split = simd::kv_kernels().split_scratch(keys_.rows().dims, values_.rows().dims);
  if (cuts_splits_) return split;
  return split + small +
         static_cast<size_t>(2 * simd::most_split_rows * partial_row()) * sizeof(float);
}

void PagedPlan::run(int stage, int64_t begin, int64_t end, const PagedOperands& operands,
                    void* task_scratch) const {
  if (stage == 0 && begin == 0) check(operands);
  const int64_t splits = cuts_splits_ ? most_splits_ : 1;
  int64_t number = -1;
  Tile tile;
  for (int64_t task = begin; task < end; ++task) {
    if (stage == 0) {
      prepare(task, operands, static_cast<float*>(task_scratch));
      continue;
    }
    if (stage == 2) {
      combine(task, operands, static_cast<float*>(task_scratch));
      continue;
    }
    if (task / (splits * shape_.key_heads) != number) {
      number = task / (splits * shape_.key_heads);
      tile = tile_at(number, operands);
    }
    if (tile.sequence < 0) continue;
    const int64_t key_head = task / splits % shape_.key_heads;
    if (cuts_splits_) {
      const int64_t row = row_of(key_head, tile.first_token) + tile.first;
      attend(tile, key_head, task % splits, operands,
             operands.partial + (row * splits + task % splits) * partial_row(),
             splits * partial_row(), task_scratch);
    } else {
      attend_whole(tile, key_head, operands, task_scratch);
    }
  }
}

// --- which tokens belong together ---

PagedPlan::Range PagedPlan::tokens_of(int64_t sequence, const PagedOperands& operands) const {
  if (operands.starts != nullptr) {
    return {operands.starts[sequence], operands.starts[sequence + 1]};
  }
  const int64_t each = shape_.tokens / shape_.sequences;
  return {sequence * each, (sequence + 1) * each};
}

PagedPlan::Tile PagedPlan::tile_at(int64_t number, const PagedOperands& operands) const {
  for (int64_t sequence = 0; sequence < shape_.sequences; ++sequence) {
    const Range tokens = tokens_of(sequence, operands);
    const int64_t rows = (tokens.last - tokens.first) * group_;
    const int64_t tiles = divide_up(rows, simd::most_split_rows);
    if (number < tiles) {
      const int64_t first = number * simd::most_split_rows;
      return {sequence,     tokens.last - tokens.first,
              tokens.first, operands.lengths[sequence],
              first,        std::min(simd::most_split_rows, rows - first)};
    }
    number -= tiles;
  }
  return {};
}

// The positions that a row of the tile sees.
PagedPlan::Range PagedPlan::visible(const Tile& tile, int64_t row) const {
  const int64_t token = (tile.first + row) / group_;
  const int64_t last = std::max<int64_t>(0, tile.length - tile.tokens + token + 1);
  return {window_ > 0 ? std::max<int64_t>(0, last - window_) : 0, last};
}

void PagedPlan::check(const PagedOperands& operands) const {
  auto fail = [](const auto&... parts) {
    throw std::out_of_range(text("[paged_attention] ", parts...));
  };
  if (operands.starts != nullptr) {
    if (operands.starts[0] != 0 || operands.starts[shape_.sequences] != shape_.tokens) {
      fail("starts must begin with 0 and end with the number of tokens (", shape_.tokens, "), got ",
           operands.starts[0], " and ", operands.starts[shape_.sequences]);
    }
    for (int64_t i = 0; i < shape_.sequences; ++i) {
      if (operands.starts[i] <= operands.starts[i + 1]) continue;
      fail("starts must not decrease, got ", operands.starts[i], " before ", operands.starts[i + 1],
           " at sequence ", i);
    }
  }
  const int64_t most = shape_.most_blocks * shape_.block_size;
  for (int64_t i = 0; i < shape_.sequences; ++i) {
    const Range tokens = tokens_of(i, operands);
    const int64_t length = operands.lengths[i];
    if (length < 0 || length > most) {
      fail("length ", length, " of sequence ", i, " must be between 0 and ", most,
           ", what its row of the block table holds");
    }
    if (tokens.first == tokens.last || length == 0) continue;
    const int64_t count = tokens.last - tokens.first;
    const Range seen = visible({i, count, tokens.first, length, 0, 1}, 0);
    for (int64_t block = seen.first / shape_.block_size; block * shape_.block_size < length;
         ++block) {
      const int32_t entry = operands.block_table[i * shape_.most_blocks + block];
      if (entry >= 0 && entry < shape_.blocks) continue;
      fail("entry ", block, " of the block table of sequence ", i, " must be between 0 and ",
           shape_.blocks - 1, ", got ", entry);
    }
  }
}

// --- stages ---

void PagedPlan::prepare(int64_t task, const PagedOperands& operands, float* scratch) const {
  const int64_t dims = keys_.rows().dims;
  const auto item = static_cast<int64_t>(shape_.query_dtype.size());
  const int64_t first = task * rows_per_task, last = std::min(rows_, first + rows_per_task);
  for (int64_t row = first; row < last; ++row) {
    const int64_t token = row / shape_.heads, head = row % shape_.heads;
    float* to = operands.prepared + (row_of(head / group_, token) + head % group_) * dims;
    simd::quantized_kernels().widen(shape_.query_dtype.val(),
                                    static_cast<const char*>(operands.queries) + row * dims * item,
                                    dims, to);
    keys_.rotate(to, scratch);
    for (int64_t j = 0; j < dims; ++j) to[j] *= scale_;
  }
}

bool PagedPlan::attend(const Tile& tile, int64_t key_head, int64_t split,
                       const PagedOperands& operands, float* out, int64_t out_stride,
                       void* scratch) const {
  const int64_t begin = split * simd::split_positions, end = begin + simd::split_positions;
  int64_t seen[2 * simd::most_split_rows];
  for (int64_t r = 0; r < tile.rows; ++r) {
    const Range range = visible(tile, r);
    seen[2 * r] = range.first;
    seen[2 * r + 1] = range.last;
  }
  // Later rows see later positions.
  const int64_t first = std::max(begin, seen[0]), last = std::min(end, seen[2 * tile.rows - 1]);
  if (first >= last) return false;
  simd::kv_kernels().split(
      {keys_.side(shape_.key_dtype, operands.key_pool, key_head, shape_.key_heads,
                  shape_.block_size),
       values_.side(shape_.value_dtype, operands.value_pool, key_head, shape_.key_heads,
                    shape_.block_size),
       operands.block_table + tile.sequence * shape_.most_blocks, shape_.block_size, begin, first,
       last, tile.rows,
       operands.prepared + (row_of(key_head, tile.first_token) + tile.first) * keys_.rows().dims,
       seen, out, out_stride, scratch});
  return true;
}

void PagedPlan::attend_whole(const Tile& tile, int64_t key_head, const PagedOperands& operands,
                             void* scratch) const {
  const int64_t dims = values_.rows().dims;
  auto* states = reinterpret_cast<float*>(
      static_cast<char*>(scratch) + simd::kv_kernels().split_scratch(keys_.rows().dims, dims));
  float* partial = states + simd::most_split_rows * partial_row();
  float* row = partial + simd::most_split_rows * partial_row();
  std::fill_n(states, tile.rows * partial_row(), 0.0f);
  const int64_t first = visible(tile, 0).first, last = visible(tile, tile.rows - 1).last;
  for (int64_t split = first / simd::split_positions; split * simd::split_positions < last;
       ++split) {
    if (!attend(tile, key_head, split, operands, partial, partial_row(), scratch)) continue;
    for (int64_t r = 0; r < tile.rows; ++r) {
      simd::kv_kernels().merge(states + r * partial_row(), partial + r * partial_row(), dims);
    }
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t at = tile.first + r;
    write_row(states + r * partial_row(), tile.first_token + at / group_,
              key_head * group_ + at % group_, operands, row);
  }
}

void PagedPlan::combine(int64_t task, const PagedOperands& operands, float* scratch) const {
  const int64_t dims = values_.rows().dims;
  const int64_t first = task * rows_per_task, last = std::min(rows_, first + rows_per_task);
  float* row_scratch = scratch + partial_row();
  Tile tile;
  Range tokens{0, 0};
  for (int64_t number = first; number < last; ++number) {
    const int64_t token = number / shape_.heads, head = number % shape_.heads;
    while (token >= tokens.last) {
      ++tile.sequence;
      tokens = tokens_of(tile.sequence, operands);
    }
    tile = {tile.sequence,
            tokens.last - tokens.first,
            tokens.first,
            operands.lengths[tile.sequence],
            (token - tokens.first) * group_,
            1};
    const Range seen = visible(tile, 0);
    const float* partial = operands.partial + (row_of(head / group_, token) + head % group_) *
                                                  most_splits_ * partial_row();
    std::fill_n(scratch, partial_row(), 0.0f);
    for (int64_t split = seen.first / simd::split_positions;
         split * simd::split_positions < seen.last; ++split) {
      simd::kv_kernels().merge(scratch, partial + split * partial_row(), dims);
    }
    write_row(scratch, token, head, operands, row_scratch);
  }
}

void PagedPlan::write_row(const float* state, int64_t token, int64_t head,
                          const PagedOperands& operands, float* row) const {
  const int64_t dims = values_.rows().dims;
  simd::kv_kernels().finish(state, dims,
                            operands.sinks == nullptr ? nullptr : operands.sinks + head, row);
  values_.rotate_back(row, row + dims);
  const auto item = static_cast<int64_t>(shape_.query_dtype.size());
  simd::quantized_kernels().narrow(
      shape_.query_dtype.val(), row, dims,
      static_cast<char*>(operands.out) + (token * shape_.heads + head) * dims * item);
}

}  // namespace holdfast::kernels::cpu
