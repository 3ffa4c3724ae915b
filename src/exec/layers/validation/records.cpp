// The validator's memory: which buffers there are, where, and in which order queues run.
#include <algorithm>

#include "exec/layers/validation/validator.h"

namespace holdfast::validation {
namespace {

void prune_executed(std::vector<Access>& accesses) {
  std::erase_if(accesses, [](const Access& access) { return has_run(access.side); });
}

void append(std::vector<Access>& target, std::vector<Access>&& more) {
  target.insert(target.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

using After = std::vector<std::pair<const DeviceQueue*, uint64_t>>;

bool advance(After& after, const DeviceQueue* queue, uint64_t serial) {
  for (auto& [known, last] : after) {
    if (known != queue) continue;
    if (last >= serial) return false;
    last = serial;
    return true;
  }
  after.emplace_back(queue, serial);
  return true;
}

// What list `serial` of the queue starts after: what later lists wait for it does not. Null:
// nothing.
const After* clock_at(const QueueRecord& queue, uint64_t serial) {
  const After* found = nullptr;
  for (const QueueRecord::Clock& clock : queue.clocks) {
    if (clock.from > serial) break;
    found = &clock.after;
  }
  return found;
}

constexpr size_t kept_clocks = 64;

}  // namespace

bool Validator::Seen::covers(uintptr_t address) const {
  return std::any_of(bindings.begin(), bindings.end(), [&](const exec::Binding& binding) {
    auto begin = reinterpret_cast<uintptr_t>(binding.storage->address);
    return begin <= address && address < begin + binding.storage->capacity;
  });
}

Side Validator::side_of(const CommandList& list, const Command& command, sync::Held) {
  Side side{command.op,
            command.detail,
            command.label,
            nullptr,
            list.queue,
            list.serial,
            static_cast<uint32_t>(&command - list.commands.data())};
  if (command.pipeline) {
    PipelineRecord& pipeline = pipelines_[command.pipeline_identity];
    if (!pipeline.name) pipeline.name = &*names_.insert(command.pipeline->name()).first;
    side.kernel = pipeline.name;
  }
  return side;
}

QueueRecord& Validator::queue_of(const CommandList& list, sync::Held held) {
  QueueRecord& queue = queues_[list.queue];
  if (queue.open != list.serial) {
    queue.open = list.serial;
    // What was encoded before the validator came is there to stay.
    queue.encoded = static_cast<uint32_t>(std::max<size_t>(list.commands.size(), 1) - 1);
    queue.pending.clear();
    queue.waits = 0;
  }
  // An open list without commands may get more of them.
  if (queue.waits != list.waits.size()) set_clock(queue, list, held);
  return queue;
}

BufferRecord* Validator::find(uint64_t identity, sync::Held) {
  auto found = buffers_.find(identity);
  return found == buffers_.end() ? nullptr : &found->second;
}

BufferRecord* Validator::find_at(uintptr_t address, sync::Held held) {
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  const auto& [begin, region] = *std::prev(after);
  if (address >= region.end || region.live == 0) return nullptr;
  BufferRecord* newest = find(region.newest, held);
  bool is_inside = newest && address >= newest->address && address < newest->address + newest->size;
  return is_inside ? newest : nullptr;
}

// A storage that is used again is a region that is there. Memory went back to the system and came
// again with other bounds when nothing lives in what overlaps; else it is adopted memory that
// several buffers share.
Region& Validator::region_for(uintptr_t begin, uintptr_t end, bool is_adopted, sync::Held) {
  auto at = regions_.upper_bound(begin);
  if (at != regions_.begin() && std::prev(at)->second.end > begin) --at;
  if (at != regions_.end() && at->first == begin && at->second.end == end) {
    if (!is_adopted || at->second.live == 0) {
      prune_executed(at->second.writes);
      prune_executed(at->second.reads);
    }
    return at->second;
  }
  Region merged;
  uintptr_t merged_begin = begin;
  merged.end = end;
  bool has_moved = false;
  while (at != regions_.end() && at->first < end) {
    Region& old = at->second;
    if (old.live > 0 || !is_adopted) {
      if (old.live == 0 || !is_adopted) {
        prune_executed(old.writes);
        prune_executed(old.reads);
      }
      if (old.live > 0) {
        merged_begin = std::min(merged_begin, at->first);
        merged.end = std::max(merged.end, old.end);
        merged.live += old.live;
        merged.version += old.version + 1;
        has_moved = true;
      }
      append(merged.writes, std::move(old.writes));
      append(merged.reads, std::move(old.reads));
    }
    at = regions_.erase(at);
  }
  Region& region = regions_[merged_begin] = std::move(merged);
  if (has_moved) {
    for (auto& [identity, buffer] : buffers_) {
      if (buffer.address >= merged_begin && buffer.address < region.end) buffer.region = &region;
    }
  }
  return region;
}

// An op was taken back: what its commands would have done is not going to happen.
void Validator::forget_commands(const DeviceQueue* queue, uint64_t serial, uint32_t from,
                                sync::Held) {
  auto is_gone = [&](const Side& side) {
    return side.queue == queue && side.serial == serial && side.command >= from;
  };
  for (auto& [identity, buffer] : buffers_) {
    for (size_t i = buffer.uses.size(); i-- > 0;) {
      if (!is_gone(buffer.uses[i].side)) continue;
      buffer.uses[i] = buffer.uses.back();
      buffer.uses.pop_back();
    }
  }
  for (auto& [identity, pipeline] : pipelines_) {
    for (size_t i = pipeline.uses.size(); i-- > 0;) {
      if (!is_gone(pipeline.uses[i])) continue;
      pipeline.uses[i] = pipeline.uses.back();
      pipeline.uses.pop_back();
    }
  }
  for (auto& [begin, region] : regions_) {
    for (auto* accesses : {&region.writes, &region.reads}) {
      std::erase_if(*accesses, [&](const Access& access) { return is_gone(access.side); });
    }
  }
  std::erase_if(queues_[queue].digests[serial],
                [&](const Digest& digest) { return is_gone(digest.access.side); });
}

void Validator::set_clock(QueueRecord& queue, const CommandList& list, sync::Held) {
  queue.waits = list.waits.size();
  After after;
  if (!queue.clocks.empty()) after = queue.clocks.back().after;
  bool has_changed = false;
  for (const exec::Stamp& wait : list.waits) {
    has_changed |= advance(after, wait.queue, wait.serial);
    auto other = queues_.find(wait.queue);
    if (other == queues_.end()) continue;
    if (const After* theirs = clock_at(other->second, wait.serial)) {
      for (const auto& [known, serial] : After(*theirs)) {
        has_changed |= advance(after, known, serial);
      }
    }
  }
  if (!has_changed) return;
  if (!queue.clocks.empty() && queue.clocks.back().from == list.serial) queue.clocks.pop_back();
  queue.clocks.push_back({list.serial, std::move(after)});
  if (queue.clocks.size() > kept_clocks) {
    queue.clocks.erase(queue.clocks.begin());
    // Of lists that are older than what is kept, too much is believed rather than too little.
    queue.clocks.front().from = 0;
  }
}

bool Validator::is_ordered_before(const Side& earlier, const Seen& later, sync::Held) {
  const DeviceQueue* queue = later.list.queue;
  if (earlier.queue == queue) return earlier.serial < later.list.serial;
  if (queues_[earlier.queue].observed >= earlier.serial) return true;
  const After* after = clock_at(queues_[queue], later.list.serial);
  return after && std::any_of(after->begin(), after->end(), [&](const auto& entry) {
           return entry.first == earlier.queue && entry.second >= earlier.serial;
         });
}

void Validator::on_observe(const DeviceQueue& queue, uint64_t serial) {
  std::lock_guard guard(mutex_);
  QueueRecord& record = queues_[&queue];
  if (record.observed >= serial) return;
  record.observed = serial;
  if (const After* after = clock_at(record, serial)) {
    for (const auto& [other, last] : After(*after)) {
      uint64_t& observed = queues_[other].observed;
      observed = std::max(observed, last);
    }
  }
}

}  // namespace holdfast::validation
