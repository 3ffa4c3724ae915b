#include "devices/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace holdfast::cuda {

OwnedStream::OwnedStream(Gpu& gpu) : gpu_(gpu) {
  gpu.driver().create_stream(&stream_, non_blocking_stream);
}
OwnedStream::~OwnedStream() {
  if (gpu_.can_release() && gpu_.try_to_use()) gpu_.driver().destroy_stream.attempt(stream_);
}

OwnedEvent::OwnedEvent(Gpu& gpu) : gpu_(gpu) {
  gpu.driver().create_event(&event_, event_without_timing);
}
OwnedEvent::~OwnedEvent() {
  if (gpu_.can_release() && gpu_.try_to_use()) gpu_.driver().destroy_event.attempt(event_);
}

PinnedMemory::PinnedMemory(Gpu& gpu, size_t bytes) : gpu_(gpu) {
  void* memory = nullptr;
  gpu.driver().allocate_host(&memory, bytes, host_memory_of_all_threads);
  bytes_ = static_cast<char*>(memory);
}
PinnedMemory::~PinnedMemory() {
  if (gpu_.can_release() && gpu_.try_to_use()) gpu_.driver().release_host.attempt(bytes_);
}

Staging::Staging(Gpu& gpu)
    : gpu_(gpu),
      own_stream_(std::make_unique<OwnedStream>(gpu)),
      stream_(*own_stream_),
      memory_(gpu, 2 * half),
      left_first_(gpu),
      left_second_(gpu) {}

Staging::Staging(Gpu& gpu, Stream stream)
    : gpu_(gpu), stream_(stream), memory_(gpu, 2 * half), left_first_(gpu), left_second_(gpu) {}

// Copies may still read the pinned memory.
Staging::~Staging() {
  if (gpu_.can_release() && gpu_.try_to_use()) gpu_.driver().synchronize_stream.attempt(stream_);
}

char* Staging::room(size_t& bytes) {
  Driver& driver = gpu_.driver();
  auto left = [&](int which) -> Event { return which == 0 ? left_first_ : left_second_; };
  if (used_ == half) {
    driver.record_event(left(filling_), stream_);
    is_left_[filling_] = true;
    filling_ = 1 - filling_;
    used_ = 0;
    if (std::exchange(is_left_[filling_], false)) driver.synchronize_event(left(filling_));
  }
  bytes = std::min(bytes, half - used_);
  char* found = memory_.bytes() + static_cast<size_t>(filling_) * half + used_;
  used_ = std::min(half, (used_ + bytes + 63) / 64 * 64);
  return found;
}

void Staging::upload(Address target, const void* source, size_t bytes) {
  auto* from = static_cast<const char*>(source);
  has_uploads_ = true;
  while (bytes > 0) {
    size_t part = bytes;
    char* staged = room(part);
    std::memcpy(staged, from, part);
    gpu_.driver().copy_in(target, staged, part, stream_);
    target += part;
    from += part;
    bytes -= part;
  }
}

// The copy of one part runs while the part before it is taken out.
void Staging::download(Address source, void* target, size_t bytes) {
  Driver& driver = gpu_.driver();
  auto* to = static_cast<char*>(target);
  if (has_uploads_) synchronize();
  if (bytes <= half) {
    driver.copy_out(memory_.bytes(), source, bytes, stream_);
    driver.synchronize_stream(stream_);
    std::memcpy(target, memory_.bytes(), bytes);
    return;
  }
  struct Part {
    size_t bytes = 0;
    Event copied = nullptr;
    char* staged = nullptr;
  };
  Part before;
  auto take_out = [&](Part part) {
    if (part.bytes == 0) return;
    driver.synchronize_event(part.copied);
    std::memcpy(to, part.staged, part.bytes);
    to += part.bytes;
  };
  for (int which = 0; bytes > 0; which = 1 - which) {
    Part part{std::min(bytes, half), which == 0 ? Event(left_first_) : Event(left_second_),
              memory_.bytes() + static_cast<size_t>(which) * half};
    driver.copy_out(part.staged, source, part.bytes, stream_);
    driver.record_event(part.copied, stream_);
    source += part.bytes;
    bytes -= part.bytes;
    take_out(before);
    before = part;
  }
  take_out(before);
}

void Staging::synchronize() {
  gpu_.driver().synchronize_stream(stream_);
  used_ = 0;
  filling_ = 0;
  is_left_[0] = is_left_[1] = has_uploads_ = false;
}

}  // namespace holdfast::cuda
