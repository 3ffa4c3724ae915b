// Devices, streams and events as the public headers have them.
#include <holdfast/event.h>
#include <holdfast/stream.h>

#include <sys/utsname.h>

#include <fstream>
#include <ostream>
#include <stdexcept>

#include "base/environment.h"
#include "base/machine.h"
#include "exec/runtime.h"

namespace holdfast {

using exec::Runtime;
using exec::ThreadStreams;

// --- devices ---

namespace {

constexpr Device devices[] = {Device(Device::cpu), Device(Device::gpu)};

// Index into `devices`, or -1 before somebody chose.
std::atomic<int> process_default{-1};

int place_of(const Device& device, const char* who) {
  if (device.index != 0) {
    throw std::invalid_argument(std::string("[") + who + "] there is one " +
                                (device == Device::gpu ? "gpu" : "cpu") + " device, got index " +
                                std::to_string(device.index));
  }
  return device == Device::gpu ? 1 : 0;
}

}  // namespace

const Device& default_device() {
  const auto& mine = ThreadStreams::get().device;
  if (mine) return *mine;
  int chosen = process_default.load(std::memory_order_relaxed);
  if (chosen < 0) chosen = environment::settings().default_device_is_gpu ? 1 : 0;
  return devices[chosen];
}

void set_default_device(const Device& device) {
  process_default.store(place_of(device, "set_default_device"));
  ThreadStreams::get().device.reset();
}

bool is_available(const Device& device) { return device.index == 0; }

int device_count(Device::DeviceType) { return 1; }

const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info(
    const Device& device) {
  place_of(device, "device_info");
  using Info = std::unordered_map<std::string, std::variant<std::string, size_t>>;
  static const Info info = [] {
    Info result;
    utsname system{};
    uname(&system);
    result["architecture"] = std::string(system.machine);
    std::string name = system.machine, line;
    std::ifstream cpuinfo("/proc/cpuinfo");
    while (std::getline(cpuinfo, line)) {
      if (line.rfind("model name", 0) == 0) {
        name = line.substr(line.find(':') + 2);
        break;
      }
    }
    result["device_name"] = name;
    result["memory_size"] = machine::memory_bytes();
    result["threads"] = static_cast<size_t>(machine::threads());
    // Programs size their caches and working sets by these.
    result["max_buffer_length"] = machine::memory_bytes();
    result["max_recommended_working_set_size"] = machine::memory_bytes();
    result["resource_limit"] = size_t{499000};
    return result;
  }();
  return info;
}

std::ostream& operator<<(std::ostream& os, const Device& device) {
  return os << "Device(" << (device == Device::gpu ? "gpu" : "cpu") << ", " << device.index << ")";
}

// --- streams ---

Stream default_stream(Device device) {
  auto& mine = ThreadStreams::get();
  auto& stream = mine.defaults[place_of(device, "default_stream")];
  if (!stream) {
    Runtime& runtime = Runtime::get();
    mine.owned.reserve(mine.owned.size() + 1);
    exec::Queue& queue = runtime.acquire(device);
    mine.owned.push_back(&queue);
    stream = queue.stream();
  }
  return *stream;
}

void set_default_stream(Stream stream) {
  Runtime::get().queue(stream);
  ThreadStreams::get().defaults[place_of(stream.device, "set_default_stream")] = stream;
}

Stream new_stream(Device device) {
  place_of(device, "new_stream");
  return Runtime::get().acquire(device).stream();
}

Stream new_thread_unsafe_stream(Device device) { return new_stream(device); }

ThreadLocalStream new_thread_local_stream(Device device) {
  static std::atomic<int> next{0};
  place_of(device, "new_thread_local_stream");
  return ThreadLocalStream(next.fetch_add(1), device);
}

Stream stream_from_thread_local_stream(ThreadLocalStream stream) {
  auto& mine = ThreadStreams::get();
  for (const auto& [index, resolved] : mine.locals) {
    if (index == stream.index && resolved.device == stream.device) return resolved;
  }
  mine.owned.reserve(mine.owned.size() + 1);
  exec::Queue& queue = Runtime::get().acquire(stream.device);
  mine.owned.push_back(&queue);
  mine.locals.emplace_back(stream.index, queue.stream());
  return queue.stream();
}

std::vector<Stream> get_streams() { return Runtime::get().streams(); }

void clear_streams() { ThreadStreams::get().give_back(); }

void synchronize(Stream stream) { Runtime::get().queue(stream).synchronize(); }

void synchronize(ThreadLocalStream stream) { synchronize(stream_from_thread_local_stream(stream)); }

void synchronize() { synchronize(default_stream(default_device())); }

bool synchronize_for(Stream stream, std::chrono::nanoseconds timeout) {
  return Runtime::get().queue(stream).synchronize(sync::now() + timeout);
}

void cancel(Stream stream) { Runtime::get().queue(stream).cancel(); }

Stream to_stream(StreamOrDevice s, Device default_) {
  if (auto* stream = std::get_if<Stream>(&s)) return *stream;
  if (auto* stream = std::get_if<ThreadLocalStream>(&s)) {
    return stream_from_thread_local_stream(*stream);
  }
  if (auto* device = std::get_if<Device>(&s)) return default_stream(*device);
  if (auto* type = std::get_if<Device::DeviceType>(&s)) return default_stream(*type);
  return default_stream(default_);
}

Stream to_stream(StreamOrDevice s) {
  if (std::holds_alternative<std::monostate>(s)) return default_stream(default_device());
  return to_stream(s, Device::cpu);
}

StreamContext::StreamContext(StreamOrDevice s) : previous_stream_(0, Device::cpu) {
  if (std::holds_alternative<std::monostate>(s)) {
    throw std::runtime_error("[StreamContext] needs a stream or a device, got neither");
  }
  Stream stream = to_stream(s);
  auto& mine = ThreadStreams::get();
  previous_device_ = mine.device;
  previous_stream_ = default_stream(stream.device);
  mine.device = stream.device;
  set_default_stream(stream);
}

StreamContext::~StreamContext() {
  auto& mine = ThreadStreams::get();
  mine.device = previous_device_;
  mine.defaults[previous_stream_.device == Device::gpu ? 1 : 0] = previous_stream_;
}

std::ostream& operator<<(std::ostream& os, const Stream& stream) {
  return os << "Stream(" << stream.device << ", " << stream.index << ")";
}

// --- events ---

bool Event::is_signaled() const { return !queue_ || queue_->is_completed(serial_); }

void Event::wait() const {
  if (queue_) queue_->wait(serial_);
}

bool Event::wait_for(std::chrono::nanoseconds timeout) const {
  return !queue_ || queue_->wait(serial_, sync::now() + timeout);
}

void Event::wait(Stream stream) const { Runtime::get().queue(stream).wait_for(*this); }

}  // namespace holdfast
