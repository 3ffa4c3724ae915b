#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <vector>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "exec/allocator.h"
#include "exec/buffer_pool.h"
#include "exec/runtime.h"
#include "support/device.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::SizeClasses;

TEST_CASE("size classes: each holds its sizes, and wastes at most a sixteenth") {
  int previous = -1;
  for (size_t bytes = 1; bytes < (size_t{1} << 40); bytes += 1 + bytes / 37) {
    int size_class = SizeClasses::of(bytes);
    size_t capacity = SizeClasses::bytes(size_class);
    CHECK(capacity >= bytes);
    CHECK(capacity <= bytes + bytes / 16 + 64);
    CHECK(capacity % 64 == 0);
    CHECK(SizeClasses::of(capacity) == size_class);
    CHECK(size_class >= previous);
    if (size_class > 0) CHECK(SizeClasses::bytes(size_class - 1) < bytes);
    previous = size_class;
  }
}

TEST_CASE("allocator: memory is aligned, of the size asked for, and counted") {
  LeakCheck leaks;
  clear_cache();
  size_t before = get_active_memory();
  for (size_t size : {size_t{0}, size_t{1}, size_t{64}, size_t{1000}, size_t{3} << 20}) {
    allocator::Buffer buffer = allocator::malloc(size);
    CHECK(reinterpret_cast<uintptr_t>(buffer.raw_ptr()) % 64 == 0);
    // What it may hold, as it counts, not only what was asked for.
    CHECK(allocator::allocator().size(buffer) >= size);
    CHECK(allocator::allocator().size(buffer) == get_active_memory() - before);
    if (size > 0) std::memset(buffer.raw_ptr(), 1, size);
    CHECK(get_active_memory() >= before + size);
    allocator::free(buffer);
    CHECK(get_active_memory() == before);
  }
  leaks.check();
}

TEST_CASE("allocator: what was freed is cached, used again, and given back") {
  clear_cache();
  CHECK(get_cache_memory() == 0);
  constexpr size_t size = 300000;
  allocator::Buffer buffer = allocator::malloc(size);
  void* address = buffer.raw_ptr();
  allocator::free(buffer);
  CHECK(get_cache_memory() >= size);
  buffer = allocator::malloc(size - 1000);
  CHECK(buffer.raw_ptr() == address);
  CHECK(get_cache_memory() == 0);
  allocator::free(buffer);
  // Far too large for a small request.
  buffer = allocator::malloc(size / 4);
  CHECK(buffer.raw_ptr() != address);
  allocator::free(buffer);
  clear_cache();
  CHECK(get_cache_memory() == 0);
}

TEST_CASE("allocator: what is used again has room for what was asked for") {
  clear_cache();
  for (size_t freed : {size_t{64}, size_t{128}, size_t{960}, size_t{5000}, size_t{70000}}) {
    allocator::free(allocator::malloc(freed));
    allocator::Buffer larger = allocator::malloc(freed + freed / 14 + 1);
    CHECK(exec::buffer_of(larger)->storage()->capacity >= freed + freed / 14 + 1);
    allocator::free(larger);
    clear_cache();
  }
}

TEST_CASE_FIXTURE(OnCpu, "allocator: the cache limit") {
  clear_cache();
  size_t previous = set_cache_limit(size_t{1} << 20);
  std::vector<allocator::Buffer> buffers;
  for (int i = 0; i < 8; ++i) buffers.push_back(allocator::malloc(300000));
  for (allocator::Buffer& buffer : buffers) allocator::free(buffer);
  CHECK(get_cache_memory() <= size_t{1} << 20);
  CHECK(get_cache_memory() >= 300000);
  CHECK(set_cache_limit(0) == size_t{1} << 20);
  CHECK(get_cache_memory() == 0);
  allocator::free(allocator::malloc(300000));
  CHECK(get_cache_memory() == 0);
  set_cache_limit(previous);
}

TEST_CASE_FIXTURE(OnCpu, "allocator: cached memory makes room under the limit") {
  clear_cache();
  size_t limit = set_memory_limit(get_active_memory() + (size_t{1} << 20));
  allocator::free(allocator::malloc(700000));
  allocator::Buffer buffer = allocator::malloc(900000);  // not in the same class
  CHECK(get_active_memory() + get_cache_memory() <= get_memory_limit());
  CHECK_THROWS_AS(allocator::malloc(900000), OutOfMemory);
  allocator::free(buffer);
  set_memory_limit(limit);
}

