#include <algorithm>
#include <vector>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

namespace {

// One input of a concatenation: its row-major elements fill runs of `run` elements of the output,
// one every `pitch` elements, from element `first` on.
struct Piece {
  Bound source;
  CollapsedLayout layout, target_layout;
  int64_t first, run, pitch;
  int64_t grain, first_task;

  // Elements [begin, end).
  void copy(const char* from, char* to, size_t item, int64_t begin, int64_t end) const {
    constexpr int64_t direct_bytes = 256;  // runs from this size are worth a call each
    constexpr size_t block_bytes = 8192;
    int64_t bytes = static_cast<int64_t>(item);
    to += first * bytes;
    if (run * bytes >= direct_bytes || run == pitch) {
      for (int64_t at = begin; at < end;) {
        int64_t row = at / run, column = at % run;
        int64_t count = std::min(end - at, run - column);
        gather_range(from, layout, item, at, at + count, to + (row * pitch + column) * bytes);
        at += count;
      }
      return;
    }
    alignas(64) char block[block_bytes];
    int64_t block_size = static_cast<int64_t>(block_bytes / item);
    for (int64_t at = begin; at < end; at += block_size) {
      int64_t last = std::min(end, at + block_size);
      gather_range(from, layout, item, at, last, block);
      scatter_range(block, target_layout, item, at, last, to);
    }
  }
};

}  // namespace

void CpuBackend::concatenate(Encoder& encoder, int axis, const std::vector<array>& inputs,
                             array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const size_t item = out.itemsize();
  int64_t inner = 1;
  for (int i = axis + 1; i < static_cast<int>(out.ndim()); ++i) inner *= out.shape(i);
  std::vector<Piece> pieces;
  int64_t tasks = 0, first = 0;
  for (const array& in : inputs) {
    if (in.size() == 0) continue;
    Piece piece;
    piece.source = encoder.input(in);
    piece.layout = collapse(span_of(in.shape()), span_of(in.strides()));
    piece.target_layout = collapse(span_of(in.shape()), span_of(out.strides()));
    piece.first = first;
    piece.run = in.shape(axis) * inner;
    piece.pitch = out.shape(axis) * inner;
    piece.grain = copy_grain(piece.layout, item);
    piece.first_task = tasks;
    first += piece.run;
    tasks += divide_up(piece.layout.size, piece.grain);
    pieces.push_back(std::move(piece));
  }
  const Bound target = encoder.output(out);
  encoder.native(
      encoder.op(), tasks, 2 * static_cast<int64_t>(out.nbytes()),
      [=, pieces = std::move(pieces)](const NativeContext& context, int64_t begin, int64_t end) {
        auto next = std::upper_bound(
            pieces.begin(), pieces.end(), begin,
            [](int64_t task, const Piece& piece) { return task < piece.first_task; });
        for (auto piece = next - 1; piece != pieces.end() && piece->first_task < end; ++piece) {
          int64_t from = std::max<int64_t>(0, begin - piece->first_task) * piece->grain;
          int64_t to = std::min(piece->layout.size, (end - piece->first_task) * piece->grain);
          if (from >= to) continue;
          piece->copy(context.data(piece->source), context.data(target), item, from, to);
        }
      });
}

}  // namespace holdfast::kernels::cpu
