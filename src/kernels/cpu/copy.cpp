#include "kernels/cpu/copy.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/cpu/simd/copy_kernels.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(CopyKernels, copy_kernels)

namespace holdfast::kernels::cpu {
namespace {

// Calls f with a value of the unsigned type that is `itemsize` wide.
template <typename F>
void with_word(size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

// The two innermost dimensions are a transposed matrix: reading along the inner one jumps, along
// the next one does not. Then blocks of whole rows go through the transposing kernel.
bool is_transposed(const CollapsedLayout& layout) {
  size_t n = layout.shape.size();
  return n >= 2 && layout.strides[n - 1] > 1 && layout.strides[n - 2] == 1 &&
         layout.shape[n - 1] >= 4 && layout.shape[n - 2] >= 4;
}

enum class Direction { gather, scatter };

template <Direction direction, typename Word>
void copy_run(const Word* strided, int64_t stride, Word* dense, int64_t count) {
  // `strided` is written when scattering: the caller's view was writable then.
  Word* view = const_cast<Word*>(strided);
  if constexpr (direction == Direction::gather) {
    if (stride == 1) {
      std::memcpy(dense, view, static_cast<size_t>(count) * sizeof(Word));
    } else if (stride == 0) {
      simd::copy_kernels().fill(sizeof(Word), view, count, dense);
    } else if (stride == -1) {
      simd::copy_kernels().reverse(sizeof(Word), view, count, dense);
    } else {
      for (int64_t i = 0; i < count; ++i) dense[i] = view[i * stride];
    }
  } else {
    if (stride == 1) {
      std::memcpy(view, dense, static_cast<size_t>(count) * sizeof(Word));
    } else {
      for (int64_t i = 0; i < count; ++i) view[i * stride] = dense[i];
    }
  }
}

template <Direction direction, typename Word>
void copy_runs(Word* base, const CollapsedLayout& layout, int64_t begin, int64_t end, Word* dense) {
  Odometer at(layout, begin);
  int64_t stride = layout.strides.empty() ? 1 : layout.strides.back();
  int64_t inner = layout.shape.empty() ? 1 : layout.shape.back();
  if (inner < 16 && layout.dimensions() >= 2) {
    // Short runs: keep the loop free of calls.
    for (int64_t i = begin; i < end;) {
      int64_t count = std::min(at.run(), end - i);
      Word* view = base + at.offset();
      for (int64_t j = 0; j < count; ++j) {
        if constexpr (direction == Direction::gather) {
          dense[j] = view[j * stride];
        } else {
          view[j * stride] = dense[j];
        }
      }
      dense += count;
      i += count;
      at.advance(count);
    }
    return;
  }
  for (int64_t i = begin; i < end;) {
    int64_t count = std::min(at.run(), end - i);
    copy_run<direction>(base + at.offset(), stride, dense, count);
    dense += count;
    i += count;
    at.advance(count);
  }
}

template <Direction direction, typename Word>
void copy_transposed(Word* base, const CollapsedLayout& layout, int64_t begin, int64_t end,
                     Word* dense) {
  size_t n = layout.shape.size();
  int64_t inner = layout.shape[n - 1];
  int64_t rows = layout.shape[n - 2];
  int64_t stride = layout.strides[n - 1];
  const simd::CopyKernels& kernels = simd::copy_kernels();
  // A partial row first, then blocks of whole rows inside one matrix, then the rest.
  int64_t i = std::min(end, (begin + inner - 1) / inner * inner);
  copy_runs<direction>(base, layout, begin, i, dense);
  while (end - i >= inner) {
    int64_t row = i / inner % rows;
    int64_t count = std::min((end - i) / inner, rows - row);
    Word* view = base + offset_at(layout, i);
    Word* block = dense + (i - begin);
    if constexpr (direction == Direction::gather) {
      bool stream = static_cast<size_t>(layout.size) * sizeof(Word) > stream_threshold();
      kernels.transpose(sizeof(Word), view, stride, inner, count, block, inner, stream);
    } else {
      kernels.transpose(sizeof(Word), block, inner, count, inner, view, stride, false);
    }
    i += count * inner;
  }
  if (i < end) copy_runs<direction>(base, layout, i, end, dense + (i - begin));
}

template <Direction direction>
void copy_range(void* base, const CollapsedLayout& layout, size_t itemsize, int64_t begin,
                int64_t end, void* dense) {
  if (begin >= end) return;
  with_word(itemsize, [&](auto word) {
    using Word = decltype(word);
    auto* view = static_cast<Word*>(base);
    auto* packed = static_cast<Word*>(dense);
    if (is_transposed(layout)) {
      copy_transposed<direction>(view, layout, begin, end, packed);
    } else {
      copy_runs<direction>(view, layout, begin, end, packed);
    }
  });
}

#if defined(__SSE2__)
void stream_fill(char* destination, const char* pattern64, size_t bytes) {
  __m128i value[4];
  std::memcpy(value, pattern64, 64);
  for (size_t i = 0; i < bytes; i += 64) {
    auto* to = reinterpret_cast<__m128i*>(destination + i);
    for (int part = 0; part < 4; ++part) _mm_stream_si128(to + part, value[part]);
  }
  _mm_sfence();
}
#endif

// Bytes up to the first cache line boundary of `destination`.
size_t bytes_to_line(const void* destination) {
  return (64 - reinterpret_cast<uintptr_t>(destination) % 64) % 64;
}

}  // namespace

void gather_range(const void* base, const CollapsedLayout& layout, size_t itemsize, int64_t begin,
                  int64_t end, void* dense) {
  copy_range<Direction::gather>(const_cast<void*>(base), layout, itemsize, begin, end, dense);
}

void scatter_range(const void* dense, const CollapsedLayout& layout, size_t itemsize, int64_t begin,
                   int64_t end, void* base) {
  copy_range<Direction::scatter>(base, layout, itemsize, begin, end, const_cast<void*>(dense));
}

int64_t copy_grain(const CollapsedLayout& layout, size_t itemsize) {
  int64_t grain = static_cast<int64_t>((size_t{512} << 10) / itemsize);
  if (!is_transposed(layout)) return grain;
  // Whole groups of rows that fill the transposing kernel's lines on the strided side.
  int64_t lines = static_cast<int64_t>(4 * 64 / itemsize);
  int64_t group = lines * layout.shape.back();
  return std::max<int64_t>(1, grain / group) * group;
}

static std::atomic<size_t> forced_stream_threshold{0};

void force_stream_threshold(size_t bytes) { forced_stream_threshold = bytes; }
void unforce_stream_threshold() { forced_stream_threshold = 0; }

size_t stream_threshold() {
  if (size_t forced = forced_stream_threshold.load(std::memory_order_relaxed)) return forced;
  static const size_t threshold = [] {
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (cache <= 0) cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    // Virtual machines report the whole host's cache; a share of 32 MiB is already a large one.
    constexpr long most = 32l << 20;
    if (cache <= 0 || cache > most) cache = most;
    // What was read to make it has passed through the cache, too.
    return static_cast<size_t>(cache / 2);
  }();
  return threshold;
}

void stream_block(void* destination, const void* source, size_t bytes, const void* next) {
  auto* to = static_cast<char*>(destination);
  const auto* from = static_cast<const char*>(source);
  size_t head = std::min(bytes, bytes_to_line(to));
  std::memcpy(to, from, head);
  size_t lines = (bytes - head) / 64;
  simd::copy_kernels().stream_lines(to + head, from + head, static_cast<int64_t>(lines), next);
  size_t done = head + lines * 64;
  std::memcpy(to + done, from + done, bytes - done);
}

void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

void copy_dense(void* destination, const void* source, size_t bytes, bool stream) {
  if (bytes == 0) return;
  if (stream && bytes >= 4096) {
    stream_block(destination, source, bytes);
    end_stream();
  } else {
    std::memcpy(destination, source, bytes);
  }
}

void copy_ahead(void* destination, const void* source, size_t bytes, const void* next,
                bool stream) {
  if (stream) return stream_block(destination, source, bytes, next);
  if (next != nullptr) {
    // The head of a long piece; the processor sees how it goes on.
    size_t head = std::min<size_t>(bytes, 4096);
    for (size_t i = 0; i < head; i += 64) {
      __builtin_prefetch(static_cast<const char*>(next) + i, 0, 2);
    }
  }
  std::memcpy(destination, source, bytes);
}

void fill_dense(void* destination, const void* value, size_t itemsize, int64_t count, bool stream) {
  if (count <= 0) return;
  size_t bytes = static_cast<size_t>(count) * itemsize;
  with_word(itemsize, [&](auto word) {
    using Word = decltype(word);
    Word pattern;
    std::memcpy(&pattern, value, sizeof(Word));
    auto* to = static_cast<Word*>(destination);
#if defined(__SSE2__)
    size_t head = bytes_to_line(to);
    if (stream && bytes >= 4096 && head % itemsize == 0) {
      Word line[64 / sizeof(Word)];
      std::fill(std::begin(line), std::end(line), pattern);
      size_t body = (bytes - head) / 64 * 64;
      size_t lead = head / itemsize;
      size_t streamed = body / itemsize;
      std::fill_n(to, lead, pattern);
      stream_fill(reinterpret_cast<char*>(to + lead), reinterpret_cast<const char*>(line), body);
      std::fill_n(to + lead + streamed, static_cast<size_t>(count) - lead - streamed, pattern);
      return;
    }
#endif
    std::fill_n(to, count, pattern);
  });
  (void)stream;
}

}  // namespace holdfast::kernels::cpu