TEST_CASE("allocator: the peak") {
  reset_peak_memory();
  size_t before = get_peak_memory();
  allocator::Buffer buffer = allocator::malloc(size_t{5} << 20);
  allocator::free(buffer);
  CHECK(get_peak_memory() >= before + (size_t{5} << 20));
  reset_peak_memory();
  CHECK(get_peak_memory() < before + (size_t{5} << 20));
}

TEST_CASE("allocator: buffers have identities that are never used again") {
  auto& allocator = exec::Allocator::get();
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    exec::Buffer* buffer = allocator.allocate_idle(64, "test");
    CHECK(buffer->identity() > last);
    last = buffer->identity();
    buffer->release_owner();
    CHECK(buffer->identity() != last);  // looking at a dead one is safe
  }
}

TEST_CASE("allocator: a buffer lives as long as an owner or a list") {
  auto& allocator = exec::Allocator::get();
  LeakCheck leaks;
  exec::Buffer* buffer = allocator.allocate_idle(64, "test");
  uint64_t identity = buffer->identity();
  buffer->retain_owner();
  buffer->release_owner();
  CHECK(buffer->identity() == identity);
  buffer->retain_for_list();
  buffer->release_owner();
  CHECK(buffer->identity() == identity);
  buffer->release_from_list();
  CHECK(buffer->identity() != identity);
  leaks.check();
}

#if HOLDFAST_CHECKS
TEST_CASE("allocator: memory that is given up is poisoned") {
  allocator::Buffer buffer = allocator::malloc(5000);
  auto* bytes = static_cast<unsigned char*>(buffer.raw_ptr());
  std::memset(bytes, 1, 5000);
  allocator::free(buffer);
  CHECK(bytes[0] == 0xcb);  // still mapped: it is in the cache
  CHECK(bytes[4999] == 0xcb);
}
#endif

TEST_CASE("storage: idle when the commands that use it have run") {
  struct FakeQueue : exec::DeviceQueue {
    FakeQueue() : DeviceQueue(exec::Runtime::get().cpu_device()) {}
  };
  FakeQueue a, b, c;
  exec::Storage storage;
  storage.space = &exec::host_memory();
  CHECK(storage.is_idle());
  CHECK(storage.only_user() == nullptr);
  storage.stamp(&a, 3);
  CHECK(!storage.is_idle());
  CHECK(storage.is_idle(&a));
  CHECK(!storage.is_idle(&b));
  CHECK(storage.only_user() == &a);
  storage.stamp(&b, 5);
  CHECK(!storage.is_idle(&a));
  CHECK(storage.only_user() == nullptr);
  a.executed.store(2);
  CHECK(!storage.is_idle(&b));
  a.executed.store(3);
  CHECK(storage.is_idle(&b));
  CHECK(storage.only_user() == &b);
  storage.stamp(&a, 4);  // used again
  CHECK(!storage.is_idle(&b));
  storage.stamp(&c, 1);
  CHECK(storage.uses.size() == 3);
  for (FakeQueue* queue : {&a, &b, &c}) queue->executed.store(10);
  CHECK(storage.is_idle());
  storage.stamp(&b, 11);
  CHECK(storage.uses.size() == 3);
  CHECK(storage.only_user() == &b);
}

TEST_CASE("allocator: a loop that repeats itself takes no lock for what stays in its queue") {
  Stream s = default_stream(Device::cpu);
  array leaf = counting(64);
  auto step = [&] {
    array x = leaf;
    for (int i = 0; i < 20; ++i) x = affine(x, 1, 1, s);
    x.eval();
  };
  for (int i = 0; i < 8; ++i) step();
  auto locked_searches = [] {
    return exec::Allocator::get().locked_searches() + exec::BufferPool::get().locked_searches();
  };
  size_t searches = locked_searches();
  for (int i = 0; i < 50; ++i) step();
  // Only the result of a step goes through the cache: it is dropped when the queue is done with it.
  CHECK(locked_searches() <= searches + 50);
}

TEST_CASE("allocator: threads that end give back the buffers they kept") {
  auto on_a_thread = [] {
    on_threads(1, [](int) {
      std::vector<array> kept;
      for (int i = 0; i < 200; ++i) kept.push_back(counting(16));
    });
  };
  on_a_thread();
  size_t made = exec::BufferPool::get().made();
  for (int i = 0; i < 10; ++i) on_a_thread();
  CHECK(exec::BufferPool::get().made() == made);
}
