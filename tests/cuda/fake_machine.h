// The machine behind the fake driver: the memory of a GPU, its streams, and the thread that runs
// what is given to them, in an order drawn from a seed.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/sync.h"
#include "cuda/fake_driver.h"

namespace holdfast::testing::fake {

using namespace cuda;

inline constexpr int invalid_value = 1, invalid_handle = 400, illegal_address = 700,
                     not_found = 500;
// Device addresses are the host's plus this: no processor accepts them.
inline constexpr Address bias = Address{1} << 56;
inline constexpr size_t page = 4096;

struct FakeStream;

struct FakeEvent {
  uint64_t recorded = 0, done = 0;
};

struct Step {
  std::function<bool()> run;  // false: it has to wait
};

struct FakeStream {
  std::deque<Step> steps;
  uint64_t given = 0, done = 0;
};

struct FakeModule {
  const FakeKernel* kernel;
  std::string symbol;
  ParameterLayout layout() const {
    return parameter_layout(kernel->interface, kernel->is_guarded,
                            kernel->has_inline_constants && symbol == "rows");
  }
};

// A function of a module, which a launch names for as long as the module is loaded.
struct Launch {
  FakeModule* module = nullptr;
  std::vector<char> block;
  unsigned grid[3]{}, threads[3]{}, shared_bytes = 0;
};

struct FakeNode {
  enum class Kind { kernel, copy, fill } kind = Kind::kernel;
  std::vector<size_t> before;
  Launch launch;
  CopyNode copy{};
  FillNode fill{};
};

struct FakeGraph {
  std::vector<std::unique_ptr<FakeNode>> nodes;
};

struct FakeExec {
  std::vector<FakeNode> nodes;
  std::map<const void*, size_t> places;  // by the graph's node
};

class Machine {
 public:
  sync::Mutex mutex;
  sync::CondVar changed;
  // All guarded by mutex.
  std::map<std::string, FakeKernel*> kernels;
  std::mt19937_64 random{1};
  int slowness = 10;
  bool is_held = false;
  size_t memory = size_t{1} << 30, used = 0;
  uint64_t call_count = 0, failing_call = 0;
  std::map<std::string, uint64_t> calls_of;
  std::string failing_symbol;
  int failing_code = 0, lost = 0;
  std::map<Address, size_t> allocations;  // by the host's address
  std::map<Address, size_t> pinned;
  std::set<FakeStream*> streams;
  std::set<FakeEvent*> events;
  std::set<FakeModule*> modules;
  std::set<FakeGraph*> graphs;
  std::set<FakeExec*> execs;
  sync::Thread thread;
  int enter(const char* symbol) {
    std::lock_guard lock(mutex);
    ++call_count;
    ++calls_of[symbol];
    if (lost) return lost;
    if (failing_call == 0 || (!failing_symbol.empty() && failing_symbol != symbol)) return 0;
    if (--failing_call > 0) return 0;
    if (Error::is_sticky(failing_code)) lost = failing_code;
    return failing_code;
  }

  // --- the GPU ---

  uint64_t below(uint64_t bound) { return random() % bound; }

  void fault(int code) {
    std::lock_guard lock(mutex);
    if (!lost) lost = code;
  }

  // The host's address of `bytes` bytes of the GPU's or of pinned memory; null: there are none.
  char* find(Address address, size_t bytes) {
    std::lock_guard lock(mutex);
    auto in = [&](const std::map<Address, size_t>& all, Address at) -> char* {
      auto next = all.upper_bound(at);
      if (next == all.begin()) return nullptr;
      auto [begin, size] = *std::prev(next);
      return at - begin + bytes <= size ? reinterpret_cast<char*>(at) : nullptr;
    };
    return address >= bias ? in(allocations, address - bias) : in(pinned, address);
  }

  void add_step(FakeStream* stream, std::function<bool()> run) {
    std::lock_guard lock(mutex);
    stream->steps.push_back({std::move(run)});
    ++stream->given;
    if (!thread.joinable()) thread = sync::Thread("fake-gpu", [this] { work(); });
    changed.notify_all();
  }
  void add(Stream stream, std::function<void()> run) {
    add_step(reinterpret_cast<FakeStream*>(stream), [run = std::move(run)] {
      run();
      return true;
    });
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      std::vector<FakeStream*> ready;
      for (FakeStream* stream : streams) {
        if (!stream->steps.empty() && !is_held && !lost) ready.push_back(stream);
      }
      if (ready.empty()) {
        changed.wait(lock);
        continue;
      }
      FakeStream* stream = ready[below(ready.size())];
      Step step = std::move(stream->steps.front());
      stream->steps.pop_front();
      const bool is_slow = below(100) < static_cast<uint64_t>(slowness);
      lock.unlock();
      if (is_slow) sync::sleep_for(std::chrono::microseconds(50));
      const bool is_done = step.run();
      lock.lock();
      if (is_done) {
        ++stream->done;
        changed.notify_all();
        continue;
      }
      stream->steps.push_front(std::move(step));
      if (ready.size() > 1) continue;
      lock.unlock();
      sync::sleep_for(std::chrono::microseconds(10));  // for another stream's step
      lock.lock();
    }
  }

