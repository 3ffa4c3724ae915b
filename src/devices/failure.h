// Failure: why a command did not produce its data. Shared by every buffer that depends on it.
#pragma once

#include <exception>
#include <string>

#include <holdfast/errors.h>

#include "base/ref.h"

namespace holdfast::exec {

class Failure : public RefCounted {
 public:
  enum class Kind { execution, cancelled };

  Failure(Kind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  // Fails as `exception` says, whose text is the message.
  Failure(std::exception_ptr exception, std::string message)
      : kind_(Kind::execution), message_(std::move(message)), exception_(std::move(exception)) {}

  // Throws the exception that it was made of, or ExecutionError or Cancelled, and marks the failure
  // as seen.
  [[noreturn]] void raise() {
    seen.store(true);
    if (exception_) std::rethrow_exception(exception_);
    if (kind_ == Kind::cancelled) throw Cancelled(message_);
    throw ExecutionError(message_);
  }
  bool is_cancellation() const { return kind_ == Kind::cancelled; }
  const std::string& message() const { return message_; }

  // A failure to report failures with when memory is gone: made at start, never released.
  static Ref<Failure> emergency();
  // Never throws: falls back to the emergency failure.
  static Ref<Failure> make(Kind kind, const char* op, const std::string* label,
                           const char* what) noexcept;

  // Has someone been told?
  sync::Atomic<bool> seen{false};

 private:
  Kind kind_;
  std::string message_;
  std::exception_ptr exception_;
};

}  // namespace holdfast::exec
