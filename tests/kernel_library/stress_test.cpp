// Ten thousand variants of one name through a small cache while many threads dispatch.
#include <doctest/doctest.h>

#include "kernel_library/dispatching.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::KernelLibrary;

TEST_CASE("kernel cache: ten thousand variants through 64 entries while 64 threads dispatch") {
  size_t before = exec::Pipeline::live_count();
  const int variants = scaled(10000, 600, 60);
  const int threads = scaled(64, 16, 4);
  const int rounds = variants / threads + 1;
  const size_t capacity = static_cast<size_t>(scaled(64, 16, 4));
  {
    FakeCompiler compiler;
    KernelLibrary library(compiler.parts(capacity));
    LeakCheck leaks;
    on_threads(threads, [&](int thread) {
      Stream stream = default_stream(Device::cpu);
      array x = counting(64, thread);
      std::vector<std::pair<array, int>> pending;
      for (int round = 0; round < rounds; ++round) {
        // Each thread brings variants of its own, and uses some that all share.
        int variant = round % 4 == 3 ? round % 8 : round * threads + thread;
        auto request = request_for(affine_source(variant, thread, "one name"), "same");
        array y = dispatch_op(library, request, x, stream);
        async_eval(y);
        if (round % 5 == 0) continue;  // dropped while it may still run
        pending.push_back({y, variant});
        if (pending.size() < 8) continue;
        for (auto& [result, factor] : pending) {
          std::vector<int32_t> got = values(result);
          for (int i = 0; i < 64; ++i) {
            if (got[static_cast<size_t>(i)] != (thread + i) * factor + thread) {
              throw std::runtime_error("a wrong value of variant " + std::to_string(factor));
            }
          }
        }
        pending.clear();
      }
      synchronize(stream);
    });
    leaks.check();
    KernelCacheStats stats = library.stats();
    CHECK(stats.entries <= capacity);
    CHECK(stats.evictions >= stats.compiles - capacity);
    CHECK(stats.hits + stats.waits + stats.misses == static_cast<uint64_t>(threads * rounds));
    CHECK(stats.misses == stats.compiles);
    // What is left is what the cache holds.
    CHECK(exec::Pipeline::live_count() == before + stats.entries);
  }
  CHECK(exec::Pipeline::live_count() == before);
}
