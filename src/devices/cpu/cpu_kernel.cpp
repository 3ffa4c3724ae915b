#include "devices/cpu/cpu_kernel.h"

#include <algorithm>

namespace holdfast::exec {
namespace {

// A core that streams moves about ten bytes in a nanosecond.
constexpr uint64_t picoseconds_per_byte = 100;
constexpr int64_t guess_per_thread = 64;

}  // namespace

int64_t CpuKernel::work_of_group(int64_t threads) const {
  uint64_t measured = measured_.load(std::memory_order_relaxed);
  if (measured == 0) return threads * guess_per_thread;
  // Groups of many threads are never quite free, however coarse the clock.
  return std::max(static_cast<int64_t>(measured / picoseconds_per_byte), threads * 4);
}

void CpuKernel::has_run(int64_t groups, sync::Clock::duration time) const {
  auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  // Beyond a minute a group is large, whatever it is.
  uint64_t each =
      static_cast<uint64_t>(std::clamp<int64_t>(nanoseconds, 0, int64_t{60'000'000'000}) * 1000 /
                            std::max<int64_t>(groups, 1)) +
      1;
  uint64_t known = measured_.load(std::memory_order_relaxed);
  if (known != 0 && each < known + known / 4 && each > known - known / 4) return;
  // A single slow run (a page fault, a lost core) counts for little.
  measured_.store(known == 0 ? each : std::max<uint64_t>(1, known - known / 4 + each / 4),
                  std::memory_order_relaxed);
}

}  // namespace holdfast::exec
