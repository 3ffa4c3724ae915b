#include <holdfast/encoder.h>

#include <cstring>

#include "exec/queue.h"
#include "graph/encoder_scope.h"

namespace holdfast {
namespace {

// The bytes of its buffer that an array may touch.
std::pair<int64_t, int64_t> byte_interval(const array& a) {
  int64_t item = static_cast<int64_t>(a.itemsize());
  int64_t begin = a.offset();
  if (a.flags().contiguous) {
    // Negative strides never make an array contiguous, so the range starts at the offset.
    return {begin, begin + static_cast<int64_t>(a.data_size()) * item};
  }
  int64_t end = begin + item;
  for (size_t i = 0; i < a.ndim(); ++i) {
    int64_t reach = (a.shape()[i] - 1) * a.strides()[i] * item;
    if (reach < 0) begin += reach;
    if (reach > 0) end += reach;
  }
  return {begin, end};
}

exec::Buffer* bound_buffer(const array& a) {
  if (!a.data_shared_ptr()) {
    throw std::logic_error(
        "[encoder] bound an array that has no data yet; evaluate it or allocate it");
  }
  return exec::buffer_of(a.buffer());
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

allocator::Buffer Encoder::allocate(size_t bytes) { return queue_.allocate(bytes); }

void Encoder::allocate(array& out) { out.set_data(allocate(out.nbytes())); }

void Encoder::input(const array& a) {
  exec::Buffer* buffer = bound_buffer(a);
  if (a.status() == array::evaluated) queue_.wait_for_input(a.event());
  if (a.size() == 0) return;
  auto [begin, end] = byte_interval(a);
  queue_.bind(buffer, begin, end, false);
}

void Encoder::output(array& a) {
  exec::Buffer* buffer = bound_buffer(a);
  if (a.size() == 0) return;
  auto [begin, end] = byte_interval(a);
  queue_.bind(buffer, begin, end, true);
}

void Encoder::raw_input(const allocator::Buffer& buffer, int64_t begin, int64_t end) {
  queue_.bind(exec::buffer_of(buffer), begin, end, false);
}

void Encoder::raw_output(const allocator::Buffer& buffer, int64_t begin, int64_t end) {
  queue_.bind(exec::buffer_of(buffer), begin, end, true);
}

void* Encoder::parameters(size_t size, size_t alignment) {
  return queue_.parameters(size, alignment);
}

void Encoder::add_native(const char* op, int64_t tasks, int64_t work, void* place,
                         void (*destroy)(void*), void (*run)(void*, int64_t, int64_t)) {
  exec::Command command;
  command.detail = op;
  command.tasks = tasks;
  command.work = work;
  command.parameters = place;
  command.run = run;
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

}  // namespace holdfast
