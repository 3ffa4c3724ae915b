// Wired memory: what is in which set, and that the counters never drift. Locks are stand-ins, so
// that the cases do not depend on what the system allows; the last cases use the real ones.
#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <random>

#include <holdfast/holdfast.h>

#include "exec/residency.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::Residency;
using exec::Storage;

namespace {

// Pages that are locked, as the system would have them; refuses beyond `allowed`.
struct FakeSystem {
  static inline std::map<uintptr_t, int> pages;
  static inline size_t allowed = SIZE_MAX;
  static Residency::Locks locks() {
    pages.clear();
    allowed = SIZE_MAX;
    return {[](const void* address, size_t bytes) {
              auto at = reinterpret_cast<uintptr_t>(address);
              if ((bytes / 4096 + pages.size()) * 4096 > allowed) {
                errno = ENOMEM;
                return false;
              }
              for (size_t i = 0; i < bytes; i += 4096) pages[at + i] = 1;
              return true;
            },
            [](const void* address, size_t bytes) {
              auto at = reinterpret_cast<uintptr_t>(address);
              for (size_t i = 0; i < bytes; i += 4096) pages.erase(at + i);
              return true;
            }};
  }
};

// Storage at made-up addresses: nobody looks at the bytes.
class Storages {
 public:
  Storage& make(size_t bytes, size_t gap = 4096) {
    Storage& storage = all_.emplace_back();
    storage.address = reinterpret_cast<void*>(next_);
    storage.capacity = bytes;
    next_ += bytes + gap;
    return storage;
  }

 private:
  std::deque<Storage> all_;
  uintptr_t next_ = 1 << 20;
};

constexpr size_t MiB = 1 << 20;

}  // namespace

TEST_CASE("residency: a limit of 0 wires nothing and makes no set") {
  Residency residency(FakeSystem::locks());
  sync::Mutex mutex{sync::Rank::allocator};
  std::lock_guard held(mutex);
  Storages storages;
  for (int i = 0; i < 100; ++i) residency.insert(storages.make(MiB), held);
  CHECK(residency.wired_size() == 0);
  CHECK(residency.num_sets() == 0);
  CHECK(FakeSystem::pages.empty());
}

TEST_CASE("residency: never above the limit; raising wires what waits, lowering lets go") {
  Residency residency(FakeSystem::locks());
  sync::Mutex mutex{sync::Rank::allocator};
  std::lock_guard held(mutex);
  Storages storages;
  CHECK(residency.set_limit(10 * MiB, held) == 0);
  for (int i = 0; i < 20; ++i) {
    residency.insert(storages.make(MiB), held);
    CHECK(residency.wired_size() <= residency.limit());
  }
  CHECK(residency.wired_size() == 10 * MiB);
  CHECK(residency.set_limit(15 * MiB + MiB / 2, held) == 10 * MiB);
  CHECK(residency.wired_size() == 15 * MiB);
  residency.set_limit(4 * MiB, held);
  CHECK(residency.wired_size() == 4 * MiB);
  CHECK(FakeSystem::pages.size() == 4 * MiB / 4096);
  residency.set_limit(0, held);
  CHECK(residency.wired_size() == 0);
  CHECK(residency.num_sets() == 0);
  CHECK(FakeSystem::pages.empty());
  residency.set_limit(100 * MiB, held);
  CHECK(residency.wired_size() == 20 * MiB);
}

TEST_CASE("residency: what is let go makes room for what waits") {
  Residency residency(FakeSystem::locks());
  sync::Mutex mutex{sync::Rank::allocator};
  std::lock_guard held(mutex);
  Storages storages;
  residency.set_limit(2 * MiB, held);
  Storage& a = storages.make(MiB);
  Storage& b = storages.make(MiB);
  Storage& c = storages.make(MiB);
  for (Storage* storage : {&a, &b, &c}) residency.insert(*storage, held);
  CHECK(c.residency_set == -1);
  residency.erase(a, held);
  CHECK(c.residency_set >= 0);
  CHECK(residency.wired_size() == 2 * MiB);
}

TEST_CASE("residency: spread over capped sets, saturating at 32, oversized in one of its own") {
  Residency residency(FakeSystem::locks());
  sync::Mutex mutex{sync::Rank::allocator};
  std::lock_guard held(mutex);
  Storages storages;
  residency.set_limit(size_t{1} << 30, held);
  CHECK(residency.set_max_bytes_per_set(4 * MiB) == Residency::default_bytes_per_set);
  std::vector<Storage*> made;
  for (int i = 0; i < 16; ++i) residency.insert(*made.emplace_back(&storages.make(MiB)), held);
  CHECK(residency.num_sets() == 4);
  residency.insert(*made.emplace_back(&storages.make(9 * MiB)), held);
  CHECK(residency.num_sets() == 5);
  // The rest of the 32, then no more, and all of it is wired.
  for (int i = 0; i < 200; ++i) residency.insert(*made.emplace_back(&storages.make(MiB)), held);
  CHECK(residency.num_sets() == 32);
  CHECK(residency.wired_size() == (16 + 9 + 200) * MiB);
  std::map<int, size_t> in_set;
  for (Storage* storage : made) in_set[storage->residency_set] += storage->capacity;
  CHECK(in_set.size() == 32);
  for (const auto& [set, bytes] : in_set) CHECK(bytes <= 9 * MiB);  // shared out evenly
  // Sets that are empty are used again.
  for (Storage* storage : made) residency.erase(*storage, held);
  CHECK(residency.num_sets() == 0);
  CHECK(residency.wired_size() == 0);
  residency.insert(storages.make(MiB), held);
  CHECK(residency.num_sets() == 1);
  // Each in a set of its own.
  CHECK(residency.set_max_bytes_per_set(0) == 4 * MiB);
  residency.insert(storages.make(MiB), held);
  residency.insert(storages.make(MiB), held);
  CHECK(residency.num_sets() == 3);
}

