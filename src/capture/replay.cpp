#include "capture/replay.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include <holdfast/memory.h>
#include <holdfast/metal.h>
#include <holdfast/ops.h>
#include <holdfast/stream.h>
#include <holdfast/transforms.h>

#include "devices/error_report.h"
#include "exec/add_dispatch.h"
#include "exec/allocator.h"
#include "exec/kernel_library.h"
#include "exec/runtime.h"
#include "ops/recorded_calls.h"

namespace holdfast::capture {
namespace {

using Replayed = exec::NotedOp::Replay;

// The streams that a replay works on, of the CPU whatever they were of: it runs all that a device
// does. Given back at its end.
class Streams {
 public:
  explicit Streams(const Capture& capture) {
    for (const Queue& queue : capture.queues) {
      exec::Queue& mine = exec::Runtime::get().acquire(holdfast::Device::cpu);
      queues_.emplace(queue.stream, &mine);
    }
  }
  ~Streams() {
    for (auto& [stream, queue] : queues_) exec::Runtime::get().give_back(*queue);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  exec::Queue& at(int stream) const { return *queues_.at(stream); }

 private:
  std::map<int, exec::Queue*> queues_;
};

// A buffer of the capture, as it is now.
class Memory {
 public:
  explicit Memory(uint64_t size)
      : buffer_(exec::buffer_of(allocator::malloc(static_cast<size_t>(size)))) {
    std::memset(bytes(), 0, static_cast<size_t>(size));
  }
  ~Memory() {
    if (buffer_) buffer_->release_owner();
  }
  Memory(Memory&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  Memory& operator=(Memory&&) = delete;

  char* bytes() const { return static_cast<char*>(buffer_->storage()->address); }
  exec::Buffer* buffer() const { return buffer_; }
  // All of it, as elements of a dtype.
  array elements(Dtype dtype) const {
    size_t count = buffer_->size() / dtype.size();
    buffer_->retain_owner();
    allocator::Buffer handle(buffer_);
    constexpr size_t row = size_t{1} << 20;
    if (count <= static_cast<size_t>(std::numeric_limits<int>::max())) {
      return array(handle, {static_cast<int>(count)}, dtype);
    }
    return array(handle, {static_cast<int>(count / row), static_cast<int>(row)}, dtype);
  }

 private:
  exec::Buffer* buffer_;
};

class Player {
 public:
  Player(const Capture& capture, const ReplayOptions& options, ReplayResult& result)
      : capture_(capture), options_(options), result_(result), streams_(capture) {
    for (const List& list : capture.lists) {
      for (size_t i = 0; i < list.commands.size(); ++i) {
        int64_t number = list.first_number + static_cast<int64_t>(i);
        for (const Binding& binding : list.commands[i].bindings) last_use_[binding.buffer] = number;
      }
      notes_.emplace_back();
      for (const Op& op : list.ops) {
        OpNote note;
        if (op.replay == Replayed::call) note = read_note(list, op);
        int64_t last = list.first_number + op.first_command + op.command_count - 1;
        for (const OpView& view : note.inputs) use(view, last);
        for (const OpNote::Output& output : note.outputs) use(output.view, last);
        notes_.back().push_back(std::move(note));
      }
    }
    find_ends();
    for (size_t i = 0; i < capture.contents.size(); ++i) {
      const Contents& c = capture.contents[i];
      if (c.moment == Moment::start) {
        first_contents_.emplace(c.buffer, i);
      } else {
        contents_.emplace(std::pair(c.list, c.command), i);
      }
    }
    for (size_t i = 0; i < capture.digests.size(); ++i) {
      digests_.emplace(std::pair(capture.digests[i].list, capture.digests[i].command), i);
    }
  }

  void play(int64_t pass) {
    has_differed_ = false;
    pass_ = pass;
    memory_.clear();
    seconds_ = 0;
    int64_t ran = 0;
    size_t ended = 0;
    for (size_t l = 0; l < capture_.lists.size(); ++l) {
      const List& list = capture_.lists[l];
      for (size_t k = 0; k < list.ops.size(); ++k) {
        const Op& op = list.ops[k];
        int64_t first = list.first_number + op.first_command;
        int64_t last = first + op.command_count - 1;
        if (first > options_.last) break;
        play_op(list, op, notes_[l][k]);
        ran += op.command_count;
        for (; ended < ends_.size() && ends_[ended].first <= last; ++ended) {
          memory_.erase(ends_[ended].second);
        }
      }
      auto& sets = metal::residency_sets();
      result_.most_sets = std::max(result_.most_sets, sets.num_sets());
      result_.most_wired = std::max(result_.most_wired, sets.wired_size());
    }
    memory_.clear();
    result_.commands = ran;
    result_.seconds.push_back(seconds_);
  }

