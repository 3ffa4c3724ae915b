// ErrorReport: how a kernel makes its command an error because of the data that it found (an index
// that leaves its array). A kernel cannot throw: it writes to a report, and goes on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::exec {

// Memory of one dispatch, zero when it begins. A thread that finds an error claims the report
// atomically; the first one writes what it found. As in kernels/metal/support/errors.h.
//
// The device reads it when the dispatch has run, or later: at the latest before it says that the
// list has completed. Commands behind it may have run on what the dispatch left, so that kernels
// must not trust what another one has checked.
struct ErrorReport {
  uint32_t is_claimed = 0;
  uint32_t code = 0;  // of a message, from 1; 0: no error
  int64_t numbers[2] = {};
};

// `texts` are the messages, each with a zero behind it. Every "{}" of the one that the code names
// becomes the next of the numbers.
std::string message_of(const ErrorReport& report, std::string_view texts);

}  // namespace holdfast::exec
