#include <holdfast/encoder.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>

#include "base/mutants.h"
#include "devices/pipeline.h"
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

// How far a guarded kernel may go from the array's address on.
exec::ArgumentRange range_of(const array& a) {
  if (a.size() == 0) return {};
  auto [begin, end] = byte_interval(a);
  return {static_cast<uint64_t>(a.offset() - begin), static_cast<uint64_t>(end - begin)};
}

// What the layers want to know about each slot.
std::span<exec::BoundSlot> note_slots(exec::Queue& queue, std::span<const KernelBinding> bindings,
                                      exec::Dispatch& dispatch) {
  auto* slots = static_cast<exec::BoundSlot*>(queue.parameters(
      std::max<size_t>(bindings.size(), 1) * sizeof(exec::BoundSlot), alignof(exec::BoundSlot)));
  uint32_t count = 0;
  for (uint32_t slot = 0; slot < bindings.size(); ++slot) {
    const KernelBinding& binding = bindings[slot];
    if (binding.kind == KernelBinding::Kind::none) continue;
    auto* noted = new (&slots[count++]) exec::BoundSlot;
    noted->slot = slot;
    if (binding.bound_for) noted->bound_for = &binding.bound_for->name();
    noted->end = static_cast<int64_t>(binding.size);
    if (binding.kind == KernelBinding::Kind::bytes) continue;
    const array& a = *static_cast<const array*>(binding.what);
    noted->buffer = exec::buffer_of(a.buffer());
    std::tie(noted->begin, noted->end) =
        a.size() == 0 ? std::pair<int64_t, int64_t>(0, 0) : byte_interval(a);
    noted->start = a.offset();
    noted->item_size = static_cast<uint32_t>(a.itemsize());
    noted->is_contiguous = a.flags().contiguous;
    noted->is_input = binding.kind == KernelBinding::Kind::input;
  }
  dispatch.slots = slots;
  dispatch.slot_count = count;
  return {slots, count};
}

}  // namespace

thread_local EncoderScope* EncoderScope::innermost_ = nullptr;

Encoder& Encoder::of(const Stream& stream) {
  EncoderScope* scope = EncoderScope::innermost_;
  while (scope && scope->encoder.queue().stream() != stream) scope = scope->outer_;
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
  input(source);
  output(target);
  if (source.nbytes() == 0) return;
  exec::Command command;
  command.kind = exec::Command::Kind::copy;
  command.detail = "copy";
  command.source = source.data<void>();
  command.target = target.data<void>();
  command.bytes = source.data_size() * source.itemsize();
  command.work = static_cast<int64_t>(2 * command.bytes);
  queue_.add(std::move(command), nullptr);
}

void Encoder::fill(array& target, const void* value) {
  output(target);
  if (target.nbytes() == 0) return;
  exec::Command command;
  command.kind = exec::Command::Kind::fill;
  command.detail = "fill";
  command.pattern_size = target.itemsize();
  void* pattern = queue_.parameters(command.pattern_size, 16);
  std::memcpy(pattern, value, command.pattern_size);
  command.source = pattern;
  command.target = target.data<void>();
  command.bytes = target.data_size() * target.itemsize();
  command.work = static_cast<int64_t>(command.bytes);
  queue_.add(std::move(command), nullptr);
}

