// host-writes: bytes that a command reads changed between its encoding and its end, and no command
// wrote them. The pointer that data() gave may be used at any time, so that nothing but the bytes
// themselves can tell: they are hashed twice.
//
// Only bytes whose value is known when the command is encoded are looked at: those that no command
// that has yet to run writes. A list that writes them as well, or a later one, ends the comparison.
#include <algorithm>

#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::validation {
namespace {

Hash128 hash_of(const Access& access) {
  return hash_bytes({reinterpret_cast<const char*>(access.begin), access.end - access.begin});
}

}  // namespace

void Validator::take_digests(const Seen& seen, sync::Held held) {
  for (const exec::Binding& binding : seen.bindings) {
    BufferRecord* buffer = binding.writes ? nullptr : find(binding.identity, held);
    bool is_inside = buffer && binding.begin >= 0 && binding.begin < binding.end &&
                     binding.end <= static_cast<int64_t>(buffer->size);
    if (!is_inside) continue;
    Access read{seen.side, binding.identity,
                buffer->address + static_cast<uintptr_t>(binding.begin),
                buffer->address + static_cast<uintptr_t>(binding.end)};
    const Region& region = *buffer->region;
    bool is_known =
        std::all_of(region.writes.begin(), region.writes.end(), [&](const Access& write) {
          return write.end <= read.begin || read.end <= write.begin || has_run(write.side);
        });
    if (!is_known) continue;
    Hash128 hash = hash_of(read);
    queues_[seen.list.queue].digests[seen.list.serial].push_back(
        {std::move(read), region.version, hash});
  }
}

void Validator::on_complete(const CommandList& list) {
  if (!checks_.has(Check::host_writes) && !checks_.has(Check::nan)) return;
  Reports reports;
  {
    std::lock_guard guard(mutex_);
    origin_watches_.erase({list.queue, list.serial});
    auto& digests = queues_[list.queue].digests;
    auto found = digests.find(list.serial);
    if (found == digests.end()) return;
    for (const Digest& digest : found->second) {
      BufferRecord* buffer = find(digest.access.buffer, guard);
      if (!buffer || buffer->region->version != digest.version) continue;
      if (hash_of(digest.access) == digest.hash) continue;
      reports.push_back(messages::input_changed(*buffer, digest.access));
    }
    digests.erase(found);
  }
  deliver_later(reports, list.queue);
}

}  // namespace holdfast::validation
