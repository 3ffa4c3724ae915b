#include "devices/command_failures.h"

#include <string>

#include "devices/device.h"

namespace holdfast::exec {
namespace {

// The failure of an input; null when there is none.
Failure* failure_of_inputs(std::span<const Binding> bindings) {
  for (const Binding& binding : bindings) {
    if (binding.writes) continue;
    if (Failure* failure = binding.buffer->failure()) return failure;
  }
  return nullptr;
}

}  // namespace

Ref<Failure> reason_not_to_run(CommandList& list, const Command& command) {
#if HOLDFAST_CHECKS
  if (command.pipeline && !Pipeline::is_alive(command.pipeline_identity)) {
    Ref<Failure> failure =
        Failure::make(Failure::Kind::execution, command.op, command.label.get(),
                      "the pipeline was released before the command that dispatches it ran");
    list.failed(list, command, failure);
    return failure;
  }
  for (const Binding& binding : bindings_of(list, command)) {
    if (binding.buffer->identity() == binding.identity) continue;
    std::string what = "buffer #" + std::to_string(binding.identity) + " (" +
                       (binding.writes ? "output" : "input") +
                       ") was released before the command that refers to it ran";
    Ref<Failure> failure =
        Failure::make(Failure::Kind::execution, command.op, command.label.get(), what.c_str());
    list.failed(list, command, failure);
    return failure;
  }
#endif
  if (Failure* failure = failure_of_inputs(bindings_of(list, command))) {
    return Ref<Failure>(failure);
  }
  if (Failure* failure = failure_of_inputs(bindings_of_op(list, command))) {
    return Ref<Failure>(failure);
  }
  if (list.queue->cancelled.load(std::memory_order_relaxed) >= list.serial) {
    Ref<Failure> failure = Failure::make(Failure::Kind::cancelled, command.op, command.label.get(),
                                         "cancelled before it ran");
    list.failed(list, command, failure);
    return failure;
  }
  return nullptr;
}

void fail_outputs(const CommandList& list, const Command& command, const Ref<Failure>& failure) {
  for (std::span<const Binding> bindings :
       {bindings_of(list, command), bindings_of_op(list, command)}) {
    for (const Binding& binding : bindings) {
      if (binding.writes && binding.buffer->identity() == binding.identity) binding.fail(failure);
    }
  }
}

}  // namespace holdfast::exec