 private:
  [[noreturn]] void fail(const List& list, const Op& op, const std::string& what) const {
    throw std::runtime_error("[replay] " + capture_.name + ": command " +
                             std::to_string(list.first_number + op.first_command) + " (" +
                             list.commands[op.first_command].op + "): " + what);
  }

  OpNote read_note(const List& list, const Op& op) const {
    try {
      return read_op_note(op.text);
    } catch (const std::invalid_argument& error) {
      fail(list, op, error.what());
    }
  }

  void use(const OpView& view, int64_t number) {
    if (view.buffer == 0) return;
    if (!capture_.buffers.contains(view.buffer)) {
      throw std::runtime_error("[replay] " + capture_.name + ": command " + std::to_string(number) +
                               " refers to buffer " + std::to_string(view.buffer) +
                               ", which is not there");
    }
    int64_t& last = last_use_[view.buffer];
    last = std::max(last, number);
  }

  // A buffer lives as long as it did: until the lists that were committed before its end have run,
  // so that as much memory is held, and wired, as then. Some live on when the capture ends.
  void find_ends() {
    std::vector<std::pair<int64_t, int64_t>> commits;  // when, and the last command so far
    for (const List& list : capture_.lists) {
      commits.emplace_back(list.committed,
                           list.first_number + static_cast<int64_t>(list.commands.size()) - 1);
    }
    std::sort(commits.begin(), commits.end());
    for (size_t i = 1; i < commits.size(); ++i) {
      commits[i].second = std::max(commits[i].second, commits[i - 1].second);
    }
    for (const auto& [id, buffer] : capture_.buffers) {
      auto used = last_use_.find(id);
      if (used == last_use_.end() || buffer.retired < 0) continue;
      auto after = std::upper_bound(commits.begin(), commits.end(),
                                    std::pair(buffer.retired, std::numeric_limits<int64_t>::max()));
      int64_t end = after == commits.begin() ? 0 : std::prev(after)->second;
      ends_.emplace_back(std::max(end, used->second), id);
    }
    std::sort(ends_.begin(), ends_.end());
  }

  Memory& memory(uint64_t id) {
    auto found = memory_.find(id);
    if (found != memory_.end()) return found->second;
    Memory& made = memory_.emplace(id, capture_.buffers.at(id).size).first->second;
    auto [begin, end] = first_contents_.equal_range(id);
    for (auto it = begin; it != end; ++it) write(made, capture_.contents[it->second]);
    return made;
  }

  void write(Memory& into, const Contents& c) {
    const std::string& bytes = bytes_of(c);
    std::memcpy(into.bytes() + c.begin, bytes.data(), bytes.size());
  }

  const std::string& bytes_of(const Contents& c) {
    auto found = blobs_.find(c.blob);
    if (found != blobs_.end()) return found->second;
    // Passes need the same bytes again; what does not fit is read again.
    constexpr size_t most_kept = size_t{1} << 30;
    if (blob_bytes_ > most_kept) {
      blobs_.clear();
      blob_bytes_ = 0;
    }
    std::string& bytes = blobs_[c.blob];
    bytes = capture_.bytes(c);
    blob_bytes_ += bytes.size();
    return bytes;
  }

  void write_recorded(const List& list, const Op& op, Moment moment) {
    for (uint32_t c = op.first_command; c < op.first_command + op.command_count; ++c) {
      auto [begin, end] = contents_.equal_range(std::pair(list.id, int64_t{c}));
      for (auto it = begin; it != end; ++it) {
        const Contents& contents = capture_.contents[it->second];
        if (contents.moment == moment) write(memory(contents.buffer), contents);
      }
    }
  }

