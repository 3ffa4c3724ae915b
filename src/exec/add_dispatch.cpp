#include "exec/add_dispatch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "devices/error_report.h"
#include "exec/layers/layer.h"
#include "exec/queue.h"

namespace holdfast::exec {
namespace {

template <typename T>
T* make_array(Queue& queue, size_t count) {
  T* place = static_cast<T*>(queue.parameters(std::max<size_t>(count, 1) * sizeof(T), alignof(T)));
  std::uninitialized_value_construct_n(place, count);
  return place;
}

[[noreturn]] void reject_missing(const Pipeline& pipeline, const msl::KernelArgument& argument) {
  throw std::invalid_argument("[" + pipeline.name() + "] nothing is bound to its argument \"" +
                              argument.name + "\" (slot " + std::to_string(argument.slot) + ")");
}

const void* copy_of(Queue& queue, const void* bytes, size_t size) {
  void* copy = queue.parameters(std::max<size_t>(size, 1), 16);
  if (size > 0) std::memcpy(copy, bytes, size);
  return copy;
}

void copy_inline_bytes(Queue& queue, std::span<BoundSlot> slots) {
  static constexpr ErrorReport no_error;
  for (BoundSlot& slot : slots) {
    if (slot.buffer) continue;
    if (!slot.errors.empty()) {
      slot.bytes = &no_error;
      const size_t size = slot.errors.size();
      slot.errors = {static_cast<const char*>(copy_of(queue, slot.errors.data(), size)), size};
    }
    slot.bytes = copy_of(queue, slot.bytes, static_cast<size_t>(slot.end));
  }
}

}  // namespace

void add_dispatch(Queue& queue, const Pipeline& pipeline, std::span<BoundSlot> slots,
                  const DispatchSize& size, std::span<const uint32_t> threadgroup_bytes,
                  int64_t work) {
  copy_inline_bytes(queue, slots);
  const std::vector<msl::KernelArgument>& wanted = pipeline.interface().arguments;
  auto* dispatch = make_array<Dispatch>(queue, 1);
  auto* arguments = make_array<DispatchArgument>(queue, wanted.size());
  auto* sizes = make_array<uint32_t>(queue, wanted.size());
  auto* ranges = make_array<ArgumentRange>(queue, wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].kind == msl::KernelArgument::Kind::threadgroup) {
      if (wanted[i].slot >= threadgroup_bytes.size()) reject_missing(pipeline, wanted[i]);
      sizes[i] = threadgroup_bytes[wanted[i].slot];
      continue;
    }
    auto slot = std::find_if(slots.begin(), slots.end(),
                             [&](const BoundSlot& one) { return one.slot == wanted[i].slot; });
    if (slot == slots.end()) reject_missing(pipeline, wanted[i]);
    ranges[i] = {static_cast<uint64_t>(slot->start - slot->begin),
                 static_cast<uint64_t>(slot->end - slot->begin)};
    if (slot->buffer) {
      arguments[i].place = {slot->binding, slot->start};
    } else {
      arguments[i].bytes = slot->bytes;
      arguments[i].errors = slot->errors;
      sizes[i] = static_cast<uint32_t>(slot->end);
    }
  }
  dispatch->arguments = arguments;
  dispatch->argument_count = static_cast<uint32_t>(wanted.size());
  dispatch->addresses = make_array<void*>(queue, wanted.size());
  dispatch->threadgroup_bytes = sizes;
  dispatch->ranges = ranges;
  for (int i = 0; i < 3; ++i) {
    dispatch->grid[i] = size.grid[i];
    dispatch->threadgroup[i] = std::min(size.threadgroup[i], size.grid[i]);
  }
  std::span<BoundSlot> noted;
  if (layers::want(Layer::encoding)) {
    noted = {make_array<BoundSlot>(queue, slots.size()), slots.size()};
    std::copy(slots.begin(), slots.end(), noted.begin());
    dispatch->slots = noted.data();
    dispatch->slot_count = static_cast<uint32_t>(noted.size());
  }
  pipeline.check(*dispatch);
  queue.retain(pipeline);
  Ref<const Pipeline> checked = layers::on_dispatch(pipeline, noted);
  if (checked) queue.retain(*checked);
  Command& command = queue.begin_command();
  command.kind = Command::Kind::dispatch;
  command.detail = "dispatch";
  command.pipeline = &pipeline;
  command.pipeline_identity = pipeline.identity();
  command.dispatch = dispatch;
  command.work = work;
  command.checked = checked.get();
  queue.end_command();
}

}  // namespace holdfast::exec
