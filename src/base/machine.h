// What this process may use of the machine: affinity, cgroup quota and limits count.
#pragma once

#include <cstddef>

namespace holdfast::machine {

int threads();          // at least 1
size_t memory_bytes();  // the cgroup's limit where it is lower than the machine's

}  // namespace holdfast::machine
