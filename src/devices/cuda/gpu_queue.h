// GpuQueue: a stream of a GPU, and the lists that it runs.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "devices/cuda/gpu.h"
#include "devices/cuda/graph_cache.h"
#include "devices/cuda/staging.h"
#include "devices/device.h"

namespace holdfast::cuda {

// Memory of a list while it runs: what its kernels report, which the GPU writes to the host's
// memory, and bytes that do not fit kernels' parameters, which are copied to the GPU's.
struct ListMemory {
  std::unique_ptr<PinnedMemory> host;
  Address device = 0;
  size_t capacity = 0;
};

// A list that was launched.
struct LaunchedList {
  exec::CommandList* list = nullptr;
  ListMemory memory;
  sync::Clock::time_point launched{};
  // Where a command's reports are, in `memory.host`.
  struct Report {
    uint32_t command;
    uint32_t argument;  // an exec::ErrorReport; no_argument: a GuardReport
    static constexpr uint32_t no_argument = UINT32_MAX;
    size_t place;
  };
  std::vector<Report> reports;
  // Buffers that commands of the list failed to write when it was launched, and which command did.
  struct Failed {
    const exec::Buffer* buffer;
    uint32_t command;
  };
  std::vector<Failed> failed;
};

// Which thread may use what: those who hold the device's mutex the lists; the one that launches, of
// which there is one at a time, `launch` and what it uses; the one that finishes `settle`.
class GpuQueue final : public exec::DeviceQueue {
 public:
  GpuQueue(exec::Device& device, Gpu& gpu);
  ~GpuQueue() override;

  // Makes the stream run the list after what it has been given, and after the last lists of other
  // queues of this GPU that the list waits for. Never fails: commands do, by name.
  void launch(LaunchedList& launched) noexcept;
  // The last list that the GPU has run, or that ended because the GPU was lost.
  uint64_t executed_by_gpu() const;
  // After the GPU has run a list: failures of its commands, and what fails with them.
  void settle(LaunchedList& launched) noexcept;

  // What waits for the oldest list looks now and then at what the GPU says of it: it may be lost,
  // or run for too long, or have been cancelled.
  void look_after(LaunchedList& oldest, bool asks_driver) noexcept;

  const GraphCache::Stats& graph_stats() const { return graphs_->stats(); }

  // Guarded by the device's mutex.
  exec::CommandList* first_pending = nullptr;  // submitted, not launched yet
  exec::CommandList* last_pending = nullptr;
  std::deque<LaunchedList> launched;
  bool is_launching = false, is_finishing = false;
  uint64_t launched_serial = 0;
  uint64_t search = 0;  // the last search for what it waits for that came by

 private:
  struct Failing;

  void encode(LaunchedList& launched);
  void launch_alone(LaunchedList& launched);
  bool may_run(LaunchedList& launched, uint32_t index) noexcept;
  void fail(LaunchedList& launched, uint32_t index, const Ref<exec::Failure>& failure) noexcept;
  void fail_all(LaunchedList& launched, const char* what) noexcept;
  Ref<exec::Failure> new_failure(LaunchedList& launched, uint32_t index) noexcept;
  Ref<exec::Failure> inherited(const LaunchedList& launched, uint32_t index) const noexcept;

  void wait_for_others(const exec::CommandList& list);
  const ParameterLayout& choose_image(const exec::CommandList& list, uint32_t index);
  size_t plan_memory(LaunchedList& launched, const std::vector<bool>& runs);
  void add_upload(const exec::CommandList& list, const exec::Command& command);
  void add_node(LaunchedList& launched, uint32_t index);
  void add_fill(const exec::CommandList& list, const exec::Command& command);
  void add_kernel(LaunchedList& launched, uint32_t index, Segment::Node& node);
  void launch_segment();
  void take_memory(LaunchedList& launched, size_t bytes);

  Gpu& gpu_;
  OwnedStream stream_;
  OwnedEvent other_;  // recorded on streams that a list waits for
  // The words that the GPU and the host share: `executed`, then `cancelled`.
  PinnedMemory words_;
  uint64_t* executed_word() const;
  uint32_t* cancelled_word() const;
  std::unique_ptr<Staging> staging_;  // made at the first upload
  std::unique_ptr<GraphCache> graphs_;
  sync::Atomic<uint64_t> ended_{0};    // lists up to here have ended without the GPU's word
  sync::Atomic<uint64_t> stopped_{0};  // lists up to here ran while `cancelled` was set

  // Of the list that is being launched.
  Segment segment_;
  struct NodesOf {
    uint32_t first, count;
  };
  std::vector<NodesOf> nodes_of_;   // by command, of the segment
  size_t next_report_ = 0;          // of the list that is encoded
  size_t next_settled_report_ = 0;  // of the one that is settled, by another thread perhaps
  size_t next_byte_ = 0, used_report_bytes_ = 0;
  std::vector<Address> addresses_;
  std::vector<uint8_t> image_of_;  // by command: of its kernel

  sync::SpinLock spare_lock_;
  std::vector<ListMemory> spare_;  // guarded by spare_lock_
  size_t memories_ = 0;            // that were made; guarded by spare_lock_
};

}  // namespace holdfast::cuda
