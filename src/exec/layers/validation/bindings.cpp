// bindings: what is bound to a command does not fit it. Sizes and offsets of all commands; for
// dispatches also what the compiled kernel says about its arguments.
//
// Partial overlap is judged only for contiguous arrays, whose bytes are known; views that
// interleave may share an interval without sharing a byte. An output over exactly the bytes of an
// input is in place, which a kernel may want.
#include <algorithm>
#include <span>

#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::validation {
namespace {

constexpr uint32_t metal_buffer_slots = 31;
constexpr uint64_t metal_threadgroup_memory = 32 * 1024;

// What is bound to an argument of the kernel.
struct Bound {
  const msl::KernelArgument* argument;
  const exec::BoundSlot* slot;
  bool is_written() const { return argument->written || !slot->is_input; }
};

messages::Argument name_of(const msl::KernelArgument& argument) {
  return {argument.name, argument.slot};
}

// Does the place lie in what the command binds? An array without elements lies nowhere.
bool is_bound(std::span<const exec::Binding> bindings, const exec::Place& place) {
  if (place.binding == holdfast::Bound::nothing) return true;
  if (place.binding >= bindings.size()) return false;
  const exec::Binding& binding = bindings[place.binding];
  return place.offset >= binding.begin && place.offset < binding.end;
}

bool is_threadgroup(const msl::KernelArgument& argument) {
  return argument.kind == msl::KernelArgument::Kind::threadgroup;
}

}  // namespace

void Validator::check_bindings(const Seen& seen, Reports& reports, sync::Held held) {
  for (const exec::Binding& binding : seen.bindings) {
    BufferRecord* buffer = find(binding.identity, held);
    if (!buffer) continue;
    if (binding.begin >= 0 && binding.end <= static_cast<int64_t>(buffer->size)) continue;
    reports.push_back(
        messages::out_of_range(*buffer, seen.side, binding.begin, binding.end, binding.writes));
  }
  if (seen.command.pipeline) check_dispatch(seen, reports, held);
}

void Validator::check_dispatch(const Seen& seen, Reports& reports, sync::Held held) {
  const exec::Dispatch& dispatch = *seen.command.dispatch;
  const auto& arguments = seen.command.pipeline->interface().arguments;
  std::vector<Bound> bound;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const msl::KernelArgument& argument = arguments[i];
    if (is_threadgroup(argument)) continue;
    const exec::Place& place = dispatch.arguments[i].place;
    if (!is_bound(seen.bindings, place)) {
      const bool is_index = place.binding < seen.bindings.size();
      BufferRecord* buffer = is_index ? find(seen.bindings[place.binding].identity, held) : nullptr;
      reports.push_back(messages::left_over(seen.side, name_of(argument), buffer, place.offset));
    }
    for (uint32_t s = 0; s < dispatch.slot_count; ++s) {
      if (dispatch.slots[s].slot == argument.slot) bound.push_back({&argument, &dispatch.slots[s]});
    }
  }
  for (const Bound& one : bound) {
    const exec::BoundSlot& slot = *one.slot;
    messages::Argument name = name_of(*one.argument);
    int64_t size = slot.end - slot.begin;
    if (slot.bound_for) reports.push_back(messages::kept(seen.side, name, *slot.bound_for));
    if (size > 0 && size < one.argument->element_size) {
      reports.push_back(messages::too_small(seen.side, name, size, one.argument->element_size));
    }
    BufferRecord* buffer = slot.buffer ? find(slot.buffer->identity(), held) : nullptr;
    if (!buffer || size == 0) continue;
    // Pairs of floats are aligned as floats are.
    uintptr_t alignment =
        std::max<uintptr_t>(std::min<uintptr_t>(slot.item_size, 4), one.argument->alignment);
    if ((buffer->address + static_cast<uintptr_t>(slot.begin)) % alignment != 0) {
      reports.push_back(
          messages::misaligned(seen.side, name, *buffer, slot.begin, alignment, slot.item_size));
    }
    if (slot.is_input && one.argument->written) {
      reports.push_back(messages::input_written(seen.side, name, *buffer));
    }
    if (!one.is_written() || !slot.is_contiguous) continue;
    for (const Bound& other : bound) {
      // Of two that are written the first reports.
      bool is_pair = &other != &one && other.slot->buffer && other.slot->is_contiguous &&
                     (!other.is_written() || &other > &one);
      BufferRecord* others = is_pair ? find(other.slot->buffer->identity(), held) : nullptr;
      if (!others) continue;
      uintptr_t begin = buffer->address + static_cast<uintptr_t>(slot.begin);
      uintptr_t others_begin = others->address + static_cast<uintptr_t>(other.slot->begin);
      uintptr_t end = begin + static_cast<uintptr_t>(size);
      uintptr_t others_end =
          others_begin + static_cast<uintptr_t>(other.slot->end - other.slot->begin);
      if (begin >= others_end || others_begin >= end) continue;
      if (!other.is_written() && begin == others_begin && end == others_end) continue;
      reports.push_back(messages::same_memory(seen.side, name, name_of(*other.argument), *buffer));
    }
  }
}

// resources: Metal's limits.
void Validator::check_limits(const Seen& seen, Reports& reports, sync::Held) {
  if (!seen.command.pipeline) return;
  const exec::Dispatch& dispatch = *seen.command.dispatch;
  const msl::KernelInterface& interface = seen.command.pipeline->interface();
  uint32_t slots = 0;
  for (uint32_t s = 0; s < dispatch.slot_count; ++s) {
    slots = std::max(slots, dispatch.slots[s].slot + 1);
  }
  if (slots > metal_buffer_slots) {
    reports.push_back(messages::buffer_slots(seen.side, slots, metal_buffer_slots));
  }
  uint64_t bytes = interface.threadgroup_bytes;
  for (size_t i = 0; i < interface.arguments.size() && dispatch.threadgroup_bytes; ++i) {
    if (is_threadgroup(interface.arguments[i])) bytes += dispatch.threadgroup_bytes[i];
  }
  if (bytes > metal_threadgroup_memory) {
    reports.push_back(messages::threadgroup_memory(seen.side, bytes, metal_threadgroup_memory));
  }
}

}  // namespace holdfast::validation
