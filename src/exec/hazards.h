// Hazards inside one command list: which earlier commands a command must follow, by storage and
// byte interval. Lists of one queue run in order, so the table starts empty with each list.
//
// Intervals are bounding ones: strided slices that interleave count as overlapping, contiguous
// slices of one buffer do not.
#pragma once

#include <cstdint>
#include <vector>

#include <holdfast/small_vector.h>

#include "devices/command_list.h"

namespace holdfast::exec {

class HazardTable {
 public:
  struct Access {
    uint32_t command;
    uint64_t identity;  // the buffer that the storage belonged to
    int64_t begin, end;
  };
  struct Entry {
    Storage* storage = nullptr;
    uint32_t generation = 0;
    // The buffer of this storage that the list retained last, which therefore lives: binding it
    // again need not retain.
    const Buffer* retained = nullptr;
    SmallVector<Access, 2> writes;  // the last ones, disjoint unless they overlap in part
    SmallVector<Access, 4> reads;   // since those writes
  };

  HazardTable() : slots_(64) {}

  // Forgets everything.
  void clear();
  // The entry of a storage, made when it is missing.
  Entry& find(Storage* storage);
  // The same for a binding whose `hazard_slot` is where the entry was last.
  Entry& entry_of(const Binding& binding) {
    Entry& entry = slots_[binding.hazard_slot];
    return entry.storage == binding.storage && entry.generation == generation_
               ? entry
               : find(binding.storage);
  }
  uint32_t slot_of(const Entry& entry) const {
    return static_cast<uint32_t>(&entry - slots_.data());
  }
  // Adds the edges of command `index` for `binding` to `edges` (from `first_edge` on, without
  // duplicates), and records the access.
  void access(Entry& entry, const Binding& binding, uint32_t index, std::vector<Edge>& edges,
              uint32_t first_edge);

 private:
  void grow();

  std::vector<Entry> slots_;  // open addressing; size is a power of two
  uint32_t generation_ = 1;   // entries of another generation are empty
  size_t used_ = 0;
};

}  // namespace holdfast::exec
