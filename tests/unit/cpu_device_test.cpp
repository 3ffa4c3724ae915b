// The CPU device by itself: how many threads it uses, and its end.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "base/sync.h"
#include "devices/cpu/cpu_device.h"
#include "devices/device.h"
#include "support/inspection.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

int system_threads() {
  int count = 0;
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

// A queue with one list of one command, which ends when it is told to.
struct Blocked {
  explicit Blocked(exec::Device& device) : queue(device.create_queue()) {
    list.queue = queue.get();
    list.serial = 1;
    list.finish = [](exec::CommandList&) -> exec::CommandList::AfterCompletion { return nullptr; };
    exec::Command command;
    command.op = "Blocked";
    command.parameters = this;
    command.run = [](void* self, int64_t, int64_t) { static_cast<Blocked*>(self)->run(); };
    list.commands.push_back(command);
  }
  void run() {
    runs.store(true);
    while (!may_end.load()) sync::sleep_for(std::chrono::microseconds(50));
  }
  bool has_started() {
    return eventually([&] { return runs.load(); });
  }

  std::unique_ptr<exec::DeviceQueue> queue;
  exec::CommandList list;
  sync::Atomic<bool> runs{false}, may_end{false};
};

// A device whose lists complete when it is told to.
class Elsewhere final : public exec::Scheduler, public exec::Device {
 public:
  Elsewhere() : Device(exec::host_memory(), *this) {}
  std::unique_ptr<exec::DeviceQueue> create_queue() override {
    return std::make_unique<exec::DeviceQueue>(*this);
  }
  void submit(exec::CommandList&, bool) noexcept override {}
  void help(exec::DeviceQueue&) noexcept override { helps.fetch_add(1); }
  void kick(exec::DeviceQueue&) noexcept override { kicks.fetch_add(1); }
  bool wait(exec::DeviceQueue&, uint64_t, std::optional<sync::Clock::time_point>) override {
    return false;
  }
  void shut_down(std::chrono::nanoseconds) noexcept override {}
  void completed_elsewhere() noexcept override {}

  void complete(exec::DeviceQueue& queue, uint64_t serial) {
    queue.completed.store(serial);
    if (is_awaited(queue)) notify_others(queue);
  }

  sync::Atomic<int> helps{0}, kicks{0};
};

}  // namespace

TEST_CASE("device: no worker is woken while every core has a thread to run") {
  std::unique_ptr<exec::Device> device = exec::make_cpu_device(2);
  Blocked by_worker(*device), by_waiter(*device), third(*device);
  device->submit(by_worker.list, true);
  REQUIRE(by_worker.has_started());
  device->submit(by_waiter.list, false);
  sync::Thread waiter("waiter", [&] { device->wait(*by_waiter.queue, 1, std::nullopt); });
  REQUIRE(by_waiter.has_started());
  int threads = system_threads();
  // The worker and the thread that waits are two: a second worker would be a third.
  device->submit(third.list, true);
  CHECK(system_threads() == threads);
  CHECK(!third.runs.load());
  // The first one that gets free goes on with it.
  by_worker.may_end.store(true);
  CHECK(third.has_started());
  by_waiter.may_end.store(true);
  third.may_end.store(true);
  waiter.join();
  device->wait(*third.queue, 1, std::nullopt);
  device->shut_down(std::chrono::seconds(5));
}

TEST_CASE("device: a command has ended when every thread that helps with it has") {
  controlled::for_each_schedule(20, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    std::unique_ptr<exec::Device> device = exec::make_cpu_device(3);
    Blocked last(*device);
    last.may_end.store(true);
    static sync::Atomic<int> done{0};
    done.store(0);
    exec::Command command;
    command.op = "Shared";
    command.tasks = 64;
    command.work = int64_t{1} << 30;
    command.run = [](void*, int64_t begin, int64_t end) {
      for (; begin < end; ++begin) done.fetch_add(1);
    };
    last.list.commands.insert(last.list.commands.begin(), command);
    device->submit(last.list, false);
    device->wait(*last.queue, 1, std::nullopt);
    CHECK(done.load() == 64);
    device->shut_down(std::chrono::seconds(5));
  });
}

TEST_CASE("device: threads may submit and wait while it is shut down") {
  // Its threads do not end by themselves: a strategy that lets them go on for long takes long.
  controlled::begin({.seed = 1, .strategy = controlled::Schedule::random});
  for (int round = 0; round < 30; ++round) {
    std::unique_ptr<exec::Device> device = exec::make_cpu_device(2);
    std::vector<sync::Thread> threads;
    sync::Atomic<int> submitted{0};
    sync::Atomic<bool> is_shut_down{false};
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back("submits", [&] {
        // At least one list comes after the end.
        for (bool last = false; !last;) {
          last = is_shut_down.load();
          Blocked work(*device);
          work.may_end.store(true);
          device->submit(work.list, true);
          submitted.fetch_add(1);
          CHECK(device->wait(*work.queue, 1, std::nullopt));
        }
      });
    }
    REQUIRE(eventually([&] { return submitted.load() > 4; }));
    device->shut_down(std::chrono::seconds(5));
    is_shut_down.store(true);
    for (sync::Thread& thread : threads) thread.join();
  }
}

// A thread that ends waits for its work with a deadline: it may run nothing any more.
TEST_CASE("device: who waits with a deadline does not run what another device has to run first") {
  std::unique_ptr<exec::Device> device = exec::make_cpu_device(2);
  Elsewhere other;
  std::unique_ptr<exec::DeviceQueue> first = other.create_queue();
  Blocked second(*device);
  second.may_end.store(true);
  second.list.waits.push_back({first.get(), 1});
  device->submit(second.list, true);
  CHECK(!device->wait(*second.queue, 1, sync::now() + std::chrono::milliseconds(1)));
  CHECK(other.helps.load() == 0);
  CHECK(other.kicks.load() > 0);
  sync::Thread waiter("waiter", [&] { device->wait(*second.queue, 1, std::nullopt); });
  CHECK(eventually([&] { return other.helps.load() > 0; }));
  CHECK(!second.runs.load());
  other.complete(*first, 1);
  waiter.join();
  CHECK(second.runs.load());
  device->shut_down(std::chrono::seconds(5));
}