  void run_copy(Address target, Address source, size_t bytes) {
    char *to = find(target, bytes), *from = find(source, bytes);
    if (!to || !from) return fault(illegal_address);
    std::memmove(to, from, bytes);
  }
  void run_fill(const FillNode& fill) {
    for (size_t row = 0; row < fill.height; ++row) {
      char* to = find(fill.target + row * fill.pitch, fill.width * fill.element_size);
      if (!to) return fault(illegal_address);
      for (size_t i = 0; i < fill.width; ++i)
        std::memcpy(to + i * fill.element_size, &fill.value, fill.element_size);
    }
  }

  void run_kernel(const Launch& launch) {
    {
      std::lock_guard lock(mutex);
      if (!modules.contains(launch.module)) {
        lost = illegal_address;
        return;
      }
    }
    const FakeKernel& kernel = *launch.module->kernel;
    const ParameterLayout layout = launch.module->layout();
    const size_t count = kernel.interface.arguments.size();
    std::vector<char> block = launch.block;
    FakeLaunch run;
    run.symbol = launch.module->symbol;
    std::memcpy(&run.parameters, block.data() + layout.launch, sizeof(run.parameters));
    std::vector<void*> buffers(count);
    std::vector<uint32_t> threadgroup_bytes(count);
    size_t end = launch.shared_bytes;
    for (size_t i = count; i-- > 0;) {
      uint64_t value = 0;
      std::memcpy(&value, block.data() + 8 * i, 8);
      if (kernel.interface.arguments[i].kind == msl::KernelArgument::Kind::threadgroup) {
        threadgroup_bytes[i] = static_cast<uint32_t>(end - value);
        end = value;
      } else if (layout.inline_places[i] != 0) {
        buffers[i] = block.data() + layout.inline_places[i];
      } else if (value != 0) {
        // One past the end is where an argument without elements may be.
        buffers[i] = find(value, 0);
        if (!buffers[i]) return fault(illegal_address);
      }
    }
    std::vector<exec::ArgumentRange> ranges(count);
    if (layout.guard != 0) {
      GuardParameters guard;
      std::memcpy(&guard, block.data() + layout.guard, sizeof(guard));
      run.outside = reinterpret_cast<GuardReport*>(find(guard.report, sizeof(GuardReport)));
      std::memcpy(ranges.data(), block.data() + layout.guard + sizeof(guard),
                  count * sizeof(exec::ArgumentRange));
      run.arguments.ranges = ranges.data();
    }
    if (run.parameters.cancelled)
      run.cancelled = reinterpret_cast<uint32_t*>(find(run.parameters.cancelled, 4));
    run.arguments.buffers = buffers.data();
    run.arguments.threadgroup_bytes = threadgroup_bytes.data();
    for (int axis = 0; axis < 3; ++axis) {
      run.arguments.grid[axis] = run.parameters.grid[axis];
      run.arguments.threadgroup[axis] = run.parameters.threadgroup[axis];
    }
    kernel.run(run);
  }

  void run_graph(const std::vector<FakeNode>& nodes) {
    std::vector<size_t> missing(nodes.size()), ready;
    for (size_t i = 0; i < nodes.size(); ++i) {
      missing[i] = nodes[i].before.size();
      if (missing[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      size_t pick;
      {
        std::lock_guard lock(mutex);
        if (lost) return;
        pick = below(ready.size());
      }
      const size_t index = ready[pick];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
      const FakeNode& node = nodes[index];
      if (node.kind == FakeNode::Kind::kernel) run_kernel(node.launch);
      if (node.kind == FakeNode::Kind::fill) run_fill(node.fill);
      if (node.kind == FakeNode::Kind::copy)
        run_copy(node.copy.target.device, node.copy.source.device, node.copy.width);
      for (size_t k = 0; k < nodes.size(); ++k) {
        for (size_t before : nodes[k].before) {
          if (before == index && --missing[k] == 0) ready.push_back(k);
        }
      }
    }
  }
};

}  // namespace holdfast::testing::fake
