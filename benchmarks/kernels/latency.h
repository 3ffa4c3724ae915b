// How long a program waits for a kernel: compiled, found on disk, found in memory.
#pragma once

#include <string>
#include <vector>

namespace holdfast::bench {

// Runs in a process of its own (`holdfast bench --probe WHAT NONCE`), because a process compiles
// its first kernel only once. Prints `name value` lines. WHAT is `start` (no kernel at all) or
// `kernels` (those whose text holds NONCE).
int run_probe(const std::vector<std::string>& arguments);

}  // namespace holdfast::bench
