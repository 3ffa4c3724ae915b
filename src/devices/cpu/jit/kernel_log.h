// Messages of kernels (metal::os_log) on stderr.
#pragma once

#include <string>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

// What the message says. A conversion that printf does not have is shown as it is written, one for
// which there is no value as "<missing>"; `%v4f` is a vector of four.
std::string text_of(const LogMessage& message);

// GroupContext::log. One line for a message, "holdfast: [kernel] error: text"; of a kernel that has
// sent most_messages, no more are shown.
void log_message(GroupContext* group, const LogMessage* message);
inline constexpr uint32_t most_messages = 10000;

}  // namespace holdfast::jit
