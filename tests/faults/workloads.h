// Small graphs for the fault loops: each uses the execution layer in another way, and knows the
// values it must give.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <holdfast/array.h>

namespace holdfast::testing {

struct Workload {
  const char* name;
  // Builds the graph: arrays to evaluate, in any order, each with the value of all its elements.
  struct Output {
    array value;
    int32_t expected;
  };
  std::function<std::vector<Output>()> build;
};

// Made on streams of the calling thread.
std::vector<Workload> workloads();

// "" when every element is as expected; throws what evaluation throws.
std::string mismatch(const std::vector<Workload::Output>& outputs);

}  // namespace holdfast::testing
