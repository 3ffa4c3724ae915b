// The targets of the CPU device: machine code by the JIT, for each instruction set.
#pragma once

#include <string>

#include "base/machine.h"
#include "devices/target.h"

namespace holdfast::exec {

// KernelOptions::variant is a jit::Lowering. By default, for what this processor runs.
Target& cpu_target();
Target& cpu_target(machine::InstructionSet set);
// Target::identity, for a compiler of this version.
std::string cpu_target_identity(const std::string& compiler_version, machine::InstructionSet set);

}  // namespace holdfast::exec
