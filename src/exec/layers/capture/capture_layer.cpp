#include "exec/layers/capture/capture_layer.h"

#include <unistd.h>

#include <algorithm>

#include "base/machine.h"
#include "devices/device.h"
#include "exec/buffer_pool.h"
#include "exec/kernel_request.h"
#include "exec/layers/contents.h"
#include "exec/queue.h"

namespace holdfast::exec::capture {
namespace {

// What may wait for the writing thread before those who record wait for it.
constexpr size_t most_waiting = size_t{512} << 20;
constexpr size_t event_block = size_t{64} << 10;
// Waking the writing thread costs more than handing it a list.
constexpr size_t worth_waking = size_t{512} << 10;
constexpr auto longest_wait = std::chrono::milliseconds(100);

Stream stream_of_queue(const DeviceQueue* queue) {
  return static_cast<const Queue*>(queue->owner)->stream();
}

std::string_view text_of(const label::Label& label) {
  return label ? std::string_view(*label) : std::string_view();
}

// Buffer and offset; nothing is buffer 0.
void describe_place(const CommandList& list, const Command& command, const Place& place,
                    ByteWriter& out) {
  const bool is_nothing = place.binding == Bound::nothing;
  out.value(is_nothing ? uint64_t{0}
                       : list.bindings[command.first_binding + place.binding].identity);
  out.value(is_nothing ? int64_t{0} : place.offset);
}

void clear(Storage& storage, int64_t begin, int64_t end) {
  constexpr int64_t most = int64_t{64} << 10;
  const std::string zeros(static_cast<size_t>(std::min(end - begin, most)), '\0');
  for (int64_t at = begin; at < end; at += most) {
    storage.space->write(storage, static_cast<size_t>(at), zeros.data(),
                         static_cast<size_t>(std::min(end - at, most)));
  }
}

int32_t this_thread() {
  thread_local const auto id = static_cast<int32_t>(::gettid());
  return id;
}

}  // namespace

// --- intervals ---

void Intervals::add(int64_t begin, int64_t end) { take_missing(begin, end); }

std::vector<std::pair<int64_t, int64_t>> Intervals::take_missing(int64_t begin, int64_t end) {
  std::vector<std::pair<int64_t, int64_t>> missing;
  if (begin >= end) return missing;
  // The usual case: it is all there.
  auto first = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                [](const auto& range, int64_t at) { return range.second < at; });
  int64_t at = begin, low = begin, high = end;
  auto last = first;
  for (; last != ranges_.end() && last->first <= end; ++last) {
    if (last->first > at) missing.emplace_back(at, last->first);
    at = std::max(at, last->second);
    low = std::min(low, last->first);
    high = std::max(high, last->second);
  }
  if (at < end) missing.emplace_back(at, end);
  if (missing.empty()) return missing;
  first = ranges_.erase(first, last);
  ranges_.insert(first, {low, high});
  return missing;
}

// --- a list between its commit and its completion ---

struct CaptureLayer::ListRecord final : CommandObserver {
  struct Time {
    int64_t start, end;
    int32_t thread;
    uint8_t failed;
  };
  CaptureLayer& layer;
  int64_t id = 0, sequence = 0;
  std::string commands;
  std::vector<Time> times;
  std::vector<NotedOp> ops;  // in order; together they are all commands
  size_t op = 0;             // the one that is running
  struct OutputDigest {
    uint32_t command;
    NotedOp::Output output;
    Hash128 hash;
  };
  std::vector<OutputDigest> digests;

  explicit ListRecord(CaptureLayer& owner) : layer(owner) {}

  void before(const CommandList& list, uint32_t command) noexcept override {
    try {
      layer.save_contents(*this, list, command);
    } catch (const std::exception& error) {
      layer.lose(error.what());
    }
    times[command].thread = this_thread();
    times[command].start = layer.nanoseconds();
  }
  void after(const CommandList& list, uint32_t command, bool failed) noexcept override {
    times[command].end = layer.nanoseconds();
    times[command].failed = failed;
    if (failed) return;
    try {
      layer.check_outputs(*this, list, command);
    } catch (const std::exception& error) {
      layer.lose(error.what());
    }
  }
};

