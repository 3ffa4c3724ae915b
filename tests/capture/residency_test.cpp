// The scenarios of wired memory while a capture is recorded and while it is replayed. By itself:
// tests/residency.
#include <doctest/doctest.h>

#include <fstream>

#include <holdfast/allocator.h>
#include <holdfast/holdfast.h>

#include "capture/file.h"
#include "capture/programs.h"
#include "exec/residency.h"
#include "exec/runtime.h"
#include "support/device.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr size_t KiB = 1024;
constexpr size_t usual = exec::Residency::default_bytes_per_set;

// What the system says that this process has locked.
size_t locked_by_the_system() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == "VmLck:" && status >> kilobytes) return kilobytes * KiB;
  }
  return 0;
}

struct SetSize {
  size_t previous;
  explicit SetSize(size_t bytes) : previous(metal::residency_sets().set_max_bytes_per_set(bytes)) {}
  ~SetSize() { metal::residency_sets().set_max_bytes_per_set(previous); }
};

}  // namespace

// Limit and size of a set; the sizes of what is held do not fit, fit in one set, need many sets,
// are larger than a set. Each result that is held has 16 KiB.
TEST_CASE_FIXTURE(OnCpu, "residency while capturing and while replaying") {
  struct Scenario {
    const char* name;
    size_t limit, bytes_per_set;
    int held;
    size_t least_sets;  // that it takes, where the system lets us lock
  };
  const Scenario scenarios[] = {{"nothing is wired", 0, usual, 40, 0},
                                {"never above the limit", 256 * KiB, usual, 40, 1},
                                {"in one set", 4096 * KiB, usual, 40, 1},
                                {"spread over capped sets", 4096 * KiB, 256 * KiB, 40, 3},
                                {"saturating at 32 sets", 4096 * KiB, 16 * KiB, 40, 32},
                                {"oversized, in sets of their own", 4096 * KiB, 8 * KiB, 12, 12}};
  auto& sets = metal::residency_sets();
  for (const Scenario& scenario : scenarios) {
    CAPTURE(scenario.name);
    clear_cache();
    size_t before_wired = sets.wired_size(), before_sets = sets.num_sets();
    File file("residency");
    size_t most_sets = 0, most_wired = 0, refused = 0;
    {
      memory::Scope limits({.memory = {}, .cache = {}, .wired = scenario.limit});
      SetSize size(scenario.bytes_per_set);
      record(file, [&] {
        Stream s = new_stream(Device::cpu);
        std::vector<array> held;
        for (int i = 0; i < scenario.held; ++i) {
          held.push_back(network(full({64, 64}, 0.01f * static_cast<float>(i), s), s));
          eval(held.back());
          most_sets = std::max(most_sets, sets.num_sets());
          most_wired = std::max(most_wired, sets.wired_size());
        }
        refused = sets.refused_size();
        // Lowering it lets go, raising it wires what waits, while it is recorded.
        set_wired_limit(0);
        CHECK(sets.wired_size() == 0);
        CHECK(sets.num_sets() == 0);
        set_wired_limit(scenario.limit);
        CHECK(sets.wired_size() <= scenario.limit);
        CHECK(sets.num_sets() <= exec::Residency::max_sets);
      });
      CHECK(most_wired <= scenario.limit);
      CHECK(most_sets <= exec::Residency::max_sets);
      if (scenario.limit == 0) CHECK(most_sets == 0);
      if (refused == 0) CHECK(most_sets >= scenario.least_sets);
    }
    clear_cache();
    CHECK(sets.wired_size() == before_wired);
    CHECK(sets.num_sets() == before_sets);

    Capture read(file.path);
    CHECK(read.number("wired limit") == scenario.limit);
    capture::ReplayOptions options;
    options.passes = 6;
    capture::ReplayResult result = capture::replay(read, options);
    CHECK(result.differences.empty());
    CHECK(result.checked >= 6 * scenario.held);
    CHECK(result.most_wired <= scenario.limit);
    CHECK(result.most_sets <= exec::Residency::max_sets);
    // A replay holds the results of an op once more while it puts them in their place: no more than
    // a large set has room for.
    if (scenario.bytes_per_set >= 256 * KiB) CHECK(result.most_sets <= most_sets + 1);
    // What was held then is held now: as much is wired, and spread as far.
    CHECK(result.most_wired >= most_wired / 2);
    CHECK(result.most_sets >= most_sets / 2);
    if (refused == 0) CHECK(result.most_sets >= scenario.least_sets);
    if (scenario.limit == 0) CHECK(result.most_sets == 0);

    // Raising and lowering while it is replayed.
    int outputs = 0;
    bool fits = true;
    options.passes = 2;
    options.on_output = [&](const capture::Digest&, std::string_view) {
      if (++outputs % 7 != 0) return;
      set_wired_limit(0);
      fits = fits && sets.wired_size() == 0 && sets.num_sets() == 0;
      set_wired_limit(scenario.limit);
      fits = fits && sets.wired_size() <= scenario.limit &&
             sets.num_sets() <= exec::Residency::max_sets;
    };
    result = capture::replay(read, options);
    CHECK(result.differences.empty());
    CHECK(outputs >= 2 * scenario.held);
    CHECK(fits);
    clear_cache();
    CHECK(sets.wired_size() == before_wired);
    CHECK(sets.num_sets() == before_sets);
    CHECK(sets.max_bytes_per_set() == usual);
  }
}

