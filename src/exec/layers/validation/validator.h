// Validator: the layer that runs the checks. This header is the frame; each check is a file of its
// own, which says what it finds and why it reports nothing else.
//
// One mutex, taken inside every other lock of the runtime; while it is held nothing is called that
// takes another one. Reports are delivered after it was released.
#pragma once

#include <map>
#include <unordered_set>

#include "base/sync.h"
#include "exec/layers/layer.h"
#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/records.h"
#include "exec/layers/validation/reporter.h"

namespace holdfast::validation {

using exec::Buffer;
using exec::Command;
using exec::CommandList;
using exec::KernelRequest;
using exec::Pipeline;

class Validator final : public exec::Layer {
 public:
  // The names are those of the settings, for messages.
  Validator(const Options& options, const std::string& checks_name, const std::string& ignore_name);

  const Reporter& reporter() const { return reporter_; }

  void on_create(const Buffer& buffer) override;
  void on_retire(const Buffer& buffer) override;
  void on_retire_pipeline(uint64_t identity) override;
  void on_pipeline(const KernelRequest& request, const Pipeline& pipeline) override;
  void on_begin() override;
  Ref<const Pipeline> on_dispatch(const Pipeline& pipeline,
                                  std::span<exec::BoundSlot> slots) override;
  void on_address(const Buffer& buffer) override;
  void on_command(const CommandList& list) override;
  void on_encode(const CommandList& list) override;
  void on_commit(CommandList& list) override;
  void on_complete(const CommandList& list) override;
  void on_observe(const DeviceQueue& queue, uint64_t serial) override;
  void on_take_over(const Buffer& buffer) override;
  void on_host_access(const Buffer& buffer, int64_t begin, int64_t end) override;
  void on_limit(const exec::LimitReached& limit) override;
  void on_exit() override;
  Ref<exec::Failure> on_kernel_findings(const CommandList& list, const Command& command,
                                        std::span<const exec::KernelFinding> findings) override;

  // Metal's; a test sets a smaller one.
  static std::atomic<size_t> live_buffer_limit;

 private:
  using Reports = std::vector<Report>;
  // A command with what the checks ask about it.
  struct Seen {
    const CommandList& list;
    const Command& command;
    Side side;
    std::span<const exec::Binding> bindings;
    bool covers(uintptr_t address) const;
  };

  // records.cpp.
  Side side_of(const CommandList& list, const Command& command, sync::Held);
  QueueRecord& queue_of(const CommandList& list, sync::Held);
  BufferRecord* find(uint64_t identity, sync::Held);
  // The newest living buffer that has this address.
  BufferRecord* find_at(uintptr_t address, sync::Held);
  Region& region_for(uintptr_t begin, uintptr_t end, bool is_adopted, sync::Held);
  void forget_commands(const DeviceQueue* queue, uint64_t serial, uint32_t from, sync::Held);
  void set_clock(QueueRecord& queue, const CommandList& list, sync::Held);
  bool is_ordered_before(const Side& earlier, const Seen& later, sync::Held);

  // The checks.
  void note_uses(const Seen& seen, Reports& reports, sync::Held);
  void note_writes(const Seen& seen, sync::Held);
  void check_hazards(const Seen& seen, Reports& reports, sync::Held);
  void take_digests(const Seen& seen, sync::Held);
  void watch_origins(CommandList& list, sync::Held);
  void check_bindings(const Seen& seen, Reports& reports, sync::Held);
  void check_dispatch(const Seen& seen, Reports& reports, sync::Held);
  void check_limits(const Seen& seen, Reports& reports, sync::Held);
  void check_ownership(const CommandList& list, const QueueRecord& queue, Reports& reports,
                       sync::Held);

  // By a thread that runs the list.
  // Whether the command that is about to run is the first to write to the buffer.
  bool is_first_write(uint64_t identity);
  void report_origin(const CommandList& list, const Command& command, const exec::Binding& binding,
                     bool is_nan, const messages::MadeNumbers& made, size_t numbers) noexcept;

  // Without the mutex. Compiles what runs in place of the pipeline; throws NotReady where the
  // thread may not wait for that.
  void make_checked_twin(const KernelRequest& request, const Pipeline& pipeline);
  Ref<const Pipeline> check_kernel(const Pipeline& pipeline);

  // Without the mutex. All are kept. What has to be thrown is thrown here (the first of them), by
  // the next `synchronize` of the queue (if there is one), or by who waits for the command.
  void deliver(const Reports& reports);
  void deliver_later(const Reports& reports, const DeviceQueue* queue = nullptr);
  Ref<exec::Failure> deliver_to_command(const Reports& reports);

  const CheckSet checks_;
  Reporter reporter_;

  sync::Mutex mutex_{sync::Rank::validator};
  // Guarded by mutex_.
  std::unordered_map<uint64_t, BufferRecord> buffers_;
  Regions regions_;
  std::unordered_map<const DeviceQueue*, QueueRecord> queues_;
  std::unordered_map<uint64_t, PipelineRecord> pipelines_;
  // What runs in place of a pipeline, by its identity; null: nothing can.
  std::unordered_map<uint64_t, Ref<const Pipeline>> checked_;
  class OriginWatch;
  // Of the lists that run or will, by queue and serial.
  std::map<std::pair<const DeviceQueue*, uint64_t>, std::shared_ptr<OriginWatch>> origin_watches_;
  std::unordered_set<std::string> names_;
  uint64_t made_buffers_ = 0;
};

// Starts validation when HOLDFAST_VALIDATE is set, once; for the start of the runtime. Throws
// std::invalid_argument that names the variable.
void start_from_environment();

}  // namespace holdfast::validation
