// CaptureLayer: turns lists, buffers and bytes into rows of a CaptureFile.
//
// The threads that run lists only copy what will not be there later; one thread of its own
// compresses and writes. When writing fails the capture ends, and the program goes on.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "base/sync.h"
#include "exec/layers/capture/capture.h"
#include "exec/layers/capture/capture_file.h"
#include "exec/layers/layer.h"

namespace holdfast::exec::capture {

// Ranges of bytes, merged where they touch.
class Intervals {
 public:
  void add(int64_t begin, int64_t end);
  // The parts of [begin, end) that are not in it, which are in it afterwards.
  std::vector<std::pair<int64_t, int64_t>> take_missing(int64_t begin, int64_t end);

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // sorted
};

class CaptureLayer final : public Layer {
 public:
  // `old_queues`: indices of the streams that are there.
  CaptureLayer(const std::string& path, const CaptureOptions& options, std::set<int> old_queues);
  ~CaptureLayer() override;

  uint32_t interests() const override;
  bool is_last() const override { return true; }
  // It is in the chain now: buffers that are made from here on are seen.
  void begin();

  void on_create(const Buffer& buffer) override;
  void on_retire(const Buffer& buffer) override;
  void on_commit(CommandList& list) override;
  void on_complete(const CommandList& list) override;
  void on_host_access(const Buffer& buffer, int64_t begin, int64_t end) override;

  // Writes what is left, and closes. Returns why the file is not complete, or nothing.
  std::string finish() noexcept;

 private:
  struct ListRecord;
  friend struct ListRecord;
  // What is known of a buffer's bytes.
  struct Known {
    Intervals bytes;
    bool is_garbage = false;       // never written by anybody: made for commands, while capturing
    bool is_host_visible = false;  // the host has had its address since it was last looked at
  };
  using Write = std::function<void(CaptureFile&)>;

  void describe(const CommandList& list, const Command& command, ByteWriter& out, sync::Held);
  void save_contents(ListRecord& record, const CommandList& list, uint32_t command);
  void check_outputs(ListRecord& record, const CommandList& list, uint32_t command);
  // Where the bytes of a buffer may be found again, if the options want that.
  std::optional<FileRange> origin_of(uint64_t buffer, int64_t begin, int64_t end) const;
  void note_pipeline(const Pipeline& pipeline, sync::Held);
  void note_buffer(const Buffer& buffer, uint64_t identity, sync::Held);
  void add_event(uint8_t kind, const Buffer& buffer, uint64_t identity, sync::Held);
  bool has_notes() const { return options_.contents || options_.digests; }
  // Hands work to the writing thread, which starts when much is there or it is old. `bytes` of
  // memory wait with it.
  void write(size_t bytes, Write work);
  void run_writer();
  void lose(const std::string& reason) noexcept;
  int64_t nanoseconds() const;

  const CaptureOptions options_;
  const sync::Clock::time_point start_;
  CaptureFile file_;  // of the writing thread
  std::atomic<int64_t> lists_seen_{0}, next_list_{1}, next_sequence_{1};
  std::atomic<size_t> wired_limit_{0};
  // Buffers with a smaller identity may be older than the capture.
  std::atomic<uint64_t> first_new_{UINT64_MAX};

  sync::Mutex mutex_{sync::Rank::capture};
  // Guarded by mutex_.
  std::unordered_map<uint64_t, Known> known_;  // without notes: only buffers older than the capture
  std::set<uint64_t> pipelines_;
  std::set<int> old_queues_, queues_;
  std::set<std::string> not_hermetic_;  // ops whose results are recorded
  ByteWriter events_;
  size_t list_bytes_ = 0;  // of the last list, as text

  sync::Mutex writer_mutex_{sync::Rank::capture_writer};
  // Guarded by writer_mutex_.
  sync::CondVar changed_;
  std::vector<std::pair<size_t, Write>> waiting_;
  size_t waiting_bytes_ = 0;
  bool is_closing_ = false;
  std::string lost_;  // why it cannot be complete
  std::atomic<bool> is_lost_{false};
  sync::Thread writer_;
};

}  // namespace holdfast::exec::capture
