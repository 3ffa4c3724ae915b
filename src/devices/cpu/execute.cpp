#include "devices/cpu/execute.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "base/fault.h"
#include "devices/command_failures.h"
#include "devices/cpu/jit/kernel_checker.h"
#include "devices/cpu/jit_kernel.h"
#include "devices/device.h"
#include "devices/error_report.h"

namespace holdfast::exec {
namespace {

constexpr int64_t copy_chunk = int64_t{1} << 20;

// One floating-point mode for all work, whatever the calling thread has set: round to nearest, keep
// denormals, no traps.
class FloatMode {
 public:
#if defined(__SSE2__)
  FloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~FloatMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#else
  FloatMode() {}
#endif
};

// The address of what the command names; null for an array without elements.
char* resolve(const CommandList& list, const Command& command, const Place& place) {
  if (place.binding == Bound::nothing) return nullptr;
  const Binding& binding = list.bindings[command.first_binding + place.binding];
  return binding.storage->bytes + place.offset;
}

// A copy or a fill being run, shared by the threads that help.
struct RunningCopy {
  const Command& command;
  const char* source;  // of a fill: null
  char* target;
};

void run_copy(void* parameters, int64_t begin, int64_t end) {
  const RunningCopy& running = *static_cast<const RunningCopy*>(parameters);
  size_t from = static_cast<size_t>(begin * copy_chunk);
  size_t to = std::min(running.command.bytes, static_cast<size_t>(end * copy_chunk));
  std::memcpy(running.target + from, running.source + from, to - from);
}

void run_fill(void* parameters, int64_t begin, int64_t end) {
  const RunningCopy& running = *static_cast<const RunningCopy*>(parameters);
  const Command& c = running.command;
  size_t from = static_cast<size_t>(begin * copy_chunk);
  size_t to = std::min(c.bytes, static_cast<size_t>(end * copy_chunk));
  char* target = running.target;
  if (c.pattern_size == 1) {
    std::memset(target + from, *static_cast<const char*>(c.pattern), to - from);
    return;
  }
  // A block of the pattern, then the block over and over. Chunks are multiples of every item size.
  alignas(64) char block[4096];
  for (size_t i = 0; i < sizeof(block); i += c.pattern_size)
    std::memcpy(block + i, c.pattern, c.pattern_size);
  for (size_t i = from; i < to; i += sizeof(block)) {
    std::memcpy(target + i, block, std::min(sizeof(block), to - i));
  }
}

// Where one side of a copy is in memory that these cores do not reach, its space copies.
bool copy_between_spaces(const CommandList& list, const Command& command) {
  const Binding* bindings = list.bindings.data() + command.first_binding;
  Storage& from = *bindings[command.source.binding].storage;
  Storage& to = *bindings[command.target.binding].storage;
  const auto source = static_cast<size_t>(command.source.offset);
  const auto target = static_cast<size_t>(command.target.offset);
  if (!from.bytes) {
    from.space->read(from, source, to.bytes + target, command.bytes);
  } else if (!to.bytes) {
    to.space->write(to, target, from.bytes + source, command.bytes);
  }
  return !from.bytes || !to.bytes;
}

int64_t threads_of_group(const Dispatch& dispatch) {
  const uint32_t* size = dispatch.threadgroup;
  return int64_t{size[0]} * size[1] * size[2];
}

// A dispatch being run, shared by the threads that help.
struct RunningDispatch {
  const CpuKernel& kernel;
  jit::DispatchArguments arguments;
};

void run_some_groups(void* parameters, int64_t begin, int64_t end) {
  const RunningDispatch& running = *static_cast<const RunningDispatch*>(parameters);
  auto start = sync::now();
  running.kernel.run_groups(running.arguments, begin, end);
  running.kernel.has_run(end - begin, sync::now() - start);
}

// What an argument may touch, by what was bound to it.
jit::KernelChecker::Buffer bound_to(const Dispatch& dispatch, const msl::KernelArgument& argument) {
  const BoundSlot* end = dispatch.slots + dispatch.slot_count;
  const BoundSlot* slot =
      std::find_if(dispatch.slots, end, [&](auto& one) { return one.slot == argument.slot; });
  if (slot == end) return {};
  return {static_cast<uint64_t>(slot->end - slot->start),
          static_cast<uint64_t>(slot->start - slot->begin), slot->has_contents};
}

// A small dispatch runs its groups one after the other, so that the same is found each time. Of a
// large one, which of two groups comes first is luck, and with it which of two sides of a race
// between them is told first.
constexpr int64_t threads_to_check_alone = 16384;

Ref<Failure> run_checked(const CommandList& list, const Command& command, RunningDispatch& running,
                         TaskRunner& runner) {
  const auto& kernel = static_cast<const JitKernel&>(running.kernel);
  const Dispatch& dispatch = *command.dispatch;
  const std::vector<msl::KernelArgument>& arguments = kernel.interface().arguments;
  std::vector<jit::KernelChecker::Buffer> buffers(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind == msl::KernelArgument::Kind::threadgroup) continue;
    buffers[i] = bound_to(dispatch, arguments[i]);
  }
  const int64_t groups = threadgroups_of(dispatch);
  const int64_t threads = threads_of_group(dispatch);
  const bool is_shared =
      groups * threads > threads_to_check_alone && !kernel.pipeline().kernel().has_fences;
  jit::KernelChecker checker(kernel.pipeline(), std::move(buffers), dispatch.addresses, is_shared);
  running.arguments.checker = &checker;
  auto tell = [&]() -> Ref<Failure> {
    auto* handler = kernel_findings_handler.load();
    const std::vector<KernelFinding> findings = checker.findings();
    return handler && !findings.empty() ? handler(list, command, findings) : nullptr;
  };
  try {
    if (is_shared) {
      runner.run_tasks(run_some_groups, &running, groups, groups * kernel.work_of_group(threads));
    } else {
      run_some_groups(&running, 0, groups);
    }
  } catch (...) {
    if (Ref<Failure> failure = tell()) return failure;
    throw;
  }
  return tell();
}

void resolve_arguments(const CommandList& list, const Command& command) {
  const Dispatch& dispatch = *command.dispatch;
  for (uint32_t i = 0; i < dispatch.argument_count; ++i) {
    const DispatchArgument& argument = dispatch.arguments[i];
    dispatch.addresses[i] =
        argument.bytes ? const_cast<void*>(argument.bytes) : resolve(list, command, argument.place);
  }
}

// Throws what the kernel reported.
void check_reports(const Dispatch& dispatch) {
  for (uint32_t i = 0; i < dispatch.argument_count; ++i) {
    const DispatchArgument& argument = dispatch.arguments[i];
    if (argument.errors.empty()) continue;
    const auto& report = *static_cast<const ErrorReport*>(argument.bytes);
    if (report.code != 0) throw std::runtime_error(message_of(report, argument.errors));
  }
}

Ref<Failure> run_dispatch(const CommandList& list, const Command& command, TaskRunner& runner) {
  resolve_arguments(list, command);
  const Pipeline& pipeline = command.checked ? *command.checked : *command.pipeline;
  RunningDispatch running{static_cast<const CpuKernel&>(pipeline), arguments_of(*command.dispatch)};
  running.arguments.queue_cancelled = &list.queue->cancelled;
  running.arguments.list = list.serial;
  running.kernel.begin(running.arguments);
  if (command.checked) {
    if (Ref<Failure> failure = run_checked(list, command, running, runner)) return failure;
    check_reports(*command.dispatch);
    return nullptr;
  }
  int64_t groups = threadgroups_of(*command.dispatch);
  runner.run_tasks(run_some_groups, &running, groups,
                   groups * running.kernel.work_of_group(threads_of_group(*command.dispatch)));
  check_reports(*command.dispatch);
  return nullptr;
}

void resolve_bindings(const CommandList& list, const Command& command) {
  if (!command.addresses) return;
  const Binding* binding = list.bindings.data() + command.first_binding;
  for (uint32_t i = 0; i < command.binding_count; ++i, ++binding)
    command.addresses[i] = binding->storage->bytes + binding->start;
}

void run_function_of_program(const Command& command, TaskRunner& runner) {
  struct Waiting {
    explicit Waiting(TaskRunner& r) : runner(r) { runner.begin_waiting(); }
    ~Waiting() { runner.end_waiting(); }
    TaskRunner& runner;
  } waiting(runner);
  runner.run_tasks(command.run, command.parameters, command.tasks, command.work);
}

// Returns what a layer fails the command with, if any does; throws what the command throws.
Ref<Failure> run_command(const CommandList& list, Command& command, TaskRunner& runner) {
  if (fault::hit(fault::Point::dispatch))
    throw std::runtime_error("injected failure of a dispatch");
  int64_t chunks = (static_cast<int64_t>(command.bytes) + copy_chunk - 1) / copy_chunk;
  switch (command.kind) {
    case Command::Kind::native:
      resolve_bindings(list, command);
      if (command.may_wait) {
        run_function_of_program(command, runner);
      } else {
        runner.run_tasks(command.run, command.parameters, command.tasks, command.work);
      }
      break;
    case Command::Kind::copy: {
      if (copy_between_spaces(list, command)) break;
      RunningCopy running{command, resolve(list, command, command.source),
                          resolve(list, command, command.target)};
      runner.run_tasks(run_copy, &running, chunks, command.work);
      break;
    }
    case Command::Kind::fill: {
      RunningCopy running{command, nullptr, resolve(list, command, command.target)};
      runner.run_tasks(run_fill, &running, chunks, command.work);
      break;
    }
    case Command::Kind::dispatch:
      return run_dispatch(list, command, runner);
  }
  return nullptr;
}

}  // namespace

void execute(CommandList& list, TaskRunner& runner) noexcept {
  FloatMode mode;
  auto after = [&list](uint32_t index, bool failed) {
    for (CommandObserver* o = list.observers; o; o = o->next) o->after(list, index, failed);
  };
  for (Command& command : list.commands) {
    auto index = static_cast<uint32_t>(&command - list.commands.data());
    for (CommandObserver* o = list.observers; o; o = o->next) o->before(list, index);
    if (Ref<Failure> failure = reason_not_to_run(list, command)) {
      fail_outputs(list, command, failure);
      after(index, true);
      continue;
    }
    Ref<Failure> failure;
    try {
      failure = run_command(list, command, runner);
      if (!failure) {
        after(index, false);
        continue;
      }
    } catch (const std::exception& error) {
      failure =
          Failure::make(Failure::Kind::execution, command.op, command.label.get(), error.what());
    } catch (...) {
      failure = Failure::make(Failure::Kind::execution, command.op, command.label.get(),
                              "threw something that is not a std::exception");
    }
    fail_outputs(list, command, failure);
    list.failed(list, command, failure);
    after(index, true);
  }
}

}  // namespace holdfast::exec
