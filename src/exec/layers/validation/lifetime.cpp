// lifetime: a buffer or a pipeline that ends while a command refers to it that has not run; open
// lists count. A command refers to what it is bound to. Commands hold no addresses, but for native
// ones whose body takes no context (Encoder::native), as primitives of programs have them: such a
// command refers to what it holds the address of, too. Its parameters are searched for addresses of
// buffers that the op asked for while it was encoded (data, raw_ptr). That finds a temporary that
// was never bound, which no table of bindings can.
//
// A list that owns what it binds lets go of it after it was executed, so nothing of what it does is
// ever reported. Bytes of the parameters that mean nothing may look like an address: it would have
// to be one that the same op asked for, of a buffer that it bound to none of its commands.
//
// ownership: what is kept alive by its binding alone.
#include <algorithm>
#include <cstring>

#include "base/of_this_thread.h"
#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::validation {
namespace {

// What this thread asked for since it began to encode an op.
std::vector<uint64_t>& asked_for() {
  struct AskedFor {
    std::vector<uint64_t> buffers;
  };
  return of_this_thread<AskedFor>().buffers;
}
constexpr size_t most_asked_for = 4096;

void note(SmallVector<BufferRecord::Use, 2>& uses, const Side& side, bool is_bound) {
  for (BufferRecord::Use& use : uses) {
    if (use.side.queue != side.queue) continue;
    // A command that is bound and holds the address is bound.
    if (use.side.serial == side.serial && use.side.command == side.command)
      is_bound |= use.is_bound;
    use = {side, is_bound};
    return;
  }
  uses.push_back({side, is_bound});
}

}  // namespace

void Validator::note_uses(const Seen& seen, Reports& reports, sync::Held held) {
  for (const exec::Binding& binding : seen.bindings) {
    BufferRecord* buffer = find(binding.identity, held);
    if (!buffer) continue;
    note(buffer->uses, seen.side, true);
  }
  const Command& command = seen.command;
  if (command.pipeline) {
    auto& uses = pipelines_[command.pipeline_identity].uses;
    bool is_known = false;
    for (Side& use : uses) {
      if (use.queue != seen.side.queue) continue;
      use = seen.side;
      is_known = true;
    }
    if (!is_known) uses.push_back(seen.side);
    if (!Pipeline::is_alive(command.pipeline_identity)) {
      reports.push_back(messages::pipeline_released(*seen.side.kernel, seen.side, true));
    }
  }
  const bool may_hold_addresses = command.kind == Command::Kind::native && !command.addresses;
  if (!may_hold_addresses || regions_.empty()) return;
  uintptr_t lowest = regions_.begin()->first, highest = std::prev(regions_.end())->second.end;
  const char* bytes = static_cast<const char*>(command.parameters);
  for (size_t at = 0; at + sizeof(uintptr_t) <= command.parameter_bytes; at += sizeof(uintptr_t)) {
    uintptr_t word;
    std::memcpy(&word, bytes + at, sizeof(word));
    if (word < lowest || word >= highest || seen.covers(word)) continue;
    BufferRecord* buffer = find_at(word, held);
    if (!buffer) continue;
    const std::vector<uint64_t>& buffers = asked_for();
    bool is_asked_for =
        std::find(buffers.begin(), buffers.end(), buffer->identity) != buffers.end();
    // Else it is the end of a neighbour, which loops hold, or no address at all.
    if (is_asked_for) note(buffer->uses, seen.side, false);
  }
}

void Validator::on_begin() { asked_for().clear(); }

void Validator::on_address(const Buffer& buffer) {
  if (asked_for().size() < most_asked_for) asked_for().push_back(buffer.identity());
}

void Validator::on_retire(const Buffer& buffer) {
  Reports reports;
  const DeviceQueue* user = nullptr;
  {
    std::lock_guard guard(mutex_);
    auto found = buffers_.find(buffer.identity());
    if (found == buffers_.end()) return;
    BufferRecord& record = found->second;
    for (const BufferRecord::Use& use : record.uses) {
      if (!checks_.has(Check::lifetime) || has_run(use.side)) continue;
      QueueRecord& queue = queues_[use.side.queue];
      bool is_open = queue.open == use.side.serial;
      Report report = messages::buffer_released(record, use.side, use.is_bound, is_open);
      if (is_open && use.side.command >= queue.encoded) {
        queue.pending.push_back(std::move(report));
      } else {
        reports.push_back(std::move(report));
        user = use.side.queue;
      }
    }
    --record.region->live;
    buffers_.erase(found);
  }
  deliver_later(reports, user);
}

void Validator::on_retire_pipeline(uint64_t identity) {
  Reports reports;
  const DeviceQueue* user = nullptr;
  {
    std::lock_guard guard(mutex_);
    auto found = pipelines_.find(identity);
    if (found == pipelines_.end()) return;
    for (const Side& use : found->second.uses) {
      if (!checks_.has(Check::lifetime) || has_run(use)) continue;
      QueueRecord& queue = queues_[use.queue];
      bool is_open = queue.open == use.serial;
      Report report = messages::pipeline_released(*found->second.name, use, is_open);
      if (is_open && use.command >= queue.encoded) {
        queue.pending.push_back(std::move(report));
      } else {
        reports.push_back(std::move(report));
        user = use.queue;
      }
    }
    pipelines_.erase(found);
  }
  deliver_later(reports, user);
}

// Buffers that were made while the op was encoded, and that nobody owns now that it is.
void Validator::check_ownership(const CommandList& list, const QueueRecord& queue, Reports& reports,
                                sync::Held held) {
  for (size_t i = queue.encoded; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    for (uint32_t b = 0; b < command.binding_count; ++b) {
      const exec::Binding& binding = list.bindings[command.first_binding + b];
      BufferRecord* buffer = find(binding.identity, held);
      if (!buffer || buffer->number <= queue.encoded_buffers) continue;
      if (binding.buffer->identity() != binding.identity || binding.buffer->owner_count() > 0) {
        continue;
      }
      reports.push_back(messages::only_binding(*buffer, side_of(list, command, held)));
    }
  }
}

}  // namespace holdfast::validation
