// What ran before a command failed (exec/ring.h), kept until it is known whether anything handles
// the failure. A program that catches the error, prints it and goes on needs no file: nothing is
// written then. A failure is unhandled when its exception ends the process (std::terminate, or the
// end of a Python script), or when it was thrown to no caller by the end of the process.
#pragma once

#include <string>

#include "devices/failure.h"

namespace holdfast::exec::unhandled_failures {

// Keeps a report; the oldest of a few goes. Any thread.
void add(const Ref<Failure>& failure, std::string report) noexcept;

// The process ends: writes the reports of failures that were thrown to no caller.
void write_unseen() noexcept;

// The process ends by an exception with this text: writes the reports of failures that it came
// from.
void write_of(const char* what) noexcept;

}  // namespace holdfast::exec::unhandled_failures
