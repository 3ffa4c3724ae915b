#include <holdfast/encoder.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "devices/error_report.h"
#include "devices/pipeline.h"
#include "exec/add_dispatch.h"
#include "exec/queue.h"
#include "graph/encoder_scope.h"
#include "graph/node.h"
#include "graph/small_input.h"

namespace holdfast {

namespace {

std::pair<int64_t, int64_t> interval_of(const detail::Node& node) {
  int64_t item = node.dtype.size();
  int64_t begin = node.offset;
  if (node.flags.contiguous) {
    // Negative strides never make an array contiguous, so the range starts at the offset.
    return {begin, begin + static_cast<int64_t>(node.data_size) * item};
  }
  int64_t end = begin + item;
  for (size_t i = 0; i < node.shape.size(); ++i) {
    int64_t reach = (node.shape[i] - 1) * node.strides[i] * item;
    if (reach < 0) begin += reach;
    if (reach > 0) end += reach;
  }
  return {begin, end};
}

exec::Elements elements_of(Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::float16:
      return exec::Elements::float16;
    case Dtype::Val::bfloat16:
      return exec::Elements::bfloat16;
    case Dtype::Val::float32:
    case Dtype::Val::complex64:
      return exec::Elements::float32;
    case Dtype::Val::float64:
      return exec::Elements::float64;
    default:
      return exec::Elements::integers;
  }
}

// Binding is part of every operand of every op: it reads the node, without the array's accessors.
Bound bind_node(exec::Queue& queue, const detail::Node& node, bool writes) {
  if (!node.data) {
    throw std::logic_error(
        "[encoder] bound an array that has no data yet; evaluate it or allocate it");
  }
  if (node.size == 0) return {};
  auto [begin, end] = interval_of(node);
  return {queue.bind(exec::buffer_of(node.data->buffer), begin, end, node.offset, writes,
                     elements_of(node.dtype))};
}

// Everything is bound, whether the kernel uses it or not: what is bound lives.
exec::BoundSlot bind_slot(Encoder& encoder, const exec::Pipeline& pipeline, uint32_t index,
                          const KernelBinding& binding) {
  exec::BoundSlot slot;
  slot.slot = index;
  if (binding.bound_for) slot.bound_for = &binding.bound_for->name();
  if (binding.kind == KernelBinding::Kind::bytes) {
    slot.bytes = binding.what;
    slot.end = static_cast<int64_t>(binding.size);
    return slot;
  }
  if (binding.kind == KernelBinding::Kind::errors) {
    slot.errors = {static_cast<const char*>(binding.what), binding.size};
    slot.end = sizeof(exec::ErrorReport);
    return slot;
  }
  const array& a = *static_cast<const array*>(binding.what);
  slot.is_input = binding.kind == KernelBinding::Kind::input;
  // A kernel that writes what was given to it as an input is ordered as a writer.
  const std::vector<msl::KernelArgument>& arguments = pipeline.interface().arguments;
  bool writes =
      !slot.is_input || std::any_of(arguments.begin(), arguments.end(), [&](const auto& argument) {
        return argument.slot == index && argument.written &&
               argument.kind != msl::KernelArgument::Kind::threadgroup;
      });
  if (slot.is_input) slot.binding = encoder.input(a).index;
  if (writes) slot.binding = encoder.output(const_cast<array&>(a)).index;
  slot.buffer = exec::buffer_of(a.buffer());
  slot.item_size = static_cast<uint32_t>(a.itemsize());
  slot.is_contiguous = a.flags().contiguous;
  if (a.size() == 0) return slot;
  std::tie(slot.begin, slot.end) = byte_interval(a);
  slot.start = a.offset();
  return slot;
}

}  // namespace

KernelBinding input_by_value(Encoder& encoder, const array& a) {
  constexpr int64_t most_bytes = 64;
  const KernelBinding as_array = KernelBinding::input(a);
  const detail::Node& node = *a.node();
  if (encoder.queue().device().memory.is_host() || !node.data || node.size == 0) return as_array;
  const auto [begin, end] = interval_of(node);
  // What is evaluated only now counts as in flight, whether it is or not: what is encoded does not
  // depend on time.
  if (begin != node.offset || end - begin > most_bytes || a.status() != array::available)
    return as_array;
  exec::Buffer& buffer = *exec::buffer_of(node.data->buffer);
  const void* bytes = encoder.queue().bytes_of_host_only(buffer);
  return bytes ? KernelBinding::bytes(static_cast<const std::byte*>(bytes) + begin,
                                      static_cast<size_t>(end - begin))
               : as_array;
}

std::pair<int64_t, int64_t> byte_interval(const array& a) { return interval_of(*a.node()); }

thread_local EncoderScope* EncoderScope::innermost_ = nullptr;