CaptureLayer::CaptureLayer(const std::string& path, const CaptureOptions& options,
                           std::set<int> old_queues)
    : options_(options),
      start_(sync::now()),
      file_(path, options.max_file_bytes),
      old_queues_(std::move(old_queues)) {
  file_.meta("contents", options.contents ? "1" : "0");
  file_.meta("digests", options.digests ? "1" : "0");
  file_.meta("instruction set",
             machine::instruction_set_name(machine::supports(machine::InstructionSet::avx512)
                                               ? machine::InstructionSet::avx512
                                           : machine::supports(machine::InstructionSet::avx2)
                                               ? machine::InstructionSet::avx2
                                               : machine::InstructionSet::baseline));
  writer_ = sync::Thread("holdfast-capture", [this] { run_writer(); });
}

CaptureLayer::~CaptureLayer() { finish(); }

uint32_t CaptureLayer::interests() const {
  return lists | buffers | (has_notes() ? host_accesses : 0u);
}

void CaptureLayer::begin() { first_new_.store(BufferPool::get().next_identity()); }

int64_t CaptureLayer::nanoseconds() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(sync::now() - start_).count();
}

void CaptureLayer::lose(const std::string& reason) noexcept {
  std::lock_guard guard(writer_mutex_);
  if (is_lost_.exchange(true)) return;
  try {
    lost_ = reason;
  } catch (const std::bad_alloc&) {
  }
}

// --- the writing thread ---

