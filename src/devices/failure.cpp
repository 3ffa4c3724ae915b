#include "devices/failure.h"

#include <cstring>

namespace holdfast::exec {

Ref<Failure> Failure::emergency() {
  static Failure* failure = new Failure(
      Kind::execution, "[holdfast] a command failed, and there was no memory to say why");
  return Ref<Failure>(failure);
}

Ref<Failure> Failure::make(Kind kind, const char* op, const std::string* label,
                           const char* what) noexcept {
  try {
    std::string message;
    // Errors of our own kernels start with "[op]" already.
    if (what[0] != '[') message = std::string("[") + op + "] ";
    message += what;
    if (label) message += " (label " + *label + ")";
    return make_ref<Failure>(kind, std::move(message));
  } catch (...) {
    return emergency();
  }
}

}  // namespace holdfast::exec
