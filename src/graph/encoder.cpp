#include <holdfast/encoder.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/mutants.h"
#include "devices/pipeline.h"
#include "exec/add_dispatch.h"
#include "exec/queue.h"
#include "graph/encoder_scope.h"

namespace holdfast {

std::pair<int64_t, int64_t> byte_interval(const array& a) {
  int64_t item = static_cast<int64_t>(a.itemsize());
  int64_t begin = a.offset();
  if (a.flags().contiguous) {
    // Negative strides never make an array contiguous, so the range starts at the offset.
    return {begin, begin + static_cast<int64_t>(a.data_size()) * item};
  }
  int64_t end = begin + item;
  if (mutated(Mutant::byte_interval_of_views)) return {begin, end};
  for (size_t i = 0; i < a.ndim(); ++i) {
    int64_t reach = (a.shape()[i] - 1) * a.strides()[i] * item;
    if (reach < 0) begin += reach;
    if (reach > 0) end += reach;
  }
  return {begin, end};
}

namespace {

exec::Buffer* bound_buffer(const array& a) {
  if (!a.data_shared_ptr()) {
    throw std::logic_error(
        "[encoder] bound an array that has no data yet; evaluate it or allocate it");
  }
  return exec::buffer_of(a.buffer());
}

exec::Elements elements_of(const array& a) {
  switch (a.dtype().val()) {
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
  exec::Buffer* buffer = bound_buffer(a);
  if (a.status() == array::evaluated) queue_.wait_for_input(a.event());
  if (a.size() == 0) return {};
  auto [begin, end] = byte_interval(a);
  return {queue_.bind(buffer, begin, end, a.offset(), false, elements_of(a))};
}

Bound Encoder::output(array& a) {
  exec::Buffer* buffer = bound_buffer(a);
  if (a.size() == 0) return {};
  auto [begin, end] = byte_interval(a);
  return {queue_.bind(buffer, begin, end, a.offset(), true, elements_of(a))};
}

Bound Encoder::raw_input(const allocator::Buffer& buffer, int64_t begin, int64_t end) {
  return {queue_.bind(exec::buffer_of(buffer), begin, end, begin, false)};
}

Bound Encoder::raw_output(const allocator::Buffer& buffer, int64_t begin, int64_t end) {
  return {queue_.bind(exec::buffer_of(buffer), begin, end, begin, true)};
}

void** Encoder::addresses_of_bound() {
  const size_t count = std::max<size_t>(queue_.pending_bindings(), 1);
  return static_cast<void**>(parameters(count * sizeof(void*), alignof(void*)));
}

void* Encoder::parameters(size_t size, size_t alignment) {
  return queue_.parameters(size, alignment);
}

void Encoder::add_native(const char* op, int64_t tasks, int64_t work, void** addresses, void* place,
                         void (*destroy)(void*), void (*run)(void*, int64_t, int64_t)) {
  if (!queue_.device().memory.is_host()) {
    if (destroy) destroy(place);
    throw exec::NoKernel();
  }
  exec::Command command;
  command.detail = op;
  command.tasks = tasks;
  command.work = work;
  command.parameters = place;
  command.run = run;
  command.addresses = addresses;
  // Host callbacks state no work; what moves bytes waits for nothing.
  command.may_wait = work == 0 && !mutated(Mutant::functions_may_wait);
  queue_.add(std::move(command), destroy);
}

void Encoder::copy(const array& source, array& target) {
  Bound from = input(source), to = output(target);
  if (source.nbytes() == 0) return;
  exec::Command command;
  command.kind = exec::Command::Kind::copy;
  command.detail = "copy";
  command.source = {from.index, source.offset()};
  command.target = {to.index, target.offset()};
  command.bytes = source.data_size() * source.itemsize();
  command.work = static_cast<int64_t>(2 * command.bytes);
  queue_.add(std::move(command), nullptr);
}

void Encoder::fill(array& target, const void* value) {
  Bound to = output(target);
  if (target.nbytes() == 0) return;
  exec::Command command;
  command.kind = exec::Command::Kind::fill;
  command.detail = "fill";
  command.pattern_size = target.itemsize();
  void* pattern = queue_.parameters(command.pattern_size, 16);
  std::memcpy(pattern, value, command.pattern_size);
  command.pattern = pattern;
  command.target = {to.index, target.offset()};
  command.bytes = target.data_size() * target.itemsize();
  command.work = static_cast<int64_t>(command.bytes);
  queue_.add(std::move(command), nullptr);
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
    if (binding.kind == KernelBinding::Kind::bytes) continue;
    const array& a = *static_cast<const array*>(binding.what);
    work += static_cast<int64_t>(a.data_size() * a.itemsize());
  }
  exec::add_dispatch(queue_, pipeline, {slots.data(), slots.size()},
                     {{grid.x, grid.y, grid.z}, {threadgroup.x, threadgroup.y, threadgroup.z}},
                     threadgroup_bytes, work);
}

}  // namespace holdfast
