// Limits that are scoped, an OutOfMemory that says who holds the memory, a cache that does not grow
// with sizes that do, and counters that add up.
#include <doctest/doctest.h>

#include <holdfast/holdfast.h>

#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("memory::Scope restores what it found, nested and when an exception leaves it") {
  memory::Limits before = memory::limits();
  {
    memory::Scope outer({.memory = size_t{1} << 30, .cache = size_t{1} << 20, .wired = {}});
    CHECK(get_memory_limit() == size_t{1} << 30);
    try {
      memory::Scope inner({.memory = {}, .cache = 0, .wired = {}});
      CHECK(*memory::limits().cache == 0);
      CHECK(get_memory_limit() == size_t{1} << 30);
      throw std::runtime_error("leaves the scope");
    } catch (const std::runtime_error&) {
    }
    CHECK(*memory::limits().cache == size_t{1} << 20);
  }
  CHECK(memory::limits().memory == before.memory);
  CHECK(memory::limits().cache == before.cache);
  CHECK(memory::limits().wired == before.wired);
  // One that cannot be set changes nothing.
  CHECK_THROWS_AS(memory::Scope({.memory = 5, .cache = 5, .wired = SIZE_MAX}),
                  std::invalid_argument);
  CHECK(memory::limits().memory == before.memory);
  CHECK(memory::limits().cache == before.cache);
}

TEST_CASE("a lower memory limit gives cached memory back at once") {
  clear_cache();
  {
    array x = counting(1 << 18);
  }
  REQUIRE(get_cache_memory() >= (1 << 20));
  {
    memory::Scope scope({.memory = get_active_memory() + 1000, .cache = {}, .wired = {}});
    CHECK(get_cache_memory() <= 1000);
  }
}

TEST_CASE(
    "OutOfMemory says who holds the memory, by op and by stream, before anything was encoded") {
  exec::Runtime::get().drain();
  clear_cache();
  Stream s = default_stream(Device::cpu);
  constexpr int count = 64 * 1024;
  constexpr size_t bytes = count * sizeof(int32_t);
  size_t base = get_active_memory();
  memory::Scope scope({.memory = base + 4 * bytes + bytes / 2, .cache = {}, .wired = {}});
  array x = counting(count), y = affine(x, 1, 1, s), z = affine(x, 2, 1, s);
  eval(y, z);
  array w = affine(y, 1, 1, s), out = affine(w, 1, 1, s);
  std::string message;
  try {
    eval(out, affine(z, 3, 3, s));
  } catch (const OutOfMemory& error) {
    message = error.what();
  }
  INFO(message);
  CHECK(message.find("By op: ") != std::string::npos);
  CHECK(message.find("Affine " + std::to_string(3 * bytes) + " in 3 buffers") != std::string::npos);
  CHECK(message.find("stream " + std::to_string(s.index) + " " + std::to_string(3 * bytes) +
                     " in 3 buffers") != std::string::npos);
  CHECK(message.find("the host ") != std::string::npos);
}

TEST_CASE("growing lengths hold at most a quarter more than the largest step needs") {
  for (int width : {16, 256}) {
    CAPTURE(width);
    exec::Runtime::get().drain();
    clear_cache();
    size_t base = exec::Allocator::get().total();
    size_t most_held = 0, needed = 0;
    array cache = ones({1, width});
    array row = ones({1, width});
    eval(cache, row);
    exec::Runtime::get().drain();
    for (int length = 2; length <= 4096; ++length) {
      array longer = concatenate({cache, row}, 0);
      eval(longer);
      cache = longer;
      // Both lengths are there while the step runs.
      needed = static_cast<size_t>(2 * length - 1) * static_cast<size_t>(width) * 4;
      most_held = std::max(most_held, exec::Allocator::get().total() - base);
    }
    CHECK(sum(cache).item<float>() == 4096.0f * static_cast<float>(width));
    CHECK(most_held >= needed / 2);
    CHECK(static_cast<double>(most_held) <= 1.25 * static_cast<double>(needed) + 65536);
  }
}

TEST_CASE("counters add up: what the system gave is active or cached") {
  LeakCheck leaks;
  {
    auto add_up = [] {
      exec::Runtime::get().drain();
      return get_active_memory() + get_cache_memory() == exec::Allocator::get().total();
    };
    CHECK(add_up());
    on_threads(4, [&](int index) {
      for (int i = 1; i < 40; ++i) {
        array x = full({i * 100 + index, 16}, 1.0f);
        eval(sum(x * x + x));
      }
    });
    CHECK(add_up());
    clear_cache();
    CHECK(add_up());
    array x = counting(100000);
    array y = affine(x, 1, 1, default_stream(Device::cpu));
    eval(y);
    CHECK(add_up());
  }
  leaks.check();
}
