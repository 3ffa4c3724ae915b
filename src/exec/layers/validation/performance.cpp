// performance: what is right and slower than it could be.
#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::validation {

void Validator::on_host_fallback(const exec::HostFallback& fallback) {
  if (checks_.has(Check::performance)) deliver_later({messages::host_fallback(fallback)});
}

}  // namespace holdfast::validation
