// One result from several threads and streams.
#include <stdexcept>
#include <thread>
#include <vector>

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
}
