// Threads come and go by the thousand: they leave no thread, no queue and no memory behind.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <holdfast/holdfast.h>

#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int at_once = 16;

int system_threads() {
  int count = 0;
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

void run_generation(int generation) {
  on_threads(at_once, [&](int index) {
    array x = add(affine(counting(256), 1, index, default_stream(Device::cpu)), array(1));
    if (generation % 3 == 0) {
      async_eval(x);  // still in flight when the thread ends
    } else if (values(x)[10] != 11 + index) {
      throw std::runtime_error("wrong value");
    }
  });
}

}  // namespace

TEST_CASE("8,000 short-lived threads leave nothing behind") {
  int generations = scaled(8000, 1600, 320) / at_once;
  run_generation(1);
  run_generation(2);
  LeakCheck leaks;
  size_t queues = exec::Runtime::get().queue_count();
  size_t active = get_active_memory();
  int threads = system_threads();
  size_t resident = resident_bytes();
  for (int generation = 0; generation < generations; ++generation) run_generation(generation);
  leaks.check();
  // At most one queue for each thread of a generation, and those there before. On a GPU each thread
  // has two streams, of which one has a queue on the host as well.
  const size_t queues_of_thread = default_device() == Device::gpu ? 3 : 1;
  CHECK(exec::Runtime::get().queue_count() <= queues + queues_of_thread * at_once);
  CHECK(get_active_memory() <= active);
  // Only workers may have been started meanwhile.
  CHECK(system_threads() <= threads + 64);
  // The sanitizers keep freed memory for a while.
  if (!HOLDFAST_TEST_TSAN && !HOLDFAST_TEST_ASAN)
    CHECK(resident_bytes() < resident + (size_t{32} << 20));
}

TEST_CASE("streams of threads that overlap are not shared, and are used again afterwards") {
  std::vector<std::optional<Stream>> first(8), second(8);
  auto collect = [](std::vector<std::optional<Stream>>& streams) {
    sync::Atomic<int> arrived = 0;
    on_threads(8, [&](int index) {
      streams[static_cast<size_t>(index)] = default_stream(Device::cpu);
      arrived.fetch_add(1);
      while (arrived.load() < 8) sync::sleep_for(std::chrono::microseconds(50));
    });
  };
  collect(first);
  size_t queues = exec::Runtime::get().queue_count();
  collect(second);
  CHECK(exec::Runtime::get().queue_count() == queues);
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < i; ++j) CHECK(*first[i] != *first[j]);
  }
}
