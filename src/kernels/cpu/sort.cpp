#include "kernels/cpu/sort.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "kernels/cpu/sort_keys.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {
namespace {

constexpr int radix = 256;
constexpr int64_t sort_task_elements = 16 << 10;
constexpr int64_t long_row = 128 << 10;  // from here on a row is worth several tasks
constexpr int64_t few_rows = 16;
constexpr int64_t least_chunk = 32 << 10;
constexpr int64_t most_chunks = 128;

// What is moved while sorting: a key, or a key with the index it came from.
template <typename T, bool is_arg>
struct Item {
  using Key = UnsignedOfSize<sizeof(T)>;
  static constexpr int bytes = sizeof(Key);
  Key key;
  static Item make(T value, int64_t) { return {key_of<false>(value)}; }
  int digit(int pass) const { return static_cast<int>(key >> (8 * pass) & 0xff); }
  bool operator<(const Item& other) const { return key < other.key; }
  T result() const { return value_of<T>(key); }
};
// Both in one word, the key on top.
template <typename T>
  requires(sizeof(T) < 8)
struct Item<T, true> {
  static constexpr int bytes = sizeof(T);
  uint64_t word;
  static Item make(T value, int64_t index) {
    return {uint64_t{key_of<true>(value)} << 32 | static_cast<uint64_t>(index)};
  }
  int digit(int pass) const { return static_cast<int>(word >> (32 + 8 * pass) & 0xff); }
  bool operator<(const Item& other) const { return word < other.word; }
  uint32_t result() const { return static_cast<uint32_t>(word); }
};
template <typename T>
  requires(sizeof(T) == 8)
struct Item<T, true> {
  static constexpr int bytes = 8;
  uint64_t key;
  uint64_t index;
  static Item make(T value, int64_t index) {
    return {key_of<true>(value), static_cast<uint64_t>(index)};
  }
  int digit(int pass) const { return static_cast<int>(key >> (8 * pass) & 0xff); }
  bool operator<(const Item& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
  uint32_t result() const { return static_cast<uint32_t>(index); }
};

template <typename Items>
using Histograms = std::array<std::array<uint32_t, radix>, Items::bytes>;

// Sorts `count` items in `a`, with `b` of the same size to work in; gives the one that holds the
// result. Counts fit 32 bits: a row has at most 2^31 - 1 elements.
template <typename I>
I* sort_items(I* a, I* b, int64_t count) {
  // Below this, comparing is faster than counting.
  constexpr int64_t worth_counting = I::bytes == 8 ? 512 : I::bytes == 4 ? 160 : 64;
  if (count < worth_counting) {
    // Items with an index are all different; of equal keys alone the order does not show.
    std::sort(a, a + count);
    return a;
  }
  Histograms<I> counts{};
  for (int64_t i = 0; i < count; ++i) {
    for (int pass = 0; pass < I::bytes; ++pass) {
      ++counts[static_cast<size_t>(pass)][static_cast<size_t>(a[i].digit(pass))];
    }
  }
  for (int pass = 0; pass < I::bytes; ++pass) {
    auto& places = counts[static_cast<size_t>(pass)];
    if (places[static_cast<size_t>(a[0].digit(pass))] == count) continue;  // all alike
    uint32_t next = 0;
    for (uint32_t& place : places) next += std::exchange(place, next);
    for (int64_t i = 0; i < count; ++i) b[places[static_cast<size_t>(a[i].digit(pass))]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

// Partitions `count` items in `a` around the one that belongs at `kth`. Items of one class keep
// their order.
template <typename I>
void select_item(I* a, I* b, int64_t count, int64_t kth) {
  constexpr int64_t worth_counting = 64;
  int64_t begin = 0, end = count;
  for (int pass = I::bytes - 1; pass >= 0 && end - begin > 1; --pass) {
    if (end - begin <= worth_counting) {
      std::sort(a + begin, a + end);
      return;
    }
    std::array<uint32_t, radix> counts{};
    for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(a[i].digit(pass))];
    int wanted = 0;
    int64_t first = begin;
    for (; first + counts[static_cast<size_t>(wanted)] <= kth; ++wanted) {
      first += counts[static_cast<size_t>(wanted)];
    }
    int64_t last = first + counts[static_cast<size_t>(wanted)];
    if (last - first == end - begin) continue;  // all alike
    int64_t places[3] = {begin, first, last};
    for (int64_t i = begin; i < end; ++i) {
      int digit = a[i].digit(pass);
      b[places[(digit >= wanted) + (digit > wanted)]++] = a[i];
    }
    std::copy(b + begin, b + end, a + begin);
    begin = first;
    end = last;
  }
}

// --- a long row, in phases ---

// The scratch of a long row: two sets of items, and for each chunk the counts of each pass.
template <typename I>
struct LongRow {
  using Chunk = Histograms<I>;
  I *first, *second;
  Chunk* counts;  // of the items in their first order; later, of the pass at hand, at [pass]
  int64_t length, chunk, chunks;

  LongRow(char* scratch, int64_t row_length, int64_t chunk_length, int64_t chunk_count)
      : first(reinterpret_cast<I*>(scratch)),
        second(first + row_length),
        counts(reinterpret_cast<Chunk*>(scratch + item_bytes(row_length))),
        length(row_length),
        chunk(chunk_length),
        chunks(chunk_count) {}
  static size_t bytes(int64_t length, int64_t chunks) {
    return item_bytes(length) + static_cast<size_t>(chunks) * sizeof(Chunk) +
           sizeof(bool) * I::bytes;
  }
  // Of both sets, and what aligns the counts behind them: items may be single bytes.
  static size_t item_bytes(int64_t length) {
    return (2 * static_cast<size_t>(length) * sizeof(I) + alignof(Chunk) - 1) / alignof(Chunk) *
           alignof(Chunk);
  }
  // Of each pass: are all digits alike, so that there is nothing to move?
  bool* trivial() const { return reinterpret_cast<bool*>(counts + chunks); }
  I* source(int pass) const {
    bool swapped = false;
    for (int p = 0; p < pass; ++p) swapped ^= !trivial()[p];
    return swapped ? second : first;
  }
  I* target(int pass) const { return source(pass) == first ? second : first; }
  int64_t begin(int64_t task) const { return task * chunk; }
  int64_t end(int64_t task) const { return std::min(length, (task + 1) * chunk); }

  template <typename T>
  void load(int64_t task, const T* in) const {
    Chunk& own = counts[task];
    for (auto& histogram : own) histogram.fill(0);
    for (int64_t i = begin(task); i < end(task); ++i) {
      first[i] = I::make(in[i], i);
      for (int pass = 0; pass < I::bytes; ++pass) {
        ++own[static_cast<size_t>(pass)][static_cast<size_t>(first[i].digit(pass))];
      }
    }
  }
  // How often each digit appears does not change while items move, only where.
  void find_trivial() const {
    for (size_t pass = 0; pass < static_cast<size_t>(I::bytes); ++pass) {
      auto digit = static_cast<size_t>(first[0].digit(static_cast<int>(pass)));
      int64_t total = 0;
      for (int64_t c = 0; c < chunks; ++c) total += counts[c][pass][digit];
      trivial()[pass] = total == length;
    }
  }
  void count(int pass, int64_t task) const {
    if (pass == 0 || trivial()[pass]) return;  // the first counts were taken while loading
    auto& histogram = counts[task][static_cast<size_t>(pass)];
    histogram.fill(0);
    const I* from = source(pass);
    for (int64_t i = begin(task); i < end(task); ++i) {
      ++histogram[static_cast<size_t>(from[i].digit(pass))];
    }
  }
  // Counts become the places of the first item of each digit in each chunk.
  void place(int pass) const {
    if (pass == 0) find_trivial();
    if (trivial()[pass]) return;
    uint32_t next = 0;
    for (size_t digit = 0; digit < radix; ++digit) {
      for (int64_t c = 0; c < chunks; ++c) {
        next += std::exchange(counts[c][static_cast<size_t>(pass)][digit], next);
      }
    }
  }
  void move(int pass, int64_t task) const {
    if (trivial()[pass]) return;
    auto& places = counts[task][static_cast<size_t>(pass)];
    const I* from = source(pass);
    I* to = target(pass);
    for (int64_t i = begin(task); i < end(task); ++i) {
      to[places[static_cast<size_t>(from[i].digit(pass))]++] = from[i];
    }
  }
  template <typename R>
  void store(int64_t task, R* out) const {
    const I* from = source(I::bytes);
    for (int64_t i = begin(task); i < end(task); ++i) out[i] = static_cast<R>(from[i].result());
  }
};

}  // namespace

SortPlan::SortPlan(const SortKind& kind, Dtype::Val dtype, int64_t rows, int64_t length)
    : kind_(kind),
      dtype_(dtype),
      rows_(rows),
      length_(length),
      item_size_(static_cast<int64_t>(kernels::item_size(dtype))) {
  rows_per_task_ = std::max<int64_t>(1, sort_task_elements / std::max<int64_t>(1, length));
  if (length < long_row || rows >= few_rows || kind.kth != SortKind::whole) return;
  chunk_ = std::max(least_chunk, divide_up(length, most_chunks));
  chunks_ = divide_up(length, chunk_);
  // Loading, three phases a byte, storing.
  phases_per_row_ = 3 * item_size_ + 2;
  dispatch_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    scratch_bytes_ = kind.is_arg ? LongRow<Item<T, true>>::bytes(length, chunks_)
                                 : LongRow<Item<T, false>>::bytes(length, chunks_);
  });
}

int64_t SortPlan::tasks(int64_t phase) const {
  if (chunks_ == 0) return divide_up(rows_, rows_per_task_);
  int64_t step = phase % phases_per_row_;
  bool is_placing = step > 0 && step < phases_per_row_ - 1 && step % 3 == 2;
  return is_placing ? 1 : chunks_;
}

int64_t SortPlan::work(int64_t phase) const {
  if (chunks_ == 0) return rows_ * length_ * item_size_ * 8;
  return tasks(phase) == 1 ? 0 : length_ * item_size_ * 4;
}

template <typename T, bool is_arg>
void SortPlan::run_typed(int64_t phase, int64_t task, const T* in, void* out_bytes,
                         char* scratch) const {
  using I = Item<T, is_arg>;
  using R = std::conditional_t<is_arg, uint32_t, T>;
  R* out = static_cast<R*>(out_bytes);
  if (chunks_ == 0) {
    int64_t begin = task * rows_per_task_, end = std::min(rows_, begin + rows_per_task_);
    auto memory = std::make_unique_for_overwrite<I[]>(2 * static_cast<size_t>(length_));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < length_; ++i) memory[i] = I::make(in[row * length_ + i], i);
      const I* sorted = memory.get();
      if (kind_.kth == SortKind::whole) {
        sorted = sort_items(memory.get(), memory.get() + length_, length_);
      } else {
        select_item(memory.get(), memory.get() + length_, length_, kind_.kth);
      }
      for (int64_t i = 0; i < length_; ++i) {
        out[row * length_ + i] = static_cast<R>(sorted[i].result());
      }
    }
    return;
  }
  int64_t row = phase / phases_per_row_, step = phase % phases_per_row_;
  LongRow<I> state(scratch, length_, chunk_, chunks_);
  if (step == 0) return state.load(task, in + row * length_);
  if (step == phases_per_row_ - 1) return state.store(task, out + row * length_);
  int pass = static_cast<int>((step - 1) / 3);
  switch ((step - 1) % 3) {
    case 0:
      return state.count(pass, task);
    case 1:
      return state.place(pass);
    default:
      return state.move(pass, task);
  }
}

