#include "exec/residency.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "exec/layers/layer.h"

namespace holdfast::exec {
namespace {

constexpr uintptr_t page = 4096;
// How many that wait are tried when something is let go: a limit that is full stays cheap.
constexpr int tries = 8;

uintptr_t first_page(const Storage& storage) {
  return reinterpret_cast<uintptr_t>(storage.address) & ~(page - 1);
}
uintptr_t last_page(const Storage& storage) {
  return (reinterpret_cast<uintptr_t>(storage.address) + storage.capacity - 1) & ~(page - 1);
}

}  // namespace

Residency::Locks Residency::system_locks() {
  return {[](const void* address, size_t bytes) { return mlock(address, bytes) == 0; },
          [](const void* address, size_t bytes) { return munlock(address, bytes) == 0; }};
}

Residency::Locks Residency::no_locks() {
  return {[](const void*, size_t) { return true; }, [](const void*, size_t) { return true; }};
}

void Residency::insert(Storage& storage, sync::Held, const char* op) noexcept {
  try {
    if (limit() == 0 || !wire(storage)) waiting_.insert(&storage);
  } catch (const std::bad_alloc&) {
    // It stays unwired, and is not counted.
  }
  if (limit() == 0) return;
  using Kind = LimitReached::Kind;
  if (storage.residency_set < 0) {
    Kind kind = storage.residency_refused ? Kind::refused : Kind::wired;
    layers::on_limit({kind, op, storage.capacity, wired_size(), limit()});
  } else if (num_sets() > max_sets) {
    layers::on_limit({Kind::residency_sets, op, storage.capacity, num_sets(), max_sets});
  }
}

void Residency::erase(Storage& storage, sync::Held) noexcept {
  if (storage.residency_set < 0) {
    if (storage.residency_refused) {
      refused_.fetch_sub(storage.capacity);
      storage.residency_refused = false;
    }
    waiting_.erase(&storage);
    return;
  }
  unwire(storage);
  wire_waiting();
}

size_t Residency::set_limit(size_t new_limit, sync::Held) noexcept {
  size_t previous = limit_.exchange(new_limit);
  while (wired_size() > new_limit && !members_.empty()) {
    Storage* storage = *members_.begin();
    unwire(*storage);
    try {
      waiting_.insert(storage);
    } catch (const std::bad_alloc&) {
    }
  }
  if (new_limit > previous) {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      bool wired = false;
      try {
        wired = wire(**it);
      } catch (const std::bad_alloc&) {
      }
      it = wired ? waiting_.erase(it) : std::next(it);
    }
  }
  return previous;
}

size_t Residency::set_max_bytes_per_set(size_t bytes) { return bytes_per_set_.exchange(bytes); }

void Residency::wire_waiting() noexcept {
  if (limit() == 0) return;
  int left = tries;
  for (auto it = waiting_.begin(); it != waiting_.end() && left > 0; --left) {
    bool wired = false;
    try {
      wired = wire(**it);
    } catch (const std::bad_alloc&) {
    }
    it = wired ? waiting_.erase(it) : std::next(it);
  }
}

bool Residency::wire(Storage& storage) {
  bool has_room = wired_size() + storage.capacity <= limit();
  if (!has_room) return false;
  members_.reserve(members_.size() + 1);
  if (!lock_pages(storage)) {
    if (!storage.residency_refused) {
      storage.residency_refused = true;
      refused_.fetch_add(storage.capacity);
    }
    if (!has_warned_) {
      has_warned_ = true;
      std::fprintf(stderr,
                   "[holdfast] the system does not let this process lock %zu bytes (%s): memory "
                   "stays unwired; raise `ulimit -l`\n",
                   storage.capacity, std::strerror(errno));
    }
    return false;
  }
  if (storage.residency_refused) {
    storage.residency_refused = false;
    refused_.fetch_sub(storage.capacity);
  }
  size_t chosen = choose_set(storage.capacity);
  Set& set = sets_[chosen];
  if (set.members++ == 0) set_count_.fetch_add(1);
  set.bytes += storage.capacity;
  storage.residency_set = static_cast<int8_t>(chosen);
  members_.insert(&storage);
  wired_.fetch_add(storage.capacity);
  return true;
}

void Residency::unwire(Storage& storage) noexcept {
  unlock_pages(storage);
  Set& set = sets_[static_cast<size_t>(storage.residency_set)];
  set.bytes -= storage.capacity;
  if (--set.members == 0) set_count_.fetch_sub(1);
  storage.residency_set = -1;
  members_.erase(&storage);
  wired_.fetch_sub(storage.capacity);
}

// The first set that has room; else an empty one, also for what is larger than a set may be; when
// there is none left, the one with the least in it.
size_t Residency::choose_set(size_t bytes) const {
  size_t cap = max_bytes_per_set();
  size_t empty = set_bound_;
  for (size_t i = 0; i < set_bound_; ++i) {
    if (sets_[i].members == 0) {
      empty = std::min(empty, i);
    } else if (sets_[i].bytes <= cap && bytes <= cap - sets_[i].bytes) {
      return i;
    }
  }
  if (empty < set_bound_) return empty;
  auto least =
      std::min_element(sets_.begin(), sets_.begin() + static_cast<std::ptrdiff_t>(set_bound_),
                       [](const Set& a, const Set& b) { return a.bytes < b.bytes; });
  return static_cast<size_t>(least - sets_.begin());
}

bool Residency::lock_pages(const Storage& storage) {
  uintptr_t first = first_page(storage), last = last_page(storage);
  uint32_t& count_first = shared_pages_[first];
  ++count_first;
  if (last != first) {
    try {
      ++shared_pages_[last];
    } catch (...) {
      if (--shared_pages_[first] == 0) shared_pages_.erase(first);
      throw;
    }
  }
  if (locks_.lock(reinterpret_cast<const void*>(first), last - first + page)) return true;
  int error = errno;
  unlock_pages(storage);
  errno = error;
  return false;
}

void Residency::unlock_pages(const Storage& storage) noexcept {
  uintptr_t begin = first_page(storage), end = last_page(storage) + page;
  auto release = [&](uintptr_t at) {
    auto found = shared_pages_.find(at);
    if (--found->second > 0) return false;
    shared_pages_.erase(found);
    return true;
  };
  bool is_one_page = end - begin == page;
  if (!is_one_page && !release(end - page)) end -= page;
  if (!release(begin)) begin += page;
  if (begin < end) locks_.unlock(reinterpret_cast<const void*>(begin), end - begin);
}

}  // namespace holdfast::exec
