// The functions that `holdfast bench compile` compiles, written with plain ops. peers.py has the
// same functions, by the same names, for MLX and JAX.
#pragma once

#include <holdfast/array.h>

#include <functional>
#include <string>
#include <vector>

namespace holdfast::bench {

struct CompiledProgram {
  std::string name;    // of the row
  std::string peer;    // of the function in peers.py
  std::string inputs;  // as in ops/rows.def
  std::function<std::vector<array>(const std::vector<array>&)> function;  // not compiled yet
};

std::vector<CompiledProgram> compiled_programs();

}  // namespace holdfast::bench
