// Streams: ordered queues of work on a device. Any stream may be used from any thread.
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>
#include <variant>
#include <vector>

#include <holdfast/device.h>

namespace holdfast {

struct Stream {
  int index;
  Device device;
  explicit Stream(int stream_index, Device stream_device)
      : index(stream_index), device(stream_device) {}
  friend bool operator==(const Stream& a, const Stream& b) {
    return a.index == b.index && a.device == b.device;
  }
  friend bool operator!=(const Stream& a, const Stream& b) { return !(a == b); }
  friend bool operator<(const Stream& a, const Stream& b) {
    return a.device != b.device ? a.device < b.device : a.index < b.index;
  }
};

// Resolves to another stream in each thread.
struct ThreadLocalStream : Stream {
  using Stream::Stream;
};

using StreamOrDevice =
    std::variant<std::monostate, Stream, ThreadLocalStream, Device, Device::DeviceType>;

// The calling thread's stream on `device`; made at first use, handed on when the thread ends.
Stream default_stream(Device device);
void set_default_stream(Stream stream);

Stream new_stream(Device device);
// The same as new_stream: every stream here may be used from any thread.
Stream new_thread_unsafe_stream(Device device);
ThreadLocalStream new_thread_local_stream(Device device);
Stream stream_from_thread_local_stream(ThreadLocalStream stream);

// All streams ever made, in order of creation.
std::vector<Stream> get_streams();
// Waits for the calling thread's streams and gives them back.
void clear_streams();

// Waits until everything submitted to the stream has completed. Throws the first error of the
// stream that nobody has seen yet, once.
void synchronize();
void synchronize(Stream stream);
void synchronize(ThreadLocalStream stream);
// As above, but gives up after `timeout`: false when work was still running then.
bool synchronize_for(Stream stream, std::chrono::nanoseconds timeout);

// What was submitted to the stream and has not started fails with `Cancelled`; what runs, ends.
void cancel(Stream stream);

Stream to_stream(StreamOrDevice s);
Stream to_stream(StreamOrDevice s, Device default_);

// Makes a stream (or a device's default stream) the default of this thread for its lifetime.
struct StreamContext {
  explicit StreamContext(StreamOrDevice s);
  ~StreamContext();
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;

 private:
  std::optional<Device> previous_device_;
  Stream previous_stream_;
};

std::ostream& operator<<(std::ostream& os, const Stream& stream);

}  // namespace holdfast
