// What keeps a command from running, and what fails with it: the same for every device.
#pragma once

#include <span>

#include "devices/command_list.h"

namespace holdfast::exec {

inline std::span<const Binding> bindings_of(const CommandList& list, const Command& command) {
  return std::span(list.bindings).subspan(command.first_binding, command.binding_count);
}
inline std::span<const Binding> bindings_of_op(const CommandList& list, const Command& command) {
  return std::span(list.bindings).subspan(command.first_of_op, command.count_of_op);
}

// The failure that a command inherits or starts with; null when it may run. What no input brings is
// reported to the list (CommandList::failed).
Ref<Failure> reason_not_to_run(CommandList& list, const Command& command);

// What the command writes fails.
void fail_outputs(const CommandList& list, const Command& command, const Ref<Failure>& failure);

}  // namespace holdfast::exec
