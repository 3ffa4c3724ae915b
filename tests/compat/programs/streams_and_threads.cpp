// One result from several threads and streams.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "mlx/io/load.h"
#include "mlx/mlx.h"
#include "mlx/scheduler.h"

#include "check.h"

using namespace mlx::core;

int main() {
  array shared = random::normal({64, 64}, random::key(3));
  eval(shared);
  array expected = sum(matmul(shared, shared));
  eval(expected);
  std::vector<std::thread> threads;
  std::vector<float> results(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Stream own = new_stream(default_device());
      array product = matmul(shared, shared, own);
      async_eval(product);
      array total = sum(product, false, default_device());
      results[i] = total.item<float>();
      synchronize(own);
    });
  }
  for (auto& thread : threads) thread.join();
  for (float result : results) CHECK(result == expected.item<float>());

  StreamContext context(new_stream(Device::cpu));
  int calls = 0;
  scheduler::enqueue(default_stream(Device::cpu), [&] { ++calls; });
  synchronize();
  CHECK(calls == 1);
  CHECK(scheduler::n_active_tasks() == 0);
  scheduler::wait_for_one();  // there is none

  Stream other = new_stream(Device::cpu);
  scheduler::enqueue(other, [] { throw std::runtime_error("failed"); });
  bool thrown = false;
  try {
    scheduler::check_error(other);
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
  CHECK(scheduler::n_active_tasks() == 0);
  scheduler::check_error(other);  // once

  scheduler::notify_new_task(other);
  CHECK(scheduler::n_active_tasks() == 1);
  std::thread worker([&] { scheduler::notify_task_completion(other); });
  scheduler::wait_for_one();
  CHECK(scheduler::n_active_tasks() == 0);
  worker.join();

  // A function on one stream after one on another.
  std::atomic<int> step = 0;
  Event first;
  scheduler::signal_event(other, first, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(step.exchange(1) == 0);
  });
  CHECK(first.valid());
  Stream behind = new_stream(Device::cpu);
  scheduler::wait_event(behind, first, [&] { CHECK(step.exchange(2) == 1); });
  scheduler::scheduler().enqueue(behind, [&] { CHECK(step.exchange(3) == 2); });
  synchronize(behind);
  CHECK(step == 3);
  CHECK(first.is_signaled());
  CHECK(scheduler::scheduler().n_active_tasks() == 0);
  // An array that another stream computes is an event, too.
  array slow = matmul(shared, shared, other);
  async_eval(slow);
  float seen = 0;
  scheduler::scheduler().wait_event(behind, slow.event(), [&] { seen = slow.data<float>()[0]; });
  scheduler::check_error(behind);
  CHECK(seen == take(slow, 0).item<float>());

  std::vector<std::future<int>> squares;
  for (int i = 0; i < 100; ++i) {
    squares.push_back(io::thread_pool().enqueue([](int x, int y) { return x * y; }, i, i));
  }
  for (int i = 0; i < 100; ++i) CHECK(squares[i].get() == i * i);
  auto failing = io::thread_pool().enqueue([] { throw std::runtime_error("failed"); });
  thrown = false;
  try {
    failing.get();
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);

  // A task may end the program.
  io::thread_pool().enqueue([] { std::exit(0); });
  std::this_thread::sleep_for(std::chrono::seconds(60));
  return 1;
}
