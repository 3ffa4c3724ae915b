#include "devices/simulated/simulated_gpu.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "base/environment.h"
#include "base/pass_on_signal.h"

namespace holdfast::exec {
namespace {

// The addresses of the memory as the host sees them: a range without access. Commands find the
// bytes elsewhere (Storage::bytes).
struct Window {
  uintptr_t begin = 0, size = 0;
};

const Window& window() {
  static const Window made = [] {
    // Where the process may not reserve so much, less will do: storages may share addresses.
    for (uintptr_t size = uintptr_t{1} << 40; size >= uintptr_t{1} << 28; size >>= 1) {
      void* begin =
          mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (begin != MAP_FAILED) return Window{reinterpret_cast<uintptr_t>(begin), size};
    }
    throw std::runtime_error("[simulated gpu] cannot reserve addresses for its memory");
  }();
  return made;
}

struct sigaction handler_before{};

// Says what the process ends with when the host uses an address of this memory.
void name_stray_access(int signal, siginfo_t* info, void* context) {
  if (is_simulated_address(info->si_addr)) {
    static constexpr char text[] =
        "[holdfast] the host used an address in the memory of the simulated gpu, which only "
        "commands can reach; array::data() copies elements to the host\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof(text) - 1);
  }
  pass_on_signal(handler_before, signal, info, context);
}

void install_handler() {
  if (!environment::settings().catch_faults) return;
  struct sigaction action{};
  action.sa_sigaction = name_stray_access;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &handler_before);
}

class SimulatedMemory final : public MemorySpace {
 public:
  const char* name() const override { return "gpu"; }
  size_t size() const override { return host_memory().size(); }

  bool take(size_t capacity, Storage& storage) noexcept override {
    if (!host_memory().take(capacity, storage)) return false;
    auto address = reinterpret_cast<uintptr_t>(storage.bytes);
    // Aligned as the bytes are, to 4 KiB and less.
    const uintptr_t pages = window().size - 4096;
    storage.address =
        reinterpret_cast<void*>(window().begin + address % 4096 + (address / 4096 * 4096) % pages);
    return true;
  }

  void release(Storage& storage) noexcept override {
    storage.address = storage.bytes;
    host_memory().release(storage);
  }

  void read(const Storage& source, size_t begin, void* target, size_t bytes) override {
    host_memory().read(source, begin, target, bytes);
  }
  void write(Storage& target, size_t begin, const void* source, size_t bytes) override {
    host_memory().write(target, begin, source, bytes);
  }
};

class SimulatedGpu final : public Device {
 public:
  SimulatedGpu(MemorySpace& memory, CpuDevice& cores) : Device(memory, cores), cores_(cores) {}

  std::unique_ptr<DeviceQueue> create_queue() override {
    return cores_.create_asynchronous_queue(*this);
  }
  void submit(CommandList& list, bool wake) noexcept override { cores_.submit(list, wake); }
  void help(DeviceQueue& queue) noexcept override { cores_.help(queue); }
  void kick(DeviceQueue& queue) noexcept override { cores_.kick(queue); }
  bool wait(DeviceQueue& queue, uint64_t serial,
            std::optional<sync::Clock::time_point> deadline) override {
    return cores_.wait(queue, serial, deadline);
  }
  // The cores are shut down by themselves.
  void shut_down(std::chrono::nanoseconds) noexcept override {}

 private:
  CpuDevice& cores_;
};

}  // namespace

std::unique_ptr<Device> make_simulated_gpu(CpuDevice& cores) {
  static MemorySpace* memory = new SimulatedMemory;
  window();
  install_handler();
  return std::make_unique<SimulatedGpu>(*memory, cores);
}

bool is_simulated_address(const void* address) {
  return reinterpret_cast<uintptr_t>(address) - window().begin < window().size;
}

}  // namespace holdfast::exec