void SortPlan::run(int64_t phase, int64_t task, const void* in, void* out, void* scratch) const {
  dispatch_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(in);
    char* memory = static_cast<char*>(scratch);
    if (kind_.is_arg) {
      run_typed<T, true>(phase, task, from, out, memory);
    } else {
      run_typed<T, false>(phase, task, from, out, memory);
    }
  });
}

void search_sorted(Dtype::Val dtype, const void* sorted, int64_t count, int64_t stride,
                   const void* values, int64_t value_count, bool right, uint32_t* result) {
  dispatch_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* sequence = static_cast<const T*>(sorted);
    const T* wanted = static_cast<const T*>(values);
    if (count == 0) {
      std::fill_n(result, value_count, 0u);
      return;
    }
    // Some at a time, step by step together: their loads overlap, and nothing is guessed.
    constexpr int64_t together = 16;
    for (int64_t i = 0; i < value_count; i += together) {
      int64_t some = std::min(together, value_count - i);
      decltype(key_of<true>(T{})) keys[together] = {};
      int64_t first[together] = {};
      for (int64_t j = 0; j < some; ++j) keys[j] = key_of<true>(wanted[i + j]);
      auto counts = [&](int64_t j, int64_t at) -> int64_t {
        auto there = key_of<true>(sequence[at * stride]);
        return right ? there <= keys[j] : there < keys[j];
      };
      // The answer lies in [first, first + left].
      int64_t left = count;
      for (; left > 1; left -= left / 2) {
        int64_t half = left / 2;
        for (int64_t j = 0; j < together; ++j) first[j] += counts(j, first[j] + half - 1) * half;
      }
      for (int64_t j = 0; j < some; ++j) {
        result[i + j] = static_cast<uint32_t>(first[j] + counts(j, first[j]));
      }
    }
  });
}

}  // namespace holdfast::kernels::cpu