void Encoder::dispatch(const exec::Pipeline& pipeline, std::span<const KernelBinding> bindings,
                       Grid grid, Grid threadgroup, std::span<const uint32_t> threadgroup_bytes) {
  const std::vector<msl::KernelArgument>& arguments = pipeline.interface().arguments;
  auto missing = [&](const msl::KernelArgument& argument) {
    return std::invalid_argument("[" + pipeline.name() + "] nothing is bound to its argument \"" +
                                 argument.name + "\" (slot " + std::to_string(argument.slot) + ")");
  };
  auto* dispatch = new (parameters(sizeof(exec::Dispatch), alignof(exec::Dispatch))) exec::Dispatch;
  // By slot first: what is bound lives, whether the kernel uses it or not.
  void** by_slot =
      static_cast<void**>(parameters(std::max<size_t>(bindings.size(), 1) * sizeof(void*), 8));
  int64_t work = 0;
  for (size_t slot = 0; slot < bindings.size(); ++slot) {
    const KernelBinding& binding = bindings[slot];
    by_slot[slot] = nullptr;
    if (binding.kind == KernelBinding::Kind::none) continue;
    if (binding.kind == KernelBinding::Kind::bytes) {
      by_slot[slot] = parameters(std::max<size_t>(binding.size, 1), 16);
      std::memcpy(by_slot[slot], binding.what, binding.size);
      continue;
    }
    // A kernel that writes what was given to it as an input is ordered as a writer.
    bool writes = binding.kind == KernelBinding::Kind::output ||
                  std::any_of(arguments.begin(), arguments.end(), [&](const auto& argument) {
                    return argument.slot == slot && argument.written &&
                           argument.kind != msl::KernelArgument::Kind::threadgroup;
                  });
    const array& a = *static_cast<const array*>(binding.what);
    if (binding.kind == KernelBinding::Kind::input) input(a);
    if (writes) output(const_cast<array&>(a));
    by_slot[slot] = const_cast<void*>(a.data<void>());
    work += static_cast<int64_t>(a.data_size() * a.itemsize());
  }
  size_t count = std::max<size_t>(arguments.size(), 1);
  void** buffers = static_cast<void**>(parameters(count * sizeof(void*), alignof(void*)));
  auto* sizes = static_cast<uint32_t*>(parameters(count * sizeof(uint32_t), alignof(uint32_t)));
  auto* ranges = static_cast<exec::ArgumentRange*>(
      parameters(count * sizeof(exec::ArgumentRange), alignof(exec::ArgumentRange)));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const msl::KernelArgument& argument = arguments[i];
    buffers[i] = nullptr;
    sizes[i] = 0;
    ranges[i] = {};
    if (argument.kind == msl::KernelArgument::Kind::threadgroup) {
      if (argument.slot >= threadgroup_bytes.size()) throw missing(argument);
      sizes[i] = threadgroup_bytes[argument.slot];
    } else {
      if (argument.slot >= bindings.size() ||
          bindings[argument.slot].kind == KernelBinding::Kind::none) {
        throw missing(argument);
      }
      const KernelBinding& binding = bindings[argument.slot];
      buffers[i] = by_slot[argument.slot];
      if (binding.kind == KernelBinding::Kind::bytes) {
        sizes[i] = static_cast<uint32_t>(binding.size);
        ranges[i].bytes = binding.size;
      } else {
        ranges[i] = range_of(*static_cast<const array*>(binding.what));
      }
    }
  }
  std::span<exec::BoundSlot> slots;
  if (exec::layers::want(exec::Layer::encoding)) slots = note_slots(queue_, bindings, *dispatch);
  dispatch->buffers = buffers;
  dispatch->threadgroup_bytes = sizes;
  dispatch->ranges = ranges;
  const uint32_t threads[] = {grid.x, grid.y, grid.z};
  const uint32_t group[] = {threadgroup.x, threadgroup.y, threadgroup.z};
  for (int i = 0; i < 3; ++i) {
    dispatch->grid[i] = threads[i];
    dispatch->threadgroup[i] = std::min(group[i], threads[i]);
  }
  pipeline.check(*dispatch);
  queue_.retain(pipeline);
  exec::Command command;
  command.kind = exec::Command::Kind::dispatch;
  command.detail = "dispatch";
  command.pipeline = &pipeline;
  command.pipeline_identity = pipeline.identity();
  command.dispatch = dispatch;
  command.work = work;
  if (Ref<const exec::Pipeline> checked = exec::layers::on_dispatch(pipeline, slots)) {
    queue_.retain(*checked);
    command.checked = checked.get();
  }
  queue_.add(std::move(command), nullptr);
}

}  // namespace holdfast
