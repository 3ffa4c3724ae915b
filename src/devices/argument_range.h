// The memory of a kernel's argument: how far guarded kernels may go.
#pragma once

#include <cstdint>

namespace holdfast::exec {

// `bytes` from `before` bytes before the address that the kernel gets: views that run backwards
// begin before it.
struct ArgumentRange {
  uint64_t before = 0, bytes = 0;
};

}  // namespace holdfast::exec