TEST_CASE(
    "residency: small storages share pages, and each page stays locked as long as one needs it") {
  Residency residency(FakeSystem::locks());
  sync::Mutex mutex{sync::Rank::allocator};
  std::lock_guard held(mutex);
  Storages storages;
  residency.set_limit(MiB, held);
  std::vector<Storage*> made;
  for (int i = 0; i < 64; ++i) made.push_back(&storages.make(1000, 24));
  for (Storage* storage : made) residency.insert(*storage, held);
  CHECK(residency.wired_size() == 64 * 1000);
  CHECK(FakeSystem::pages.size() == 16);
  for (int i = 0; i < 64; i += 2) residency.erase(*made[static_cast<size_t>(i)], held);
  CHECK(FakeSystem::pages.size() == 16);
  for (int i = 1; i < 64; i += 2) residency.erase(*made[static_cast<size_t>(i)], held);
  CHECK(FakeSystem::pages.empty());
  CHECK(residency.wired_size() == 0);
}

TEST_CASE("residency: exact over a million cycles") {
  Residency residency(FakeSystem::locks());
  sync::Mutex mutex{sync::Rank::allocator};
  std::lock_guard held(mutex);
  Storages storages;
  std::mt19937 random(7);
  std::vector<Storage*> made;
  for (int i = 0; i < 64; ++i) made.push_back(&storages.make(64 + random() % 20000, 64));
  std::vector<bool> is_in(made.size());
  residency.set_max_bytes_per_set(50000);
  residency.set_limit(300000, held);
  bool all_fit = true;
  for (int cycle = 0; cycle < 1'000'000; ++cycle) {
    size_t i = random() % made.size();
    if (cycle % 50'000 == 0) residency.set_limit(random() % 400000, held);
    is_in[i] ? residency.erase(*made[i], held) : residency.insert(*made[i], held);
    is_in[i] = !is_in[i];
    all_fit = all_fit && residency.wired_size() <= residency.limit() && residency.num_sets() <= 32;
  }
  CHECK(all_fit);
  size_t wired = 0;
  for (Storage* storage : made) wired += storage->residency_set >= 0 ? storage->capacity : 0;
  CHECK(residency.wired_size() == wired);
  for (size_t i = 0; i < made.size(); ++i) {
    if (is_in[i]) residency.erase(*made[i], held);
  }
  CHECK(residency.wired_size() == 0);
  CHECK(residency.num_sets() == 0);
  CHECK(FakeSystem::pages.empty());
}

TEST_CASE("residency: what the system refuses is not counted as wired") {
  Residency residency(FakeSystem::locks());
  sync::Mutex mutex{sync::Rank::allocator};
  std::lock_guard held(mutex);
  Storages storages;
  FakeSystem::allowed = 3 * MiB;
  residency.set_limit(100 * MiB, held);
  std::vector<Storage*> made;
  for (int i = 0; i < 5; ++i) residency.insert(*made.emplace_back(&storages.make(MiB, 0)), held);
  CHECK(residency.wired_size() == 3 * MiB);
  CHECK(residency.refused_size() == 2 * MiB);
  // Another one goes: the system has room again.
  residency.erase(*made[0], held);
  CHECK(residency.wired_size() == 3 * MiB);
  CHECK(residency.refused_size() == MiB);
  for (size_t i = 1; i < made.size(); ++i) residency.erase(*made[i], held);
  CHECK(residency.wired_size() == 0);
  CHECK(residency.refused_size() == 0);
}

TEST_CASE("wired limit: arrays are wired and counted, and let go with the cache") {
  clear_cache();
  auto& sets = metal::residency_sets();
  CHECK(sets.enabled());
  CHECK(sets.wired_size() == 0);
  CHECK(sets.num_sets() == 0);
  {
    memory::Scope scope({.memory = {}, .cache = {}, .wired = 4 * MiB});
    array x = full({64, 1024}, 2.0f), y = x + x;
    eval(y);
    CHECK(sets.wired_size() <= 4 * MiB);
    CHECK(sets.wired_size() + sets.refused_size() >= y.nbytes());
    CHECK(sets.num_sets() <= 32);
    CHECK((sets.num_sets() > 0) == (sets.wired_size() > 0));
    CHECK(sum(y).item<float>() == 4.0f * 64 * 1024);
    CHECK_THROWS_AS(set_wired_limit(SIZE_MAX), std::invalid_argument);
    CHECK(memory::limits().wired == 4 * MiB);
  }
  CHECK(memory::limits().wired == 0);
  CHECK(sets.wired_size() == 0);
  CHECK(sets.num_sets() == 0);
}

TEST_CASE("wired limit: MLX's way to change it gives the previous one back") {
  CHECK(set_wired_limit(MiB) == 0);
  CHECK(set_wired_limit(2 * MiB) == MiB);
  CHECK(set_wired_limit(0) == 2 * MiB);
}
