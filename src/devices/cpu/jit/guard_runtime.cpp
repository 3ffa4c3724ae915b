#include "devices/cpu/jit/guard_runtime.h"

#include <cstring>

namespace holdfast::jit {
namespace {

bool is_inside(const char* address, uint64_t bytes, const MemoryRange& range) {
  auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(range.begin);
  return bytes <= range.bytes && offset <= range.bytes - bytes;
}

const char* address_of(const GuardedAccess& access, uint32_t lane) {
  return access.addresses ? access.addresses[lane] : access.base + access.stride * lane;
}

uint32_t inside(GroupContext* group, const GuardedAccess* access) {
  uint32_t result = 0;
  for (uint32_t rest = access->lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    const char* address = address_of(*access, lane);
    for (uint32_t i = 0; i < access->range_count; ++i) {
      if (is_inside(address, access->bytes, access->ranges[i])) result |= uint32_t{1} << lane;
    }
  }
  if (const uint32_t outside = access->lanes & ~result) {
    const OutsideSite* site = access->site;
    GroupContext::OutsideAccess& noted = site->writes ? group->outside_write : group->outside_read;
    if (!noted.site) {
      const char* address = address_of(*access, static_cast<uint32_t>(__builtin_ctz(outside)));
      const char* begin = access->range_count == 0 ? nullptr : access->ranges[0].begin;
      noted = {site, static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) -
                                          reinterpret_cast<uintptr_t>(begin))};
    }
  }
  return result;
}

// One element as the kernel's own instruction would move it: in one piece, since another thread may
// be looking.
template <class Word>
void move(const char* from, char* to) {
  Word word;
  if (reinterpret_cast<uintptr_t>(from) % sizeof(Word) == 0) {
    word = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
  } else {
    std::memcpy(&word, from, sizeof(Word));
  }
  if (reinterpret_cast<uintptr_t>(to) % sizeof(Word) == 0) {
    __atomic_store_n(reinterpret_cast<Word*>(to), word, __ATOMIC_RELAXED);
  } else {
    std::memcpy(to, &word, sizeof(Word));
  }
}

void move(const char* from, char* to, uint32_t bytes) {
  switch (bytes) {
    case 1:
      return move<uint8_t>(from, to);
    case 2:
      return move<uint16_t>(from, to);
    case 4:
      return move<uint32_t>(from, to);
    case 8:
      return move<uint64_t>(from, to);
    default:
      std::memcpy(to, from, bytes);
  }
}

void load(GroupContext* group, const GuardedAccess* access, void* results) {
  auto* to = static_cast<char*>(results);
  std::memset(to, 0, size_t{simdgroup_width} * access->bytes);
  for (uint32_t rest = inside(group, access); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    move(address_of(*access, lane), to + size_t{lane} * access->bytes, access->bytes);
  }
}

// In lane order: where two lanes write to one place, the higher one wins.
void store(GroupContext* group, const GuardedAccess* access, const void* values) {
  const auto* from = static_cast<const char*>(values);
  for (uint32_t rest = inside(group, access); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    move(from + size_t{lane} * access->bytes, const_cast<char*>(address_of(*access, lane)),
         access->bytes);
  }
}

}  // namespace

const GuardRuntime guard_runtime{load, store, inside};

}  // namespace holdfast::jit
