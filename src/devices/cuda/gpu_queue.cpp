#include "devices/cuda/gpu_queue.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/environment.h"
#include "base/fault.h"
#include "devices/command_failures.h"
#include "devices/cuda/outside_access.h"
#include "devices/error_report.h"

namespace holdfast::cuda {
namespace {

using exec::Binding;
using exec::Command;
using exec::CommandList;
using exec::Failure;

// With fewer commands a launch of each costs less than a graph.
constexpr size_t smallest_graph = 4;
constexpr size_t alignment_of_bytes = 16;

size_t round_up(size_t bytes) {
  return (bytes + alignment_of_bytes - 1) / alignment_of_bytes * alignment_of_bytes;
}

const exec::Storage& storage_of(const CommandList& list, const Command& command,
                                const exec::Place& place) {
  return *list.bindings[command.first_binding + place.binding].storage;
}

Address address_of(const CommandList& list, const Command& command, const exec::Place& place) {
  if (place.binding == Bound::nothing) return 0;
  return reinterpret_cast<Address>(storage_of(list, command, place).address) +
         static_cast<Address>(place.offset);
}

bool is_upload(const CommandList& list, const Command& command) {
  return command.kind == Command::Kind::copy &&
         storage_of(list, command, command.source).space->is_host();
}

const GpuKernel& kernel_of(const Command& command) {
  return static_cast<const GpuKernel&>(*command.pipeline);
}

}  // namespace

GpuQueue::GpuQueue(exec::Device& device, Gpu& gpu)
    : DeviceQueue(device),
      gpu_(gpu),
      stream_(gpu),
      other_(gpu),
      words_(gpu, 64),
      graphs_(std::make_unique<GraphCache>(gpu)) {
  std::memset(words_.bytes(), 0, 64);
}

GpuQueue::~GpuQueue() {
  if (!gpu_.can_release() || !gpu_.try_to_use()) return;
  gpu_.driver().synchronize_stream.attempt(stream_);
  for (ListMemory& memory : spare_) gpu_.driver().release.attempt(memory.device);
}

uint64_t* GpuQueue::executed_word() const { return reinterpret_cast<uint64_t*>(words_.bytes()); }
uint32_t* GpuQueue::cancelled_word() const {
  return reinterpret_cast<uint32_t*>(words_.bytes() + 8);
}

uint64_t GpuQueue::executed_by_gpu() const {
  sync::yield_point();
  return std::max(std::atomic_ref(*executed_word()).load(std::memory_order_acquire),
                  ended_.load(std::memory_order_acquire));
}

// --- failures ---

void GpuQueue::fail(LaunchedList& launched, uint32_t index, const Ref<Failure>& failure) noexcept {
  CommandList& list = *launched.list;
  const Command& command = list.commands[index];
  exec::fail_outputs(list, command, failure);
  try {
    for (auto bindings : {exec::bindings_of(list, command), exec::bindings_of_op(list, command)}) {
      for (const Binding& binding : bindings) {
        if (binding.writes) launched.failed.push_back({binding.buffer, index});
      }
    }
  } catch (const std::bad_alloc&) {
    // Commands that read one of them before it was written may fail as well then.
  }
}

bool GpuQueue::may_run(LaunchedList& launched, uint32_t index) noexcept {
  CommandList& list = *launched.list;
  Ref<Failure> failure = exec::reason_not_to_run(list, list.commands[index]);
  if (!failure && fault::hit(fault::Point::dispatch)) {
    failure = Failure::make(Failure::Kind::execution, list.commands[index].op,
                            list.commands[index].label.get(), "injected failure of a dispatch");
    list.failed(list, list.commands[index], failure);
  }
  if (failure) fail(launched, index, failure);
  return !failure;
}

// Commands that have run already fail as well: what they did is not known.
void GpuQueue::fail_all(LaunchedList& launched, const char* what) noexcept {
  CommandList& list = *launched.list;
  const Ref<Failure> loss = gpu_.loss();
  for (uint32_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    Ref<Failure> failure =
        loss ? loss
             : Failure::make(Failure::Kind::execution, command.op, command.label.get(), what);
    exec::fail_outputs(list, command, failure);
    list.failed(list, command, failure);
  }
}

Ref<Failure> GpuQueue::inherited(const LaunchedList& launched, uint32_t index) const noexcept {
  const CommandList& list = *launched.list;
  const Command& command = list.commands[index];
  for (auto bindings : {exec::bindings_of(list, command), exec::bindings_of_op(list, command)}) {
    for (const Binding& binding : bindings) {
      if (binding.writes) continue;
      Failure* failure = binding.buffer->failure();
      if (!failure) continue;
      // What this list failed to write later, the command has read before.
      auto by = std::find_if(launched.failed.begin(), launched.failed.end(),
                             [&](const auto& one) { return one.buffer == binding.buffer; });
      if (by == launched.failed.end() || by->command < index) return Ref<Failure>(failure);
    }
  }
  return nullptr;
}

// What the command's own kernel has reported.
Ref<Failure> GpuQueue::new_failure(LaunchedList& launched, uint32_t index) noexcept {
  const Command& command = launched.list->commands[index];
  auto make = [&](const std::string& text) {
    return Failure::make(Failure::Kind::execution, command.op, command.label.get(), text.c_str());
  };
  try {
    for (; next_settled_report_ < launched.reports.size(); ++next_settled_report_) {
      const LaunchedList::Report& report = launched.reports[next_settled_report_];
      if (report.command > index) break;
      const char* at = launched.memory.host->bytes() + report.place;
      if (report.argument == LaunchedList::Report::no_argument) {
        const std::string text = text_of(*reinterpret_cast<const GuardReport*>(at),
                                         kernel_of(command), *command.dispatch);
        if (!text.empty()) return make(text);
      } else {
        const auto& error = *reinterpret_cast<const exec::ErrorReport*>(at);
        if (error.code != 0)
          return make(exec::message_of(error, command.dispatch->arguments[report.argument].errors));
      }
    }
  } catch (...) {
    return Failure::emergency();
  }
  if (command.kind == Command::Kind::dispatch &&
      stopped_.load(std::memory_order_relaxed) >= launched.list->serial &&
      kernel_of(command).can_be_cancelled()) {
    const bool is_cancelled = cancelled.load(std::memory_order_relaxed) >= launched.list->serial;
    return Failure::make(is_cancelled ? Failure::Kind::cancelled : Failure::Kind::execution,
                         command.op, command.label.get(),
                         is_cancelled ? "cancelled while it ran"
                                      : "was stopped: it ran longer than HOLDFAST_KERNEL_TIMEOUT");
  }
  return nullptr;
}

void GpuQueue::settle(LaunchedList& launched) noexcept {
  CommandList& list = *launched.list;
  if (gpu_.is_lost() && executed_by_gpu() < list.serial) {
    fail_all(launched, "the GPU is lost");
  } else {
    next_settled_report_ = 0;
    for (uint32_t i = 0; i < list.commands.size(); ++i) {
      Ref<Failure> failure = inherited(launched, i);
      const bool is_new = !failure;
      if (!failure) failure = new_failure(launched, i);
      if (!failure) continue;
      fail(launched, i, failure);
      if (is_new) list.failed(list, list.commands[i], failure);
    }
  }
  // What polled was stopped; lists after this one go on.
  if (stopped_.load(std::memory_order_relaxed) >= list.serial)
    std::atomic_ref(*cancelled_word()).store(0);
  if (!launched.memory.host) return;
  std::lock_guard guard(spare_lock_);
  spare_.push_back(
      std::exchange(launched.memory, {}));  // its capacity was reserved when it was made
}

void GpuQueue::look_after(LaunchedList& oldest, bool asks_driver) noexcept {
  const uint64_t serial = oldest.list->serial;
  if (asks_driver && gpu_.try_to_use()) {
    const int code = gpu_.driver().query_stream.attempt(stream_);
    if (code == result::deinitialized) gpu_.lose("the process is exiting");
    if (Error::is_sticky(code)) {
      try {
        gpu_.driver().fail(gpu_.driver().query_stream.name, code);
      } catch (const std::exception& error) {
        gpu_.look_at(error);
      }
    }
  }
  const double limit = environment::settings().kernel_timeout;
  const bool is_late =
      limit > 0 && std::chrono::duration<double>(sync::now() - oldest.launched).count() > limit;
  if ((is_late || cancelled.load(std::memory_order_relaxed) >= serial) &&
      stopped_.load(std::memory_order_relaxed) < serial) {
    stopped_.store(serial);
    std::atomic_ref(*cancelled_word()).store(1);
  }
}

// --- launching ---

void GpuQueue::launch(LaunchedList& launched) noexcept {
  CommandList& list = *launched.list;
  try {
    if (gpu_.is_lost()) gpu_.throw_loss();
    gpu_.use();
    wait_for_others(list);
    if (list.observers) {
      launch_alone(launched);
    } else {
      encode(launched);
    }
  } catch (const std::exception& error) {
    gpu_.look_at(error);
    fail_all(launched, error.what());
  }
  segment_.clear();
  launched.launched = sync::now();
  // Also where commands have failed: what was launched before them may run still.
  if (!gpu_.is_lost() && gpu_.driver().write_value.attempt(stream_, words_.address(), list.serial,
                                                           0) == result::success)
    return;
  if (!gpu_.is_lost()) {
    const int code = gpu_.driver().synchronize_stream.attempt(stream_);
    if (code != result::success) gpu_.lose("the driver does not answer");
    fail_all(launched, "the driver refused to note the end of the list");
  }
  ended_.store(list.serial, std::memory_order_release);
}

void GpuQueue::wait_for_others(const CommandList& list) {
  for (const exec::Stamp& wait : list.waits) {
    if (&wait.queue->device != &device || wait.queue == this) continue;
    auto& other = static_cast<GpuQueue&>(*wait.queue);
    if (other.executed_by_gpu() >= wait.serial) continue;
    // More than needed may be waited for: all that the other stream has been given by now. None of
    // that waits for this list, which has not been launched.
    gpu_.driver().record_event(other_, other.stream_);
    gpu_.driver().wait_event(stream_, other_, 0);
  }
}

// The layout of the parameters of the image that the dispatch takes.
const ParameterLayout& GpuQueue::choose_image(const CommandList& list, uint32_t index) {
  const Command& command = list.commands[index];
  const exec::Dispatch& dispatch = *command.dispatch;
  addresses_.assign(dispatch.argument_count, 0);
  for (uint32_t i = 0; i < dispatch.argument_count; ++i) {
    if (!dispatch.arguments[i].bytes)
      addresses_[i] = address_of(list, command, dispatch.arguments[i].place);
  }
  image_of_.resize(list.commands.size());
  image_of_[index] = static_cast<uint8_t>(kernel_of(command).choose(dispatch, addresses_.data()));
  return kernel_of(command).layout(image_of_[index]);
}

// Bytes of `memory` for the reports of the list, which come first, and for inline bytes that its
// kernels take by address.
size_t GpuQueue::plan_memory(LaunchedList& launched, const std::vector<bool>& runs) {
  CommandList& list = *launched.list;
  size_t reports = 0, bytes = 0;
  launched.reports.clear();
  for (uint32_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    if (!runs[i] || command.kind != Command::Kind::dispatch) continue;
    const exec::Dispatch& dispatch = *command.dispatch;
    const GpuKernel& kernel = kernel_of(command);
    const ParameterLayout& layout = choose_image(list, i);
    for (uint32_t k = 0; k < dispatch.argument_count; ++k) {
      const exec::DispatchArgument& argument = dispatch.arguments[k];
      if (!argument.errors.empty()) {
        launched.reports.push_back({i, k, reports});
        reports += round_up(sizeof(exec::ErrorReport));
      } else if (argument.bytes && layout.inline_places[k] == 0) {
        bytes += round_up(dispatch.threadgroup_bytes[k]);
      }
    }
    if (kernel.is_guarded()) {
      launched.reports.push_back({i, LaunchedList::Report::no_argument, reports});
      reports += round_up(sizeof(GuardReport));
    }
  }
  used_report_bytes_ = reports;
  return reports + bytes;
}

void GpuQueue::take_memory(LaunchedList& launched, size_t bytes) {
  {
    std::lock_guard guard(spare_lock_);
    for (ListMemory& memory : spare_) {
      if (memory.capacity < bytes) continue;
      launched.memory = std::move(memory);
      memory = std::move(spare_.back());
      spare_.pop_back();
      return;
    }
    spare_.reserve(++memories_);  // for all that there ever were
  }
  ListMemory made;
  made.capacity = std::bit_ceil(std::max(bytes, size_t{64} << 10));
  made.host = std::make_unique<PinnedMemory>(gpu_, made.capacity);
  gpu_.driver().allocate(&made.device, made.capacity);
  launched.memory = std::move(made);
}

void GpuQueue::encode(LaunchedList& launched) {
  CommandList& list = *launched.list;
  const auto count = static_cast<uint32_t>(list.commands.size());
  std::vector<bool> runs(count);
  for (uint32_t i = 0; i < count; ++i) runs[i] = may_run(launched, i);
  if (const size_t bytes = plan_memory(launched, runs)) {
    take_memory(launched, bytes);
    std::memset(launched.memory.host->bytes(), 0, used_report_bytes_);
  }
  // Bytes that kernels take by address are copied before the first of them.
  next_report_ = 0;
  next_byte_ = used_report_bytes_;
  if (launched.memory.host) {
    size_t at = next_byte_;
    for (uint32_t i = 0; i < count; ++i) {
      const Command& command = list.commands[i];
      if (!runs[i] || command.kind != Command::Kind::dispatch) continue;
      const exec::Dispatch& dispatch = *command.dispatch;
      const ParameterLayout& layout = kernel_of(command).layout(image_of_[i]);
      for (uint32_t k = 0; k < dispatch.argument_count; ++k) {
        const exec::DispatchArgument& argument = dispatch.arguments[k];
        if (!argument.bytes || !argument.errors.empty() || layout.inline_places[k] != 0) continue;
        std::memcpy(launched.memory.host->bytes() + at, argument.bytes,
                    dispatch.threadgroup_bytes[k]);
        at += round_up(dispatch.threadgroup_bytes[k]);
      }
    }
    if (at > next_byte_)
      gpu_.driver().copy_in(launched.memory.device + next_byte_,
                            launched.memory.host->bytes() + next_byte_, at - next_byte_, stream_);
  }
  // Uploads that nothing of the list comes before go first, so that they cut nothing in two.
  for (uint32_t i = 0; i < count; ++i) {
    const Command& command = list.commands[i];
    if (runs[i] && command.edge_count == 0 && is_upload(list, command)) add_upload(list, command);
  }
  nodes_of_.assign(count, {0, 0});
  for (uint32_t i = 0; i < count; ++i) {
    const Command& command = list.commands[i];
    if (!runs[i]) continue;
    if (!is_upload(list, command)) {
      add_node(launched, i);
    } else if (command.edge_count > 0) {
      launch_segment();
      nodes_of_.assign(count, {0, 0});
      add_upload(list, command);
    }
  }
  launch_segment();
}

// One command at a time, which the observers see before and after.
void GpuQueue::launch_alone(LaunchedList& launched) {
  CommandList& list = *launched.list;
  std::vector<bool> runs;
  gpu_.driver().synchronize_stream(stream_);
  for (uint32_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    for (auto* o = list.observers; o; o = o->next) o->before(list, i);
    bool is_good = may_run(launched, i);
    if (is_good) {
      runs.assign(list.commands.size(), false);
      runs[i] = true;
      if (is_upload(list, command)) {
        add_upload(list, command);
      } else {
        nodes_of_.assign(list.commands.size(), {0, 0});
        if (const size_t bytes = plan_memory(launched, runs)) {
          if (launched.memory.capacity < bytes) {
            if (launched.memory.host) {
              std::lock_guard guard(spare_lock_);
              spare_.push_back(std::exchange(launched.memory, {}));
            }
            take_memory(launched, bytes);
          }
          std::memset(launched.memory.host->bytes(), 0, bytes);
          next_report_ = 0;
          next_byte_ = used_report_bytes_;
        }
        add_node(launched, i);
        if (launched.memory.host && next_byte_ > used_report_bytes_)
          gpu_.driver().copy_in(launched.memory.device, launched.memory.host->bytes(), next_byte_,
                                stream_);
        launch_segment();
      }
      gpu_.driver().synchronize_stream(stream_);
      next_report_ = 0;
      if (Ref<Failure> failure = new_failure(launched, i)) {
        is_good = false;
        fail(launched, i, failure);
        list.failed(list, command, failure);
      }
      launched.reports.clear();
    }
    for (auto* o = list.observers; o; o = o->next) o->after(list, i, !is_good);
  }
}

void GpuQueue::add_upload(const CommandList& list, const Command& command) {
  if (!staging_) staging_ = std::make_unique<Staging>(gpu_, stream_);
  staging_->upload(address_of(list, command, command.target),
                   storage_of(list, command, command.source).bytes + command.source.offset,
                   command.bytes);
}

void GpuQueue::add_node(LaunchedList& launched, uint32_t index) {
  const CommandList& list = *launched.list;
  const Command& command = list.commands[index];
  const auto first = static_cast<uint32_t>(segment_.nodes.size());
  if (command.kind == Command::Kind::fill) {
    add_fill(list, command);
  } else if (command.kind == Command::Kind::copy) {
    if (command.bytes > 0) {
      Segment::Node& node = segment_.nodes.emplace_back();
      node.kind = Segment::Kind::copy;
      node.copy = {address_of(list, command, command.target),
                   address_of(list, command, command.source), command.bytes};
    }
  } else if (command.kind == Command::Kind::dispatch) {
    segment_.nodes.emplace_back().kind = Segment::Kind::kernel;
    add_kernel(launched, index, segment_.nodes.back());
  } else {
    throw std::logic_error("a GPU runs no native commands");
  }
  nodes_of_[index] = {first, static_cast<uint32_t>(segment_.nodes.size()) - first};
  for (uint32_t n = first; n < segment_.nodes.size(); ++n) {
    Segment::Node& node = segment_.nodes[n];
    node.first_edge = static_cast<uint32_t>(segment_.edges.size());
    for (uint32_t e = 0; e < command.edge_count; ++e) {
      const NodesOf before = nodes_of_[list.edges[command.first_edge + e].predecessor];
      for (uint32_t i = 0; i < before.count; ++i) {
        const uint32_t edge = before.first + i;
        auto begin = segment_.edges.begin() + node.first_edge;
        if (std::find(begin, segment_.edges.end(), edge) == segment_.edges.end())
          segment_.edges.push_back(edge);
      }
    }
    node.edge_count = static_cast<uint32_t>(segment_.edges.size()) - node.first_edge;
  }
}

// The GPU fills with 1, 2 or 4 bytes: a longer pattern is as many fills of rows of 4.
void GpuQueue::add_fill(const CommandList& list, const Command& command) {
  const Address target = address_of(list, command, command.target);
  const size_t size = command.pattern_size;
  if (command.bytes == 0) return;
  const bool has_rows = size > 4;
  for (size_t at = 0; at < (has_rows ? size : 1); at += 4) {
    Segment::Node& node = segment_.nodes.emplace_back();
    node.kind = Segment::Kind::fill;
    uint32_t value = 0;
    std::memcpy(&value, static_cast<const char*>(command.pattern) + at,
                std::min<size_t>(size - at, 4));
    if (has_rows) {
      node.fill = {target + at, size, 1, command.bytes / size, value, 4};
    } else {
      node.fill = {target, 0, command.bytes / size, 1, value, static_cast<uint32_t>(size)};
    }
  }
}

void GpuQueue::add_kernel(LaunchedList& launched, uint32_t index, Segment::Node& node) {
  const CommandList& list = *launched.list;
  const Command& command = list.commands[index];
  const exec::Dispatch& dispatch = *command.dispatch;
  const GpuKernel& kernel = kernel_of(command);
  const size_t image = image_of_[index];
  const ParameterLayout& layout = kernel.layout(image);
  const size_t first = (segment_.parameters.size() + 15) / 16 * 16;
  segment_.parameters.resize(first + layout.bytes);
  char* block = segment_.parameters.data() + first;
  auto put = [&](size_t at, const auto& value) { std::memcpy(block + at, &value, sizeof(value)); };
  size_t shared_bytes = 0;
  for (uint32_t i = 0; i < dispatch.argument_count; ++i) {
    const exec::DispatchArgument& argument = dispatch.arguments[i];
    if (kernel.interface().arguments[i].kind == msl::KernelArgument::Kind::threadgroup) {
      put(8 * i, uint64_t{shared_bytes});
      shared_bytes += round_up(dispatch.threadgroup_bytes[i]);
      continue;
    }
    Address address = 0;
    if (!argument.errors.empty()) {
      address = launched.memory.host->address() + launched.reports[next_report_++].place;
    } else if (!argument.bytes) {
      address = address_of(list, command, argument.place);
    } else if (layout.inline_places[i] != 0) {
      std::memcpy(block + layout.inline_places[i], argument.bytes, dispatch.threadgroup_bytes[i]);
    } else {
      address = launched.memory.device + next_byte_;
      if (list.observers)
        std::memcpy(launched.memory.host->bytes() + next_byte_, argument.bytes,
                    dispatch.threadgroup_bytes[i]);
      next_byte_ += round_up(dispatch.threadgroup_bytes[i]);
    }
    put(8 * i, address);
  }
  LaunchParameters parameters{};
  if (kernel.can_be_cancelled()) parameters.cancelled = words_.address() + 8;
  for (int axis = 0; axis < 3; ++axis) {
    parameters.grid[axis] = dispatch.grid[axis];
    parameters.threadgroup[axis] = dispatch.threadgroup[axis];
    parameters.groups[axis] =
        (dispatch.grid[axis] + dispatch.threadgroup[axis] - 1) / dispatch.threadgroup[axis];
  }
  put(layout.launch, parameters);
  if (layout.guard != 0) {
    const Address report = launched.memory.host->address() + launched.reports[next_report_++].place;
    put(layout.guard, GuardParameters{report, 0});
    std::memcpy(block + layout.guard + sizeof(GuardParameters), dispatch.ranges,
                dispatch.argument_count * sizeof(exec::ArgumentRange));
  }
  node.kernel.pipeline = &kernel;
  node.kernel.function = kernel.function(image);
  node.kernel.shape = kernel.shape(image, dispatch);
  node.kernel.shared_bytes = static_cast<uint32_t>(shared_bytes);
  node.kernel.first_byte = static_cast<uint32_t>(first);
  node.kernel.byte_count = layout.bytes;
}

void GpuQueue::launch_segment() {
  if (segment_.nodes.size() < smallest_graph) {
    segment_.launch(gpu_.driver(), stream_);
  } else {
    graphs_->launch(segment_, stream_);
  }
  segment_.clear();
}

}  // namespace holdfast::cuda
