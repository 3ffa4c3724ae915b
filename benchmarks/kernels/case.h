// The kernels of `bench kernels`: the MSL source, its rival in C++, and the same in OpenCL C where
// one can be written.
#pragma once

#include <holdfast/array.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "benchmarks/kernels/hand/hand.h"
#include "benchmarks/team.h"

namespace holdfast::bench {

struct KernelCase {
  const char* name;
  std::string body;  // as fast::metal_kernel takes it
  std::vector<std::string> input_names, output_names;
  std::vector<array> inputs;
  std::vector<Shape> output_shapes;
  std::vector<Dtype> output_dtypes;
  std::tuple<int, int, int> grid, threadgroup;
  bool atomic_outputs = false;  // outputs start at zero and are added to
  // Runs the rival on the same inputs; `outputs` are as many pointers as there are outputs.
  void (*hand)(const HandKernels&, Team&, const std::vector<array>& inputs,
               const std::vector<void*>& outputs);
  double tolerance;  // largest difference to the rival, relative to the largest value
  // OpenCL C: a kernel `run` whose parameters are the inputs, then the outputs. Empty: none can be
  // written.
  std::string opencl = {};
  bool synchronises = false;  // has barriers or works across lanes
};

std::vector<KernelCase> row_kernels();
std::vector<KernelCase> language_model_kernels();
std::vector<KernelCase> compute_kernels();

}  // namespace holdfast::bench
