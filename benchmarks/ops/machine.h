// The absolute bars of `holdfast bench ops`.
#pragma once

#include "benchmarks/bench.h"

namespace holdfast::bench {

// Kernels beside a hand-written copy or read of the same memory, a float32 product, or std::sort in
// the same run.
void run_machine_rows(Report&, const Options&);

}  // namespace holdfast::bench
