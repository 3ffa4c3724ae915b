// One entry of a .metal file, for all targets that the build wants.
#pragma once

#include <string>
#include <vector>

#include "devices/cpu/jit/compiler.h"
#include "tools/aot/image_cache.h"

namespace holdfast::aot {

struct Targets {
  std::vector<jit::InstructionSet> instruction_sets;
  bool has_ptx = false;
};

// What one entry becomes.
struct Compiled {
  struct Image {
    std::string name, bytes;
  };
  std::vector<Image> images;
  std::string report;
};

// Throws CompileError. Any thread.
Compiled compile_entry(const jit::ParsedKernels& kernels, size_t number, const Targets& targets,
                       ImageCache& cache);

}  // namespace holdfast::aot
