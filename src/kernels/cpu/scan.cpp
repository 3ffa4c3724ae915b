#include "kernels/cpu/scan.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/target_table.h"
#include "kernels/plan/layout.h"

HOLDFAST_SIMD_TABLE(ScanKernels, scan_kernels)

namespace holdfast::kernels::cpu {
namespace {

// All of these shape the result's bits: they depend on nothing but the shape.
constexpr int64_t scan_task_elements = 32 << 10;
constexpr int64_t enough_lines = 64;      // from here on lines alone are enough to share
constexpr int64_t max_width = 4096;       // columns of a piece
constexpr int64_t batch_bytes = 8 << 20;  // read twice before the next ones; fits a cache

}  // namespace

ScanPlan::ScanPlan(ScanOp op, Dtype::Val dtype, int64_t outer, int64_t length, int64_t inner,
                   bool reverse, bool inclusive)
    : kernel_(simd::scan_kernels().find(op, dtype)),
      item_size_(static_cast<int64_t>(item_size(dtype))),
      length_(length),
      inner_(inner),
      reverse_(reverse),
      inclusive_(inclusive) {
  width_ = std::min(inner, max_width);
  column_blocks_ = width_ == 0 ? 0 : divide_up(inner, width_);
  lines_ = outer * column_blocks_;
  int64_t line_size = std::max<int64_t>(1, length * width_);
  lines_per_task_ = std::max<int64_t>(1, scan_task_elements / line_size);
  chunk_ = length;
  if (lines_ < enough_lines && line_size >= 4 * scan_task_elements) {
    // Enough rows that the carries of a chunk are few beside its elements.
    chunk_ = std::max<int64_t>(32, scan_task_elements / width_);
    chunks_ = divide_up(length, chunk_);
    batch_pairs_ = std::max<int64_t>(4, batch_bytes / (chunk_ * width_ * item_size_));
    batches_ = divide_up(lines_ * chunks_, batch_pairs_);
    scratch_bytes_ = static_cast<size_t>((batch_pairs_ + 1) * width_) * kernel_->state_size;
  }
}

int64_t ScanPlan::pairs_of(int64_t batch) const {
  return std::min(batch_pairs_, lines_ * chunks_ - batch * batch_pairs_);
}

int64_t ScanPlan::tasks(int64_t phase) const {
  if (chunks_ == 1) return divide_up(lines_, lines_per_task_);
  return phase % 3 == 1 ? 1 : pairs_of(phase / 3);
}

int64_t ScanPlan::work(int64_t phase) const {
  int64_t line_bytes = length_ * width_ * item_size_;
  if (chunks_ == 1) return lines_ * line_bytes * 2;
  return phase % 3 == 1 ? 0 : tasks(phase) * chunk_ * width_ * item_size_ * 2;
}

ScanPlan::Piece ScanPlan::piece(int64_t line, int64_t chunk) const {
  int64_t outer = line / column_blocks_, column = line % column_blocks_ * width_;
  int64_t begin = chunk * chunk_;
  int64_t count = std::min(chunk_, length_ - begin);
  // Chunks count along the scan, memory from the front.
  int64_t row = reverse_ ? length_ - begin - count : begin;
  if (inner_ > 1 && reverse_) row += count - 1;
  return {(outer * length_ + row) * inner_ + column, count, std::min(width_, inner_ - column)};
}

void ScanPlan::scan(const Piece& piece, const char* in, char* out, void* states) const {
  const char* from = in + piece.offset * item_size_;
  char* to = out + piece.offset * item_size_;
  if (inner_ == 1) {
    kernel_->line(from, to, piece.count, reverse_, inclusive_, states);
  } else {
    kernel_->columns(from, to, piece.count, reverse_ ? -inner_ : inner_, piece.width, inclusive_,
                     states);
  }
}

void ScanPlan::total(const Piece& piece, const char* in, void* states) const {
  const char* from = in + piece.offset * item_size_;
  if (inner_ == 1) {
    kernel_->line_total(from, piece.count, reverse_, states);
  } else {
    kernel_->column_totals(from, piece.count, reverse_ ? -inner_ : inner_, piece.width, states);
  }
}

// scratch[i] is the total of pair i, and becomes the state before it. The last place holds the
// state behind the batch before.
void ScanPlan::carry(int64_t batch, char* scratch) const {
  size_t bytes = static_cast<size_t>(width_) * kernel_->state_size;
  char* running = scratch + static_cast<size_t>(batch_pairs_) * bytes;
  for (int64_t i = 0; i < pairs_of(batch); ++i) {
    if ((batch * batch_pairs_ + i) % chunks_ == 0) kernel_->initialise(running, width_);
    char* place = scratch + static_cast<size_t>(i) * bytes;
    // `place` takes the running states, which take in the totals.
    alignas(64) char totals[max_width * 8];
    std::memcpy(totals, place, bytes);
    std::memcpy(place, running, bytes);
    kernel_->combine(totals, width_, running);
  }
}

void ScanPlan::run(int64_t phase, int64_t task, const void* in, void* out,
                   void* scratch) const noexcept {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  char* states = static_cast<char*>(scratch);
  if (chunks_ == 1) {
    alignas(64) char own[max_width * 8];
    int64_t last = std::min(lines_, (task + 1) * lines_per_task_);
    for (int64_t line = task * lines_per_task_; line < last; ++line) {
      kernel_->initialise(own, width_);
      scan(piece(line, 0), from, to, own);
    }
    return;
  }
  int64_t batch = phase / 3;
  if (phase % 3 == 1) return carry(batch, states);
  int64_t pair = batch * batch_pairs_ + task;
  char* own = states + static_cast<size_t>(task * width_) * kernel_->state_size;
  Piece part = piece(pair / chunks_, pair % chunks_);
  if (phase % 3 == 0) {
    kernel_->initialise(own, width_);
    total(part, from, own);
  } else {
    scan(part, from, to, own);
  }
}

}  // namespace holdfast::kernels::cpu
