// Steps as the text of a kernel, the same for all back-ends that write kernels for groups. How its
// threads walk over memory is theirs (kernels/cpu/generated_source.h,
// kernels/metal/generated_kernels.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/elementwise/lowered_steps.h"

namespace holdfast::kernels {

// How a dtype is written in memory; of bool: a byte.
const char* memory_type(Dtype::Val dtype);
const char* lane_type(Lane lane);

// A statement for each step, which makes `v<number><suffix>` of values of such names. Inputs have
// the numbers before.
std::string statements_of(std::span<const LoweredStep> steps, size_t inputs,
                          std::string_view suffix = {});
// What the statements call.
std::string math_of(std::span<const LoweredStep> steps);

// A header that kernels include, as the build embeds it, by its path from src/kernels:
// "elementwise/math.h". Throws std::logic_error where there is none.
std::string_view embedded_header(std::string_view path);

}  // namespace holdfast::kernels
