// The arguments of `holdfast kernel run`: arrays from text, grids, function constants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/encoder.h>

#include "msl/kernel_source.h"

namespace holdfast::tool {

// `x=f32[64,128]:random`: a name, a dtype, a shape (none: a single value), what is in it; or
// `x=file.npy`, where a file says all of it.
struct ArrayArgument {
  std::string name;
  Dtype dtype = float32;
  Shape shape;
  std::string contents;  // "random", "zeros", "ones", "range", numbers with commas; empty: zeros
  std::string file;      // where the array is; empty: the above say what it is
  std::string text;      // as it was given, for messages
};

// Throws UsageError that says what was expected.
ArrayArgument parse_array(const std::string& text);
// The array with its contents, evaluated. `seed` makes each input's random numbers its own.
array make_array(const ArrayArgument& argument, uint64_t seed);

// `64`, `64,2` or `64,2,1`.
Encoder::Grid parse_grid(const std::string& option, const std::string& text);

// `NAME=bool:true`, `3=uint:7`: a function constant by name or index.
msl::FunctionConstant parse_constant(const std::string& text);

// A whole file; throws std::runtime_error when it cannot be read.
std::string read_source(const std::string& path);
// The file as a source, with its folder for what it includes.
msl::KernelSource source_of_file(const std::string& path);

}  // namespace holdfast::tool
