#include <algorithm>
#include <bit>

#include "exec/allocator.h"

namespace holdfast::exec {

int SizeClasses::of(size_t bytes) {
  // 64-byte steps up to 1 KiB, then 16 steps per power of two.
  size_t units = (std::max<size_t>(bytes, 1) + 63) / 64;
  if (units <= 16) return static_cast<int>(units - 1);
  int log = std::bit_width(units - 1) - 1;  // 2^log <= units - 1
  size_t step = size_t{1} << (log - 4);
  size_t above = (units - (size_t{1} << log) + step - 1) / step;  // 1 … 16
  return std::min((log - 4) * 16 + 15 + static_cast<int>(above), count - 1);
}

size_t SizeClasses::bytes(int size_class) {
  if (size_class < 16) return (static_cast<size_t>(size_class) + 1) * 64;
  int log = (size_class - 16) / 16 + 4;
  size_t above = static_cast<size_t>(size_class - 16) % 16 + 1;
  return ((size_t{1} << log) + above * (size_t{1} << (log - 4))) * 64;
}

void SizeClasses::push(Storage* storage) {
  int c = of(storage->capacity);
  storage->next = heads_[c];
  heads_[c] = storage;
  used_[c / 64] |= uint64_t{1} << (c % 64);
  ++size_;
}

Storage* SizeClasses::take_first(int c) {
  Storage* storage = heads_[c];
  if (!storage) return nullptr;
  heads_[c] = storage->next;
  if (!heads_[c]) used_[c / 64] &= ~(uint64_t{1} << (c % 64));
  --size_;
  storage->next = nullptr;
  return storage;
}

Storage* SizeClasses::take(size_t bytes) {
  if (size_ == 0) return nullptr;
  int first = of(bytes);
  for (int c = first; c <= first + 8 && c < count; ++c) {
    if (Storage* storage = take_first(c)) return storage;
  }
  return nullptr;
}

Storage* SizeClasses::take_smaller(size_t bytes) {
  for (int c = of(bytes) - 1; size_ > 0 && c >= 0; --c) {
    if (!used_[c / 64]) {
      c = c / 64 * 64;  // none in this word
      continue;
    }
    if (Storage* storage = take_first(c)) return storage;
  }
  return nullptr;
}

}  // namespace holdfast::exec