void CaptureLayer::write(size_t bytes, Write work) {
  if (is_lost_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(writer_mutex_);
  changed_.wait(lock, [&] { return waiting_bytes_ < most_waiting || is_lost_.load(); });
  bool was_little = waiting_bytes_ < worth_waking;
  waiting_bytes_ += bytes;
  waiting_.emplace_back(bytes, std::move(work));
  if (was_little && waiting_bytes_ >= worth_waking) changed_.notify_all();
}

void CaptureLayer::run_writer() {
  std::unique_lock lock(writer_mutex_);
  while (true) {
    bool has_much = changed_.wait_for(lock, longest_wait, [&] {
      return is_closing_ || (waiting_bytes_ >= worth_waking && !waiting_.empty());
    });
    if (waiting_.empty()) {
      if (has_much) return;
      continue;
    }
    std::vector<std::pair<size_t, Write>> batch = std::exchange(waiting_, {});
    lock.unlock();
    size_t bytes = 0;
    try {
      if (!is_lost_.load()) file_.begin();
      for (auto& [size, work] : batch) {
        bytes += size;
        if (!is_lost_.load()) work(file_);
      }
      if (!is_lost_.load()) file_.commit();
    } catch (const std::exception& error) {
      lose(error.what());
      try {
        file_.commit();  // what was written before is worth having
      } catch (const std::exception&) {
      }
    }
    batch.clear();
    lock.lock();
    waiting_bytes_ -= bytes;
    changed_.notify_all();
  }
}

std::string CaptureLayer::finish() noexcept {
  {
    std::lock_guard guard(writer_mutex_);
    is_closing_ = true;
    changed_.notify_all();
  }
  if (!writer_.joinable()) return lost_;
  writer_.join();
  writer_ = {};
  try {
    std::string state = "complete";
    for (const std::string& name : not_hermetic_) {
      file_.meta("not hermetic: " + name, "its results are recorded");
    }
    if (!options_.contents) file_.meta("not hermetic: contents", "they were not asked for");
    file_.memory(events_.take());
    Allocator& allocator = Allocator::get();
    file_.meta("wired limit", std::to_string(wired_limit_.load()));
    file_.meta("max bytes per set", std::to_string(allocator.residency().max_bytes_per_set()));
    file_.meta("nanoseconds", std::to_string(nanoseconds()));
    if (!lost_.empty()) state = "incomplete: " + lost_;
    file_.meta("state", state);
  } catch (const std::exception& error) {
    // The file still says that it is being recorded.
    if (lost_.empty()) lost_ = error.what();
  }
  return lost_;
}

// --- buffers ---

void CaptureLayer::add_event(uint8_t kind, const Buffer& buffer, uint64_t identity, sync::Held) {
  events_.value(kind);
  events_.value(nanoseconds());
  events_.value(identity);
  events_.value(static_cast<uint64_t>(buffer.size()));
  events_.value(static_cast<int32_t>(buffer.stream()));
  events_.text(buffer.op());
  events_.text(kind == 2 ? std::string_view() : text_of(buffer.label()));
  if (events_.size() < event_block) return;
  std::string block = events_.take();
  size_t size = block.size();
  write(size, [block = std::move(block)](CaptureFile& file) { file.memory(block); });
}

void CaptureLayer::on_create(const Buffer& buffer) {
  try {
    std::lock_guard guard(mutex_);
    add_event(0, buffer, buffer.identity(), guard);
    if (has_notes()) known_[buffer.identity()].is_garbage = buffer.stream() >= 0;
  } catch (const std::bad_alloc&) {
    lose("no memory");
  }
}

void CaptureLayer::on_retire(const Buffer& buffer) {
  try {
    std::lock_guard guard(mutex_);
    bool was_seen = known_.erase(buffer.identity()) > 0 || buffer.identity() >= first_new_.load();
    if (was_seen) add_event(2, buffer, buffer.identity(), guard);
  } catch (const std::bad_alloc&) {
    lose("no memory");
  }
}

void CaptureLayer::on_host_access(const Buffer& buffer, int64_t, int64_t) {
  // What the host has is a replica, where the array's own buffer is on a device.
  const Replica on_host = Replicas::find(const_cast<Buffer&>(buffer), host_memory());
  std::lock_guard guard(mutex_);
  for (const Buffer* seen : {&buffer, const_cast<const Buffer*>(on_host.buffer.get())}) {
    auto found = seen ? known_.find(seen->identity()) : known_.end();
    if (found != known_.end()) found->second.is_host_visible = true;
  }
}

// A buffer that is older than the capture.
void CaptureLayer::note_buffer(const Buffer& buffer, uint64_t identity, sync::Held held) {
  if (identity >= first_new_.load(std::memory_order_relaxed)) return;
  if (known_.try_emplace(identity).second) add_event(1, buffer, identity, held);
}

// --- lists ---

void CaptureLayer::describe(const CommandList& list, const Command& command, ByteWriter& out,
                            sync::Held held) {
  out.value(static_cast<uint8_t>(command.kind));
  out.text(command.op);
  out.text(command.detail);
  out.text(text_of(command.label));
  out.value(command.work);
  out.value(command.tasks);
  out.value(static_cast<uint64_t>(command.binding_count));
  for (uint32_t i = 0; i < command.binding_count; ++i) {
    const Binding& binding = list.bindings[command.first_binding + i];
    note_buffer(*binding.buffer, binding.identity, held);
    out.value(binding.identity);
    out.value(binding.begin);
    out.value(binding.end);
    out.value(static_cast<uint8_t>(binding.writes));
  }
  out.value(static_cast<uint64_t>(command.edge_count));
  for (uint32_t i = 0; i < command.edge_count; ++i) {
    const Edge& edge = list.edges[command.first_edge + i];
    out.value(edge.predecessor);
    out.value(static_cast<uint8_t>(edge.kind));
  }
  switch (command.kind) {
    case Command::Kind::native:
      break;
    case Command::Kind::copy:
      describe_place(list, command, command.source, out);
      describe_place(list, command, command.target, out);
      out.value(static_cast<uint64_t>(command.bytes));
      break;
    case Command::Kind::fill:
      out.text({static_cast<const char*>(command.pattern), command.pattern_size});
      describe_place(list, command, command.target, out);
      out.value(static_cast<uint64_t>(command.bytes));
      break;
    case Command::Kind::dispatch: {
      const Dispatch& dispatch = *command.dispatch;
      note_pipeline(*command.pipeline, held);
      out.value(command.pipeline_identity);
      for (uint32_t size : dispatch.grid) out.value(size);
      for (uint32_t size : dispatch.threadgroup) out.value(size);
      out.value(uint64_t{dispatch.argument_count});
      for (uint32_t i = 0; i < dispatch.argument_count; ++i) {
        const DispatchArgument& argument = dispatch.arguments[i];
        uint32_t bytes = dispatch.threadgroup_bytes ? dispatch.threadgroup_bytes[i] : 0;
        out.value(bytes);
        out.text({static_cast<const char*>(argument.bytes), argument.bytes ? bytes : 0});
        describe_place(list, command, argument.place, out);
        out.text(argument.errors);
      }
      break;
    }
  }
}

void CaptureLayer::note_pipeline(const Pipeline& pipeline, sync::Held) {
  if (!pipelines_.insert(pipeline.identity()).second) return;
  ByteWriter out;
  std::string key;
  if (pipeline.origin) {
    const KernelRequest& request =
        **static_cast<const Ref<const KernelRequest>*>(pipeline.origin.get());
    const msl::KernelSource& source = request.source();
    key = to_hex(request.hash());
    out.text(source.kernel);
    out.text(source.entry);
    out.text(source.text);
    out.value(static_cast<uint8_t>(source.math));
    // Checked code is for a validator that a replay may not have.
    uint64_t variant = request.options().variant;
    if (variant == request.target().checked_variant()) variant = 0;
    out.value(static_cast<uint8_t>(variant));
    // A source that includes files cannot be compiled from what the capture holds.
    bool includes =
        !source.include_directories.empty() ||
        (!source.directory.empty() && source.text.find("include \"") != source.text.npos);
    out.value(static_cast<uint8_t>(includes));
    write_constants(source.constants, out);
  } else {
    not_hermetic_.insert(pipeline.name());
  }
  std::string text = out.take();
  write(text.size(), [id = static_cast<int64_t>(pipeline.identity()), name = pipeline.name(), key,
                      text](CaptureFile& file) { file.pipeline(id, name, key, text); });
}

void CaptureLayer::on_commit(CommandList& list) {
  if (list.commands.empty() || is_lost_.load(std::memory_order_relaxed)) return;
  int64_t number = lists_seen_.fetch_add(1);
  if (number < options_.skip_lists) return;
  if (options_.count_lists >= 0 && number >= options_.skip_lists + options_.count_lists) return;
  try {
    auto record = std::make_unique<ListRecord>(*this);
    record->id = next_list_.fetch_add(1);
    record->times.resize(list.commands.size());
    // Ops that were encoded before the capture began have no notes: their results are recorded.
    uint32_t next = 0;
    auto without_note = [&](uint32_t until) {
      for (; next < until; ++next) {
        NotedOp op{next, 1, NotedOp::Replay::none, {}, {}};
        const Command& command = list.commands[next];
        if (command.kind != Command::Kind::native) op.replay = NotedOp::Replay::commands;
        for (uint32_t i = 0; i < command.binding_count; ++i) {
          const Binding& b = list.bindings[command.first_binding + i];
          if (b.writes) op.outputs.push_back({b.identity, b.begin, b.end});
        }
        record->ops.push_back(std::move(op));
      }
    };
    if (has_notes()) {
      for (NotedOp& op : list.notes) {
        without_note(op.first_command);
        next = op.first_command + op.command_count;
        record->ops.push_back(std::move(op));
      }
      without_note(static_cast<uint32_t>(list.commands.size()));
    }
    list.notes.clear();

    ByteWriter out;
    std::lock_guard guard(mutex_);
    out.reserve(list_bytes_ + list_bytes_ / 8);
    Stream stream = stream_of_queue(list.queue);
    if (queues_.insert(stream.index).second) {
      bool is_new = !old_queues_.contains(stream.index);
      write(0, [stream, is_new](CaptureFile& file) {
        file.queue(stream.index, stream.device == holdfast::Device::gpu ? "gpu" : "cpu", is_new);
      });
    }
    wired_limit_.store(std::max(wired_limit_.load(), Allocator::get().residency().limit()));
    out.value(nanoseconds());
    out.value(static_cast<uint64_t>(list.waits.size()));
    for (const Stamp& wait : list.waits) {
      out.value(static_cast<int32_t>(stream_of_queue(wait.queue).index));
      out.value(wait.serial);
    }
    out.value(static_cast<uint64_t>(record->ops.size()));
    for (const NotedOp& op : record->ops) {
      out.value(op.first_command);
      out.value(op.command_count);
      out.value(static_cast<uint8_t>(op.replay));
      out.text(op.text);
      if (op.replay == NotedOp::Replay::none) {
        not_hermetic_.insert(list.commands[op.first_command].op);
      }
    }
    out.value(static_cast<uint64_t>(list.commands.size()));
    for (const Command& command : list.commands) describe(list, command, out, guard);
    list_bytes_ = out.size();
    record->commands = out.take();
    list.add_observer(*record.release());
  } catch (const std::exception& error) {
    lose(error.what());
  }
}

std::optional<FileRange> CaptureLayer::origin_of(uint64_t buffer, int64_t begin,
                                                 int64_t end) const {
  if (!options_.reference_files) return std::nullopt;
  return FileOrigins::get().find(buffer, begin, end);
}

// Copies what the command is about to read, or to overwrite in part, and nobody knows yet.
void CaptureLayer::save_contents(ListRecord& record, const CommandList& list, uint32_t index) {
  if (!options_.contents && !options_.digests) return;
  const Command& command = list.commands[index];
  for (uint32_t i = 0; i < command.binding_count; ++i) {
    const Binding& binding = list.bindings[command.first_binding + i];
    std::vector<std::pair<int64_t, int64_t>> missing;
    bool is_garbage;
    Moment moment = Moment::start;
    {
      std::lock_guard guard(mutex_);
      Known& known = known_[binding.identity];
      missing = known.bytes.take_missing(binding.begin, binding.end);
      is_garbage = known.is_garbage;
      if (known.is_host_visible && !binding.writes) {
        // The host may have written. Bytes that are as they were are one row of the file.
        bool is_all =
            binding.begin == 0 && binding.end == static_cast<int64_t>(binding.buffer->size());
        known.is_host_visible = !is_all;
        std::pair range(binding.begin, binding.end);
        if (missing.empty() || missing[0] != range) {
          missing = {range};
          moment = Moment::before;
          is_garbage = false;
        }
      }
    }
    for (auto [begin, end] : missing) {
      auto size = static_cast<size_t>(end - begin);
      if (is_garbage) {
        // What no command writes would differ from run to run: it is 0 here and in a replay.
        if (options_.digests) clear(*binding.storage, begin, end);
      } else if (options_.contents) {
        const Contents contents(*binding.storage, begin, end);
        write(size, [bytes = std::string(contents.bytes()), buffer = binding.identity,
                     first = begin, from = origin_of(binding.identity, begin, end),
                     list_id = record.id, index, moment](CaptureFile& file) {
          file.contents(moment, list_id, index, static_cast<int64_t>(buffer), first, bytes, from);
        });
      }
    }
  }
}

// After the last command of an op: digests of its outputs, or the outputs themselves.
void CaptureLayer::check_outputs(ListRecord& record, const CommandList& list, uint32_t index) {
  while (record.op < record.ops.size() &&
         record.ops[record.op].first_command + record.ops[record.op].command_count <= index) {
    ++record.op;
  }
  if (record.op == record.ops.size()) return;
  const NotedOp& op = record.ops[record.op];
  if (op.first_command + op.command_count != index + 1) return;
  bool save = op.replay == NotedOp::Replay::none && options_.contents;
  if (!options_.digests && !save) return;
  for (const NotedOp::Output& output : op.outputs) {
    Storage* storage = nullptr;
    for (uint32_t c = op.first_command; c <= index && !storage; ++c) {
      const Command& command = list.commands[c];
      for (uint32_t i = 0; i < command.binding_count; ++i) {
        const Binding& binding = list.bindings[command.first_binding + i];
        if (binding.identity == output.buffer) storage = binding.storage;
      }
    }
    if (!storage) continue;
    const Contents contents(*storage, output.begin, output.end);
    const std::string_view bytes = contents.bytes();
    if (options_.digests) {
      record.digests.push_back({index, output, hash_bytes(bytes)});
    }
    if (save) {
      write(bytes.size(),
            [output, copy = std::string(bytes), id = record.id, index,
             from = origin_of(output.buffer, output.begin, output.end)](CaptureFile& file) {
              file.contents(Moment::after, id, index, static_cast<int64_t>(output.buffer),
                            output.begin, copy, from);
            });
    }
  }
}

void CaptureLayer::on_complete(const CommandList& list) {
  ListRecord* found = nullptr;
  for (CommandObserver* o = list.observers; o && !found; o = o->next) {
    found = dynamic_cast<ListRecord*>(o);
  }
  if (!found) return;
  std::shared_ptr<ListRecord> record(found);
  record->sequence = next_sequence_.fetch_add(1);
  try {
    size_t bytes = record->commands.size() + record->times.size() * sizeof(ListRecord::Time);
    write(bytes, [record, stream = stream_of_queue(list.queue).index,
                  serial = static_cast<int64_t>(list.serial)](CaptureFile& file) {
      ByteWriter times;
      for (const ListRecord::Time& time : record->times) {
        times.value(time.start);
        times.value(time.end);
        times.value(time.thread);
        times.value(time.failed);
      }
      file.list(record->id, record->sequence, stream, serial, record->commands, times.take());
      for (const ListRecord::OutputDigest& d : record->digests) {
        file.digest(record->id, d.command, static_cast<int64_t>(d.output.buffer), d.output.begin,
                    d.output.end, d.hash);
      }
    });
  } catch (const std::exception& error) {
    lose(error.what());
  }
}

}  // namespace holdfast::exec::capture
