// hazards: two accesses to the same bytes of which one writes, and nothing that orders them.
//
// What orders two commands: edges of their list, if they are in one; the order of lists, if they
// are of one queue; waits of lists for lists of other queues, however many lie between; and the
// host, when it was told that the first one has completed (eval, wait, synchronize, is_available)
// before the second one was encoded. That the first one happens to have completed orders nothing:
// so a race is found in every run, not in the unlucky ones.
//
// Bytes are compared by address: buffers that share adopted memory are seen as what they are.
// Memory that is recycled starts anew: what used it before and has run is forgotten, what has not
// run is kept, so that reuse which comes too early is found as well.
#include <algorithm>

#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::validation {
namespace {

bool overlap(const Access& a, const Access& b) { return a.begin < b.end && b.begin < a.end; }
bool covers(const Access& a, const Access& b) { return a.begin <= b.begin && b.end <= a.end; }

// Does command `later` come after command `earlier` of the same list, by edges?
bool is_reachable(const CommandList& list, uint32_t earlier, uint32_t later) {
  auto edges_of = [&](uint32_t index) {
    const Command& command = list.commands[index];
    return std::span(list.edges).subspan(command.first_edge, command.edge_count);
  };
  for (const exec::Edge& edge : edges_of(later)) {
    if (edge.predecessor == earlier) return true;
  }
  std::vector<bool> seen(later + 1);
  std::vector<uint32_t> stack{later};
  while (!stack.empty()) {
    uint32_t index = stack.back();
    stack.pop_back();
    for (const exec::Edge& edge : edges_of(index)) {
      if (edge.predecessor == earlier) return true;
      if (edge.predecessor < earlier || seen[edge.predecessor]) continue;
      seen[edge.predecessor] = true;
      stack.push_back(edge.predecessor);
    }
  }
  return false;
}

// Reads of earlier lists of the same queue say nothing that the newest does not.
void add_read(std::vector<Access>& reads, Access read) {
  constexpr size_t worth_looking = 16;
  if (reads.size() >= worth_looking) {
    std::erase_if(reads, [&](const Access& old) {
      return old.side.queue == read.side.queue && old.side.serial < read.side.serial &&
             covers(read, old);
    });
  }
  reads.push_back(std::move(read));
}

}  // namespace

void Validator::check_hazards(const Seen& seen, Reports& reports, sync::Held held) {
  const CommandList& list = seen.list;
  if (seen.bindings.empty()) {
    // A callback may tell the host that the commands before it have run.
    uint64_t& observed = queues_[list.queue].observed;
    observed = std::max(observed, list.serial);
    return;
  }
  auto is_unordered = [&](const Access& earlier, const Access& later) {
    if (!overlap(earlier, later)) return false;
    bool is_same_list = earlier.side.queue == list.queue && earlier.side.serial == list.serial;
    if (!is_same_list) return !is_ordered_before(earlier.side, seen, held);
    return earlier.side.command != seen.side.command &&
           !is_reachable(list, earlier.side.command, seen.side.command);
  };
  // Reads first, as the runtime does: a command may read what it writes.
  for (bool writes : {false, true}) {
    for (const exec::Binding& binding : seen.bindings) {
      if (binding.writes != writes) continue;
      BufferRecord* buffer = find(binding.identity, held);
      if (!buffer) continue;
      Region& region = *buffer->region;
      Access access{seen.side, binding.identity,
                    buffer->address + static_cast<uintptr_t>(binding.begin),
                    buffer->address + static_cast<uintptr_t>(binding.end)};
      for (const Access& write : region.writes) {
        if (!is_unordered(write, access)) continue;
        const char* id = writes ? "hazards.write-after-write" : "hazards.read-after-write";
        reports.push_back(messages::hazard(id, *buffer, write, access));
      }
      if (!writes) {
        add_read(region.reads, std::move(access));
        continue;
      }
      for (const Access& read : region.reads) {
        if (!is_unordered(read, access)) continue;
        reports.push_back(messages::hazard("hazards.write-after-read", *buffer, read, access));
      }
      for (auto* accesses : {&region.writes, &region.reads}) {
        std::erase_if(*accesses, [&](const Access& old) { return covers(access, old); });
      }
      region.writes.push_back(std::move(access));
      ++region.version;
    }
  }
}

void Validator::on_take_over(const Buffer& buffer) {
  std::lock_guard guard(mutex_);
  BufferRecord* record = find(buffer.identity(), guard);
  if (!record) return;
  for (auto* accesses : {&record->region->writes, &record->region->reads}) {
    std::erase_if(*accesses, [](const Access& access) { return has_run(access.side); });
  }
}

void Validator::on_host_access(const Buffer& buffer, int64_t begin, int64_t end) {
  Reports reports;
  {
    std::lock_guard guard(mutex_);
    BufferRecord* record = find(buffer.identity(), guard);
    if (!record) return;
    record->is_host_visible = true;
    if (!checks_.has(Check::hazards)) return;
    Access access{{},
                  record->identity,
                  record->address + static_cast<uintptr_t>(begin),
                  record->address + static_cast<uintptr_t>(end)};
    for (const Access& write : record->region->writes) {
      if (!overlap(write, access) || queues_[write.side.queue].observed >= write.side.serial) {
        continue;
      }
      reports.push_back(messages::host_read(*record, write, access.begin, access.end));
      break;
    }
  }
  deliver(reports);
}

}  // namespace holdfast::validation
