#include "exec/runtime.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "base/environment.h"
#include "base/process.h"
#include "exec/background.h"
#include "exec/buffer_pool.h"
#include "exec/layers/capture/capture.h"
#include "exec/start.h"
#include "exec/unhandled_failures.h"

namespace holdfast::exec {

using process::State;
using process::state;

Runtime& Runtime::get() {
  process::check_usable();
  // The allocator refuses settings that are wrong: then there is nothing to be done at exit.
  static Runtime* runtime = (Allocator::get(), new Runtime);
  return *runtime;
}

bool Runtime::is_running() { return state.load(std::memory_order_acquire) == State::running; }

Runtime::Runtime() : cpu_(make_cpu_device(environment::settings().threads)) {
  Failure::emergency();  // made while there is memory
  pthread_atfork(nullptr, nullptr, [] {
    if (state.load() != State::running) return;
    state.store(State::forked);
    BufferPool::get().shut_down();  // locks may be held by threads that are gone
  });
  std::atexit(&Runtime::at_exit);
  if (!environment::settings().retain) {
    std::fputs("[holdfast] HOLDFAST_RETAIN=0: command lists own nothing, results may be wrong\n",
               stderr);
  }
  state.store(State::running, std::memory_order_release);
  start::runtime(*this);
}

void Runtime::at_exit() {
  if (state.load() != State::running) return;
  Runtime& runtime = get();
  layers::on_exit();
  state.store(State::exiting);
  runtime.make_gpu_.store(nullptr);
  if (runtime.gpu_) runtime.gpu_->shut_down(std::chrono::seconds(5));
  runtime.cpu_->shut_down(std::chrono::seconds(5));
  capture::stop_at_exit();
  unhandled_failures::write_unseen();
  BufferPool::get().shut_down();
}

void Runtime::make_gpu() {
  std::lock_guard guard(making_);
  auto* make = make_gpu_.load();
  if (!make) return;
  if (std::unique_ptr<Device> gpu = make()) {
    install_gpu(std::move(gpu));
  } else {
    make_gpu_.store(nullptr, std::memory_order_release);
  }
}

void Runtime::install_gpu(std::unique_ptr<Device> gpu) {
  std::lock_guard guard(mutex_);
  for (const auto& queue : queues_) {
    if (queue->stream().device == holdfast::Device::gpu)
      throw std::logic_error("[install_gpu] expected no stream on the gpu yet, got one");
  }
  Allocator::add(gpu->memory);
  gpu_ = std::move(gpu);
  make_gpu_.store(nullptr, std::memory_order_release);
}

MemorySpace& Runtime::memory_of(const holdfast::Device& named) {
  if (named == holdfast::Device::cpu) return Allocator::get().space();
  return get().device(named).memory;
}

Queue& Runtime::queue(const Stream& stream) {
  auto name_of = [](const holdfast::Device& device) {
    std::string name = device.type == holdfast::Device::gpu ? "gpu" : "cpu";
    return device.index == 0 ? name : name + " with index " + std::to_string(device.index);
  };
  int index = stream.index;
  if (index >= 0 && index < block * blocks) {
    if (auto* entries = table_[index / block].load(std::memory_order_acquire)) {
      Queue* queue = entries[index % block].load(std::memory_order_acquire);
      if (queue && queue->stream().device == stream.device) return *queue;
      if (queue) {
        throw std::invalid_argument("[stream] expected a stream of the " + name_of(stream.device) +
                                    ", got stream " + std::to_string(index) + ", which is of the " +
                                    name_of(queue->stream().device));
      }
    }
  }
  throw std::invalid_argument("[stream] there is no stream " + std::to_string(index) + " on the " +
                              name_of(stream.device));
}

Queue& Runtime::acquire(holdfast::Device device) {
  Device& runs_on = this->device(device);
  std::lock_guard guard(mutex_);
  for (size_t i = pool_.size(); i-- > 0;) {
    Queue* queue = pool_[i];
    if (queue->stream().device != device) continue;
    pool_.erase(pool_.begin() + static_cast<std::ptrdiff_t>(i));
    return *queue;
  }
  int index = static_cast<int>(queues_.size());
  if (index >= block * blocks) throw std::runtime_error("[stream] too many streams");
  queues_.reserve(queues_.size() + 1);
  pool_.reserve(queues_.size() + 1);  // giving back must not fail
  auto& slot = table_[index / block];
  if (!slot.load()) slot.store(new std::atomic<Queue*>[block]());
  queues_.push_back(std::make_unique<Queue>(device, index, runs_on));
  Queue* queue = queues_.back().get();
  slot.load()[index % block].store(queue, std::memory_order_release);
  return *queue;
}

void Runtime::give_back(Queue& queue) {
  // Without helping: commands must not run on a thread whose thread_local objects are gone.
  queue.drain(sync::now() + std::chrono::hours(24 * 365));
  // An error that nobody waited for ends with its thread; arrays keep theirs.
  queue.forget_failures();
  std::lock_guard guard(mutex_);
  pool_.push_back(&queue);
}

std::vector<Stream> Runtime::streams() {
  std::lock_guard guard(mutex_);
  std::vector<Stream> result;
  for (const auto& queue : queues_) result.push_back(queue->stream());
  return result;
}

void Runtime::drain() {
  for (const Stream& stream : streams()) queue(stream).drain();
}

size_t Runtime::queue_count() {
  std::lock_guard guard(mutex_);
  return queues_.size();
}

// --- threads ---

namespace {

// The main thread ends in exit(), where the runtime drains for a limited time.
bool is_main_thread() { return gettid() == getpid(); }

}  // namespace

ThreadStreams& ThreadStreams::get() {
  static thread_local ThreadStreams* mine = nullptr;
  if (!mine) {
    mine = new ThreadStreams;
    sync::at_thread_exit(
        [](void* streams) {
          auto* ending = static_cast<ThreadStreams*>(streams);
          mine = nullptr;
          if (is_main_thread())
            end_background();
          else
            ending->give_back();
          delete ending;
        },
        mine);
  }
  return *mine;
}

void ThreadStreams::give_back() {
  if (Runtime::is_running()) {
    for (; !owned.empty(); owned.pop_back()) Runtime::get().give_back(*owned.back());
  }
  owned.clear();
  locals.clear();
  for (auto& stream : defaults) stream.reset();
}

}  // namespace holdfast::exec
