// Limits, and what is left over at the end.
#include <deque>

#include "exec/residency.h"
#include "kernel_library/temporary_folder.h"
#include "validation/cases.h"

namespace holdfast::testing {
namespace {

constexpr size_t MiB = 1 << 20;

// Wired memory whose pages nobody has: the system locks `allowed` bytes of it.
class Wired {
 public:
  Wired(size_t limit, size_t allowed = SIZE_MAX) : residency_(locks(allowed)) {
    residency_.set_max_bytes_per_set(MiB);
    std::lock_guard held(mutex_);
    residency_.set_limit(limit, held);
  }
  exec::Residency& residency() { return residency_; }
  void add(size_t count, size_t bytes = MiB) {
    std::lock_guard held(mutex_);
    for (size_t i = 0; i < count; ++i) {
      exec::Storage& storage = storages_.emplace_back();
      storage.address = reinterpret_cast<void*>(next_);
      storage.capacity = bytes;
      next_ += bytes;
      residency_.insert(storage, held, "Weights");
    }
  }

 private:
  static exec::Residency::Locks locks(size_t allowed) {
    static size_t left;
    left = allowed;
    return {[](const void*, size_t bytes) {
              bool fits = bytes <= left;
              if (fits) left -= bytes;
              return fits;
            },
            [](const void*, size_t) { return true; }};
  }
  sync::Mutex mutex_{sync::Rank::allocator};
  exec::Residency residency_;
  std::deque<exec::Storage> storages_;
  uintptr_t next_ = MiB;
};

// The third history: `passes` of a capture, each of which attaches its sets anew. Where the limit
// is kept, they share those that are there.
void residency_sets(size_t sets, size_t passes, bool keeps_limit) {
  Wired wired(1000 * MiB);
  if (!keeps_limit) wired.residency().ignore_max_sets();
  for (size_t pass = 0; pass < passes; ++pass) wired.add(sets);
}

void wired_limit(size_t limit, size_t count, size_t bytes) { Wired(limit).add(count, bytes); }

void wired_refused(size_t allowed, size_t count) { Wired(100 * MiB, allowed).add(count); }

// An op "Big" whose output has `bytes`, `count` times, all of them kept.
void memory_limit(size_t bytes, int count) {
  OwnStream s;
  clear_cache();
  memory::Scope limit({.memory = get_active_memory() + 2 * MiB, .cache = {}, .wired = {}});
  std::vector<array> kept;
  for (int i = 0; i < count; ++i) {
    kept.push_back(make_op("Big", s, {}, {static_cast<int>(bytes / 4)},
                           [](Encoder& encoder, const auto&, std::vector<array>& out) {
                             encoder.allocate(out[0]);
                             encoder.output(out[0]);
                             hold(encoder, "write", out[0].data<int32_t>());
                           }));
    eval(kept.back());
  }
}

void memory_limit_of_host(size_t bytes) {
  clear_cache();
  memory::Scope limit({.memory = get_active_memory() + 2 * MiB, .cache = {}, .wired = {}});
  RawBuffer raw(bytes);
}

// --- what is left over: the harness looks for it when these return ---

void capture(int captures, bool stops_last, bool throws = false) {
  static TemporaryFolder folder;  // for longer than the capture
  for (int i = 0; i < captures; ++i) {
    metal::start_capture(folder.path() + "/c" + std::to_string(i));
    if (throws) throw std::runtime_error("before stop_capture");
    if (i + 1 < captures || stops_last) metal::stop_capture();
  }
}

Stream kept_stream(int which) {
  static Stream streams[] = {new_stream(Device::cpu), new_stream(Device::cpu),
                             new_stream(Device::cpu)};
  return streams[which];
}

// One op after the other on the first stream; the first `waited` are waited for.
void work(int ops, int waited) {
  std::vector<array> results;
  for (int i = 0; i < ops; ++i) {
    results.push_back(affine(counting(16), 1, i, kept_stream(0)));
    async_eval(results.back());
    if (i < waited) results.back().wait();
  }
}

// Work on two streams, of which one or both are waited for.
void work_on_two(bool waits_for_both) {
  array x = affine(counting(16), 1, 0, kept_stream(0));
  array y = affine(counting(16), 1, 0, kept_stream(1));
  async_eval(x, y);
  y.wait();
  if (waits_for_both) synchronize(kept_stream(0));
}

// The second stream waits for events of the first; an op of it follows, or not.
void wait_for_event(int events, bool uses_wait, bool starts_with_work = false) {
  Stream first = kept_stream(0), second = kept_stream(1);
  if (starts_with_work) eval(affine(counting(16), 1, 0, second));
  std::vector<array> results;
  {
    Gate gate(first);
    for (int i = 0; i < events; ++i) {
      results.push_back(affine(counting(16), 1, i, first));
      async_eval(results.back());
      results.back().event().wait(second);
    }
    gate.open();
    for (array& result : results) result.wait();
  }
  if (uses_wait) eval(affine(counting(16), 1, 0, second));
}

#define RESOURCE(id, name, planted, clean, ...)                                         \
  {                                                                                     \
    "resources." id, name, "resources", [] { planted; }, [] { clean; }, { __VA_ARGS__ } \
  }

const ValidationCase cases[] = {
    RESOURCE("residency-sets", "a 33rd residency set", residency_sets(33, 1, false),
             residency_sets(33, 1, true), {"used", "33"}, {"limit", "32"}, {"op", "Weights"}),
    RESOURCE("residency-sets", "each pass of a replay attaches its sets again",
             residency_sets(12, 3, false), residency_sets(12, 3, true), {"used", "33"}),
    RESOURCE("residency-sets", "a set for each of 100 arrays", residency_sets(100, 1, false),
             residency_sets(100, 1, true), {"limit", "32"}),
    RESOURCE("wired-limit", "an array is larger than the wired limit", wired_limit(MiB, 1, 2 * MiB),
             wired_limit(2 * MiB, 1, 2 * MiB), {"op", "Weights"}, {"bytes", "2097152"},
             {"limit", "1048576"}),
    RESOURCE("wired-limit", "two arrays fit the wired limit, three do not",
             wired_limit(2 * MiB, 3, MiB), wired_limit(2 * MiB, 2, MiB), {"used", "2097152"}),
    RESOURCE("wired-limit", "many small arrays together pass the wired limit",
             wired_limit(MiB, 300, 4096), wired_limit(MiB, 256, 4096), {"bytes", "4096"}),
    RESOURCE("wired-refused", "the system locks nothing", wired_refused(0, 1),
             wired_refused(MiB, 1), {"op", "Weights"}, {"severity", "warning"}),
    RESOURCE("wired-refused", "the system locks one array of two", wired_refused(MiB, 2),
             wired_refused(2 * MiB, 2), {"used", "1048576"}),
    RESOURCE("wired-refused", "the system locks some of many arrays", wired_refused(5 * MiB, 9),
             wired_refused(9 * MiB, 9), {"used", "5242880"}),
    RESOURCE("memory-limit", "the output of an op is larger than the memory limit",
             memory_limit(8 * MiB, 1), memory_limit(MiB, 1), {"op", "Big"}, {"bytes", "8388608"}),
    RESOURCE("memory-limit", "outputs that are kept pass the memory limit", memory_limit(MiB, 4),
             memory_limit(MiB, 1), {"op", "Big"}, {"bytes", "1048576"}),
    RESOURCE("memory-limit", "allocator::malloc of more than the memory limit",
             memory_limit_of_host(8 * MiB), memory_limit_of_host(MiB), {"op", "malloc"}),
    RESOURCE("leaked-capture", "a capture is never stopped", capture(1, false), capture(1, true),
             {"severity", "warning"}),
    RESOURCE("leaked-capture", "the second of two captures is never stopped", capture(2, false),
             capture(2, true)),
    RESOURCE("leaked-capture", "an exception comes before stop_capture", capture(1, true, true),
             capture(1, true)),
    RESOURCE("leaked-stream", "async_eval, and nobody waits", work(1, 0), work(1, 1),
             {"command", "affine"}),
    RESOURCE("leaked-stream", "all but the last result are waited for", work(3, 2), work(3, 3)),
    RESOURCE("leaked-stream", "another stream is waited for", work_on_two(false),
             work_on_two(true)),
    RESOURCE("leaked-event", "a stream waits for an event and gets no work",
             wait_for_event(1, false), wait_for_event(1, true)),
    RESOURCE("leaked-event", "a stream waits for two events and gets no work",
             wait_for_event(2, false), wait_for_event(2, true)),
    RESOURCE("leaked-event", "a stream works, waits for an event and gets no more work",
             wait_for_event(1, false, true), wait_for_event(1, true, true)),
};

}  // namespace

std::span<const ValidationCase> limit_cases() { return cases; }

}  // namespace holdfast::testing