  void play_op(const List& list, const Op& op, const OpNote& note) {
    bool failed = false;
    for (uint32_t c = op.first_command; c < op.first_command + op.command_count; ++c) {
      failed = failed || list.commands[c].failed;
    }
    // What failed then left nothing that could be compared.
    if (failed) return;
    write_recorded(list, op, Moment::before);
    bool is_watched = list.first_number + op.first_command >= options_.first;
    double seconds = 0;
    if (op.replay == Replayed::commands) {
      seconds = play_commands(list, op);
    } else if (op.replay == Replayed::call) {
      seconds = call(list, op, note);
    }
    write_recorded(list, op, Moment::after);
    if (!is_watched) return;
    seconds_ += seconds;
    result_.seconds_by_op[list.commands[op.first_command].op] += seconds;
    check(list, op);
  }

  void check(const List& list, const Op& op) {
    for (uint32_t c = op.first_command; c < op.first_command + op.command_count; ++c) {
      auto [begin, end] = digests_.equal_range(std::pair(list.id, int64_t{c}));
      for (auto it = begin; it != end; ++it) {
        const Digest& digest = capture_.digests[it->second];
        std::string_view bytes(memory(digest.buffer).bytes() + digest.begin,
                               static_cast<size_t>(digest.end - digest.begin));
        ++result_.checked;
        if (options_.on_output) options_.on_output(digest, bytes);
        if (to_hex(hash_bytes(bytes)) == digest.digest || has_differed_) continue;
        has_differed_ = true;
        const Command& command = list.commands[c];
        result_.differences.push_back(
            {pass_, list.first_number + int64_t{c}, command.op, command.label, digest.buffer});
      }
    }
  }

  // --- commands that are plain data ---

  double play_commands(const List& list, const Op& op) {
    exec::Queue& queue = streams_.at(list.stream);
    const Command& first = list.commands[op.first_command];
    for (uint32_t c = op.first_command; c < op.first_command + op.command_count; ++c) {
      for (const Binding& binding : list.commands[c].bindings) memory(binding.buffer);
    }
    exec::Target& target = exec::target_of(queue.stream());
    std::vector<Ref<exec::Pipeline>> pipelines;
    for (uint32_t c = op.first_command; c < op.first_command + op.command_count; ++c) {
      const Command& command = list.commands[c];
      pipelines.push_back(
          command.kind == Command::Kind::dispatch ? pipeline(command.pipeline, target) : nullptr);
    }
    auto start = std::chrono::steady_clock::now();
    label::Label label;
    if (!first.label.empty()) label = std::make_shared<const std::string>(first.label);
    {
      exec::Queue::Transaction transaction(queue, op_name(first.op), label, {});
      for (uint32_t c = 0; c < op.command_count; ++c) {
        add(list, op, queue, list.commands[op.first_command + c], pipelines[c].get());
      }
      transaction.commit();
    }
    queue.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // Names of ops are literals elsewhere: they must live as long.
  static const char* op_name(const std::string& name) {
    static sync::Mutex mutex;
    static auto* names = new std::set<std::string>;
    std::lock_guard guard(mutex);
    return names->insert(name).first->c_str();
  }

  void add(const List& list, const Op& op, exec::Queue& queue, const Command& command,
           const exec::Pipeline* kernel) {
    // In their order, so that places keep their indices.
    for (const Binding& binding : command.bindings) {
      queue.bind(memory(binding.buffer).buffer(), binding.begin, binding.end, binding.begin,
                 binding.writes);
    }
    if (command.kind == Command::Kind::dispatch) {
      dispatch(list, op, queue, command, *kernel);
      return;
    }
    if (command.kind == Command::Kind::native) {
      fail(list, op, "a native command cannot be replayed as data");
    }
    void* pattern = nullptr;
    if (command.kind == Command::Kind::fill) {
      pattern = queue.parameters(command.pattern.size(), 16);
      std::memcpy(pattern, command.pattern.data(), command.pattern.size());
    }
    exec::Command& made = queue.begin_command();
    made.kind = command.kind;
    made.detail = op_name(command.detail);
    made.work = std::max<int64_t>(command.work, 0);
    made.bytes = static_cast<size_t>(command.bytes);
    made.source = {command.source.binding, command.source.offset};
    made.target = {command.target.binding, command.target.offset};
    made.pattern = pattern;
    made.pattern_size = static_cast<uint16_t>(command.pattern.size());
    queue.end_command();
  }

  void dispatch(const List& list, const Op& op, exec::Queue& queue, const Command& command,
                const exec::Pipeline& kernel) {
    const std::vector<msl::KernelArgument>& arguments = kernel.interface().arguments;
    if (arguments.size() != command.arguments.size()) {
      fail(list, op,
           "its kernel has " + std::to_string(arguments.size()) + " arguments, the dispatch " +
               std::to_string(command.arguments.size()));
    }
    std::vector<exec::BoundSlot> slots;
    std::vector<uint32_t> threadgroup_bytes;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const uint32_t slot = arguments[i].slot;
      if (arguments[i].kind == msl::KernelArgument::Kind::threadgroup) {
        threadgroup_bytes.resize(std::max(threadgroup_bytes.size(), slot + size_t{1}));
        threadgroup_bytes[slot] = command.arguments[i].bytes;
      } else {
        slots.push_back(slot_of(command, slot, command.arguments[i]));
      }
    }
    exec::DispatchSize size;
    std::copy(std::begin(command.grid), std::end(command.grid), size.grid);
    std::copy(std::begin(command.threadgroup), std::end(command.threadgroup), size.threadgroup);
    exec::add_dispatch(queue, kernel, slots, size, threadgroup_bytes,
                       std::max<int64_t>(command.work, 0));
  }

