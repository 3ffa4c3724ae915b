#include "kernels/cpu/threefry.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/random_kernels.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(RandomKernels, random_kernels)

namespace holdfast::kernels::cpu {
namespace {

constexpr int64_t words_per_task = int64_t{16} << 10;

}  // namespace

RandomWords threefry2x32(RandomWords key, RandomWords counter) {
  RandomWords result;
  simd::random_kernels().threefry(key.first, key.second, counter.first, counter.second, 1,
                                  &result.first, &result.second);
  return result;
}

void random_words(RandomWords key, int64_t count, int64_t begin, int64_t end, uint32_t* to) {
  const simd::RandomKernels& kernels = simd::random_kernels();
  int64_t half = (count + 1) / 2;
  bool odd = count % 2 != 0;
  auto counters = [&](int64_t from, int64_t stop, uint32_t* first, uint32_t* second) {
    if (from >= stop) return;
    kernels.threefry(key.first, key.second, static_cast<uint32_t>(from),
                     static_cast<uint32_t>(half + from), stop - from, first, second);
  };
  int64_t paired = odd ? half - 1 : half;  // counters whose two words are both used
  int64_t first_end = std::min(end, paired);
  if (begin < first_end) {
    counters(begin, first_end, to, nullptr);
    to += first_end - begin;
    begin = first_end;
  }
  if (odd && begin == half - 1 && begin < end) {
    *to++ = threefry2x32(key, {static_cast<uint32_t>(half - 1), 0}).first;
    ++begin;
  }
  counters(begin - half, end - half, nullptr, to);
}

RandomBitsPlan::RandomBitsPlan(const CollapsedLayout& keys, int64_t bytes_per_key)
    : keys_(keys), bytes_per_key_(bytes_per_key), words_per_key_((bytes_per_key + 3) / 4) {
  words_ = keys.size / 2 * words_per_key_;
  tasks_ = (words_ + words_per_task - 1) / words_per_task;
}

void RandomBitsPlan::run(int64_t task, const uint32_t* keys, void* output) const noexcept {
  int64_t begin = task * words_per_task;
  int64_t end = std::min(words_, begin + words_per_task);
  while (begin < end) {
    int64_t which = begin / words_per_key_;
    int64_t word = begin % words_per_key_;
    int64_t count = std::min(end - begin, words_per_key_ - word);
    RandomWords key{keys[offset_at(keys_, 2 * which)], keys[offset_at(keys_, 2 * which + 1)]};
    char* to = static_cast<char*>(output) + which * bytes_per_key_;
    // A buffer in between: the output may be unaligned, and the last word may be cut.
    constexpr int64_t step = 1024;
    uint32_t buffer[step];
    for (int64_t i = 0; i < count; i += step) {
      int64_t n = std::min(step, count - i);
      random_words(key, words_per_key_, word + i, word + i + n, buffer);
      int64_t first_byte = (word + i) * 4;
      std::memcpy(to + first_byte, buffer,
                  static_cast<size_t>(std::min(n * 4, bytes_per_key_ - first_byte)));
    }
    begin += count;
  }
}

}  // namespace holdfast::kernels::cpu