Encoder& Encoder::of(const Stream& stream) {
  EncoderScope* scope = EncoderScope::innermost_;
  while (scope && scope->encoder.queue().of_stream().stream() != stream) scope = scope->outer_;
  if (!scope) {
    throw std::logic_error(
        "[encoder] a stream's encoder is there only while a primitive of that stream is evaluated");
  }
  return scope->encoder;
}

const char* Encoder::op() const { return queue_.op(); }

allocator::Buffer Encoder::allocate(size_t bytes) { return queue_.allocate(bytes); }

void Encoder::allocate(array& out) { out.set_data(allocate(out.nbytes())); }

Bound Encoder::input(const array& a) {
  const detail::Node& node = *a.node();
  if (node.data && node.status.load(std::memory_order_acquire) == detail::Node::evaluated)
    queue_.wait_for_input(node.event);
  return bind_node(queue_, node, false);
}

Bound Encoder::output(array& a) { return bind_node(queue_, *a.node(), true); }

Bound Encoder::raw_input(const allocator::Buffer& buffer, int64_t begin, int64_t end) {
  return {queue_.bind(exec::buffer_of(buffer), begin, end, begin, false)};
}

Bound Encoder::raw_output(const allocator::Buffer& buffer, int64_t begin, int64_t end) {
  return {queue_.bind(exec::buffer_of(buffer), begin, end, begin, true)};
}

Encoder::BodyPlace Encoder::place_with_addresses(size_t size, size_t alignment) {
  constexpr size_t align = alignof(void*);
  const size_t end_of_body = (size + align - 1) / align * align;
  const size_t bytes = end_of_body + queue_.pending_bindings() * sizeof(void*);
  void* body = parameters(bytes, std::max(alignment, align));
  return {body, reinterpret_cast<void**>(static_cast<std::byte*>(body) + end_of_body)};
}

void* Encoder::parameters(size_t size, size_t alignment) {
  return queue_.parameters(size, alignment);
}

void Encoder::add_native(const Native& native, BodyPlace place, void (*destroy)(void*),
                         void (*run)(void*, int64_t, int64_t)) {
  if (!queue_.device().memory.is_host()) {
    if (destroy) destroy(place.body);
    throw exec::NoKernel();
  }
  exec::Command& command = queue_.begin_command(place.body, destroy);
  command.detail = native.op;
  command.tasks = native.tasks;
  command.work = native.work;
  command.parameters = place.body;
  command.run = run;
  command.addresses = place.addresses;
  command.may_wait = native.may_wait;
  queue_.end_command();
}

void Encoder::copy(const array& source, array& target) {
  Bound from = input(source), to = output(target);
  if (source.nbytes() == 0) return;
  exec::Command& command = queue_.begin_command();
  command.kind = exec::Command::Kind::copy;
  command.detail = "copy";
  command.source = {from.index, source.offset()};
  command.target = {to.index, target.offset()};
  command.bytes = source.data_size() * source.itemsize();
  command.work = static_cast<int64_t>(2 * command.bytes);
  queue_.end_command();
}

void Encoder::fill(array& target, const void* value) {
  Bound to = output(target);
  if (target.nbytes() == 0) return;
  void* pattern = queue_.parameters(target.itemsize(), 16);
  std::memcpy(pattern, value, target.itemsize());
  exec::Command& command = queue_.begin_command();
  command.kind = exec::Command::Kind::fill;
  command.detail = "fill";
  command.pattern_size = static_cast<uint16_t>(target.itemsize());
  command.pattern = pattern;
  command.target = {to.index, target.offset()};
  command.bytes = target.data_size() * target.itemsize();
  command.work = static_cast<int64_t>(command.bytes);
  queue_.end_command();
}

void Encoder::dispatch(const exec::Pipeline& pipeline, std::span<const KernelBinding> bindings,
                       Grid grid, Grid threadgroup, std::span<const uint32_t> threadgroup_bytes) {
  if (!queue_.device().runs_pipelines()) throw exec::NoKernel();
  SmallVector<exec::BoundSlot, 12> slots;
  int64_t work = 0;
  for (uint32_t index = 0; index < bindings.size(); ++index) {
    const KernelBinding& binding = bindings[index];
    if (binding.kind == KernelBinding::Kind::none) continue;
    slots.push_back(bind_slot(*this, pipeline, index, binding));
    if (!slots.back().buffer) continue;
    const array& a = *static_cast<const array*>(binding.what);
    work += static_cast<int64_t>(a.data_size() * a.itemsize());
  }
  exec::add_dispatch(queue_, pipeline, {slots.data(), slots.size()},
                     {{grid.x, grid.y, grid.z}, {threadgroup.x, threadgroup.y, threadgroup.z}},
                     threadgroup_bytes, work);
}

}  // namespace holdfast