namespace {

// As many buffers are taken or given back while a capture is recorded, and while it is replayed.
void check_cycles(int cycles) {
  auto& sets = metal::residency_sets();
  clear_cache();
  const size_t before_wired = sets.wired_size(), before_sets = sets.num_sets();
  const size_t before_locked = locked_by_the_system();
  constexpr size_t limit = 64 * KiB;
  bool fits = true;
  // Without a cache each buffer is taken from the system, wired or kept waiting, and given back.
  std::vector<allocator::Buffer> held;
  uint32_t random = 1;
  auto cycle = [&](int count) {
    for (int i = 0; i < count; ++i) {
      random = random * 1664525u + 1013904223u;
      size_t place = (random >> 8) % 16;
      if (held.size() > place) {
        allocator::free(held[place]);
        held[place] = held.back();
        held.pop_back();
      } else {
        held.push_back(allocator::malloc(64 + (random >> 12) % 12000));
      }
      fits = fits && sets.wired_size() <= limit && sets.num_sets() <= exec::Residency::max_sets;
    }
  };
  auto let_go = [&] {
    for (allocator::Buffer buffer : held) allocator::free(buffer);
    held.clear();
  };
  File file("cycles");
  {
    memory::Scope limits({.memory = {}, .cache = 0, .wired = limit});
    SetSize size(8 * KiB);
    clear_cache();
    record(file, [&] {
      for (int i = 0; i < 100; ++i) {
        eval(full({100 + i}, 1.0f) + array(1.0f));
        cycle(cycles / 100);
      }
      let_go();
    });
    CHECK(fits);
    exec::Runtime::get().drain();
    CHECK(sets.wired_size() == before_wired);
    CHECK(sets.num_sets() == before_sets);
    CHECK(locked_by_the_system() == before_locked);
    capture::ReplayOptions options;
    options.passes = 2;
    options.on_output = [&](const capture::Digest&, std::string_view) { cycle(cycles / 200); };
    capture::ReplayResult result = capture::replay(Capture(file.path), options);
    let_go();
    CHECK(result.differences.empty());
    CHECK(result.checked >= 200);
    CHECK(fits);
    CHECK(sets.wired_size() == before_wired);
    CHECK(sets.num_sets() == before_sets);
    CHECK(locked_by_the_system() == before_locked);
  }
  CHECK(sets.wired_size() == before_wired);
}

}  // namespace

TEST_CASE_FIXTURE(OnCpu, "residency: exact over many cycles while capturing and while replaying") {
  check_cycles(100'000);
}

TEST_CASE_FIXTURE(
    OnCpu, "residency: exact over a million cycles while capturing and while replaying [long]") {
  check_cycles(1'000'000);
}