  // What is bound around the place of an argument: the file does not say which binding is its own.
  // An argument with neither a place nor a value is an array without elements.
  exec::BoundSlot slot_of(const Command& command, uint32_t index, const Argument& argument) {
    exec::BoundSlot slot;
    slot.slot = index;
    if (!argument.errors.empty()) {
      slot.errors = argument.errors;
      slot.end = sizeof(exec::ErrorReport);
      return slot;
    }
    const Place& place = argument.place;
    if (place.buffer == 0) {
      slot.bytes = argument.value.data();
      slot.end = static_cast<int64_t>(argument.value.size());
      return slot;
    }
    slot.buffer = memory(place.buffer).buffer();
    slot.binding = place.binding;
    slot.start = slot.begin = slot.end = place.offset;
    slot.is_input = true;
    for (const Binding& binding : command.bindings) {
      if (binding.buffer != place.buffer || binding.begin > place.offset ||
          binding.end <= place.offset) {
        continue;
      }
      slot.begin = std::min(slot.begin, binding.begin);
      slot.end = std::max(slot.end, binding.end);
      slot.is_input = slot.is_input && !binding.writes;
    }
    // At the end of what is bound: no elements either.
    if (slot.begin == slot.end) slot.binding = Bound::nothing;
    return slot;
  }

  Ref<exec::Pipeline> pipeline(uint64_t id, exec::Target& target) {
    auto found = pipelines_.find({id, &target});
    if (found != pipelines_.end()) return found->second;
    const Pipeline& recorded = capture_.pipelines.at(id);
    exec::KernelOptions options = exec::user_kernel_options();
    options.variant = recorded.variant;
    Ref<const exec::KernelRequest> request =
        make_ref<exec::KernelRequest>(source_of(recorded), options, target);
    return pipelines_.emplace(std::pair(id, &target), exec::KernelLibrary::get().get(request))
        .first->second;
  }

  // --- ops that are called again ---

  array view_of(const List& list, const Op& op, const OpView& view) {
    size_t item = view.dtype.size();
    bool is_empty = std::any_of(view.shape.begin(), view.shape.end(), [](int n) { return n == 0; });
    if (view.buffer == 0 || is_empty) return zeros(view.shape, view.dtype);
    if (view.offset < 0 || view.offset % static_cast<int64_t>(item) != 0) {
      fail(list, op, "an input starts between two elements");
    }
    array all = memory(view.buffer).elements(view.dtype);
    return as_strided(all, view.shape, view.strides, static_cast<size_t>(view.offset) / item,
                      streams_.at(list.stream).stream());
  }

