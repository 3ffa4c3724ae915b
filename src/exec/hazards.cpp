#include "exec/hazards.h"

#include <utility>

namespace holdfast::exec {
namespace {

size_t hash(const Storage* storage) {
  return (reinterpret_cast<uintptr_t>(storage) >> 6) * 0x9e3779b97f4a7c15ull >> 20;
}

bool overlap(const HazardTable::Access& access, const Binding& binding) {
  return access.begin < binding.end && binding.begin < access.end;
}

bool covers(const Binding& binding, const HazardTable::Access& access) {
  return binding.begin <= access.begin && access.end <= binding.end;
}

void add_edge(std::vector<Edge>& edges, uint32_t first_edge, uint32_t predecessor,
              Edge::Kind kind) {
  for (size_t i = first_edge; i < edges.size(); ++i) {
    if (edges[i].predecessor == predecessor) {
      if (kind == Edge::Kind::data) edges[i].kind = kind;
      return;
    }
  }
  edges.push_back({predecessor, kind});
}

}  // namespace

void HazardTable::clear() {
  ++generation_;
  used_ = 0;
}

HazardTable::Entry& HazardTable::find(Storage* storage) {
  size_t mask = slots_.size() - 1;
  for (size_t i = hash(storage) & mask;; i = (i + 1) & mask) {
    Entry& entry = slots_[i];
    if (entry.generation != generation_) {
      if ((used_ + 1) * 2 > slots_.size()) {
        grow();
        return find(storage);
      }
      ++used_;
      entry.generation = generation_;
      entry.storage = storage;
      entry.retained = nullptr;
      entry.writes.clear();
      entry.reads.clear();
      return entry;
    }
    if (entry.storage == storage) return entry;
  }
}

void HazardTable::grow() {
  std::vector<Entry> old(slots_.size() * 2);
  std::swap(old, slots_);
  size_t mask = slots_.size() - 1;
  for (Entry& entry : old) {
    if (entry.generation != generation_) continue;
    size_t i = hash(entry.storage) & mask;
    while (slots_[i].generation == generation_) i = (i + 1) & mask;
    slots_[i] = std::move(entry);
  }
}

void HazardTable::access(Entry& entry, const Binding& binding, uint32_t index,
                         std::vector<Edge>& edges, uint32_t first_edge) {
  for (const Access& write : entry.writes) {
    if (write.command == index || !overlap(write, binding)) continue;
    bool same_life = write.identity == binding.identity;
    add_edge(edges, first_edge, write.command,
             !binding.writes && same_life ? Edge::Kind::data : Edge::Kind::reuse);
  }
  Access access{index, binding.identity, binding.begin, binding.end};
  if (!binding.writes) {
    entry.reads.push_back(access);
    return;
  }
  // What this write covers needs no remembering: whoever follows the write follows it too.
  auto order_after = [&](auto& accesses, bool is_read) {
    size_t kept = 0;
    for (size_t i = 0; i < accesses.size(); ++i) {
      Access& earlier = accesses[i];
      if (is_read && earlier.command != index && overlap(earlier, binding)) {
        add_edge(edges, first_edge, earlier.command, Edge::Kind::reuse);
      }
      if (!covers(binding, earlier)) accesses[kept++] = earlier;
    }
    accesses.pop_back(accesses.size() - kept);
  };
  order_after(entry.reads, true);
  order_after(entry.writes, false);
  entry.writes.push_back(access);
}

}  // namespace holdfast::exec
