// Staging: copies between the host and a GPU through a small ring of pinned memory. The driver
// copies from memory that is not pinned at a fraction of the speed, and pinning costs more than
// most copies.
#pragma once

#include <cstddef>
#include <memory>

#include "devices/cuda/gpu.h"

namespace holdfast::cuda {

// A stream that is destroyed with its owner, if the GPU is still there.
class OwnedStream {
 public:
  explicit OwnedStream(Gpu& gpu);
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  operator Stream() const { return stream_; }

 private:
  Gpu& gpu_;
  Stream stream_ = nullptr;
};

class OwnedEvent {
 public:
  explicit OwnedEvent(Gpu& gpu);
  ~OwnedEvent();
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  operator Event() const { return event_; }

 private:
  Gpu& gpu_;
  Event event_ = nullptr;
};

// Host memory that the GPU reaches at the same address.
class PinnedMemory {
 public:
  PinnedMemory(Gpu& gpu, size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  char* bytes() const { return bytes_; }
  Address address() const { return reinterpret_cast<Address>(bytes_); }

 private:
  Gpu& gpu_;
  char* bytes_ = nullptr;
};

// Copies of one stream, used by one thread at a time. All calls throw Error, with the GPU in use.
class Staging {
 public:
  explicit Staging(Gpu& gpu);        // with a stream of its own
  Staging(Gpu& gpu, Stream stream);  // on that of its owner, which outlives it
  ~Staging();

  // Copies at once out of `source`; the stream's later work finds it in `target`.
  void upload(Address target, const void* source, size_t bytes);
  // Waits for the copy.
  void download(Address source, void* target, size_t bytes);
  void synchronize();

 private:
  static constexpr size_t half = size_t{2} << 20;
  // Room in the half that is being filled, at most `bytes` of it.
  char* room(size_t& bytes);

  Gpu& gpu_;
  std::unique_ptr<OwnedStream> own_stream_;
  const Stream stream_;
  PinnedMemory memory_;
  OwnedEvent left_first_, left_second_;  // the copies of a half have been made
  bool is_left_[2] = {false, false};     // the event counts
  bool has_uploads_ = false;             // that may still be on their way
  int filling_ = 0;
  size_t used_ = 0;
};

}  // namespace holdfast::cuda