  double call(const List& list, const Op& op, const OpNote& note) {
    std::vector<array> values;
    for (const OpView& view : note.inputs) values.push_back(view_of(list, op, view));
    eval(values);
    std::vector<array> results;
    auto start = std::chrono::steady_clock::now();
    try {
      for (const OpNote::Call& recorded : note.calls) {
        RecordedCall again{{}, {}, {}, streams_.at(list.stream).stream()};
        for (uint32_t operand : recorded.operands) again.inputs.push_back(values.at(operand));
        for (const OpNote::Result& result : recorded.results) {
          again.shapes.push_back(result.shape);
          again.dtypes.push_back(result.dtype);
        }
        std::vector<array> made = call_again(recorded.record, again);
        if (made.size() != recorded.results.size()) {
          throw std::invalid_argument("it gave another number of results");
        }
        for (array& result : made) {
          values.push_back(result);
          results.push_back(result);
        }
      }
      std::vector<array> wanted;
      for (const OpNote::Output& output : note.outputs) {
        wanted.push_back(results.at(static_cast<size_t>(output.result)));
      }
      eval(wanted);
    } catch (const OutOfMemory&) {
      throw;
    } catch (const std::exception& error) {
      fail(list, op, std::string("calling it again: ") + error.what());
    }
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (const OpNote::Output& output : note.outputs) {
      store(list, op, results[static_cast<size_t>(output.result)], output.view);
    }
    return seconds;
  }

  // Writes a result where its op wrote it then, with the same strides.
  void store(const List& list, const Op& op, const array& result, const OpView& view) {
    if (result.size() == 0) return;
    if (result.shape() != view.shape || result.dtype() != view.dtype ||
        view.strides.size() != view.shape.size() || view.buffer == 0) {
      fail(list, op, "its result has another shape or dtype");
    }
    array dense = contiguous(result);
    eval(dense);
    const char* from = dense.data<char>();
    size_t item = dense.itemsize();
    Memory& into = memory(view.buffer);
    __int128 low = view.offset, high = view.offset;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      __int128 reach =
          static_cast<__int128>(view.shape[i] - 1) * view.strides[i] * static_cast<__int128>(item);
      (reach < 0 ? low : high) += reach;
    }
    if (low < 0 || high + static_cast<__int128>(item) >
                       static_cast<__int128>(capture_.buffers.at(view.buffer).size)) {
      fail(list, op, "its result does not fit its buffer");
    }
    char* to = into.bytes() + view.offset;
    if (dense.strides() == view.strides || view.shape.empty()) {
      std::memcpy(to, from, dense.nbytes());
      return;
    }
    std::vector<int> index(view.shape.size(), 0);
    for (size_t n = 0; n < dense.size(); ++n) {
      int64_t at = 0;
      for (size_t i = 0; i < index.size(); ++i) at += index[i] * view.strides[i];
      std::memcpy(to + at * static_cast<int64_t>(item), from + n * item, item);
      for (size_t i = index.size(); i-- > 0;) {
        if (++index[i] < view.shape[i]) break;
        index[i] = 0;
      }
    }
  }

  const Capture& capture_;
  const ReplayOptions& options_;
  ReplayResult& result_;
  Streams streams_;
  std::vector<std::vector<OpNote>> notes_;  // by list and op
  std::unordered_map<uint64_t, int64_t> last_use_;
  std::vector<std::pair<int64_t, uint64_t>> ends_;  // after which command which buffer ends, sorted
  std::unordered_multimap<uint64_t, size_t> first_contents_;
  std::multimap<std::pair<int64_t, int64_t>, size_t> contents_, digests_;
  std::unordered_map<uint64_t, Memory> memory_;
  std::unordered_map<int64_t, std::string> blobs_;
  size_t blob_bytes_ = 0;
  std::map<std::pair<uint64_t, exec::Target*>, Ref<exec::Pipeline>> pipelines_;
  int64_t pass_ = 0;
  bool has_differed_ = false;
  double seconds_ = 0;
};

}  // namespace

ReplayResult replay(const Capture& capture, const ReplayOptions& options) {
  if (std::string reason = capture.why_not(); !reason.empty()) {
    throw std::runtime_error("[replay] " + capture.name + " cannot be replayed: " + reason);
  }
  StreamContext on_cpu(holdfast::Device::cpu);
  // The state of the queues, once: every queue of ours has the sets that there are.
  memory::Scope scope({.memory = {}, .cache = {}, .wired = capture.number("wired limit")});
  auto& sets = metal::residency_sets();
  size_t previous = sets.max_bytes_per_set();
  if (uint64_t cap = capture.number("max bytes per set")) sets.set_max_bytes_per_set(cap);
  struct Restore {
    size_t value;
    ~Restore() { metal::residency_sets().set_max_bytes_per_set(value); }
  } restore{previous};

  ReplayResult result;
  Player player(capture, options, result);
  for (int64_t pass = 1; pass <= options.passes; ++pass) {
    player.play(pass);
    result.passes = pass;
  }
  return result;
}

}  // namespace holdfast::capture
