// MLX's contract around the body of a custom kernel: from names, dtypes and template values to the
// source of a Metal kernel.
//
//   input    const device T* name; `constant` instead of `device` for fewer than 8 elements, a
//            reference instead of a pointer for a 0-d array
//   name_shape, name_strides, name_ndim    after their input, where the body contains that text and
//            the input is not 0-d
//   output   device T* name, or device atomic<T>* name
//   thread attributes    the 20 of MLX, where the body contains their name: uint or uint3
//   template values      parameters of a template that is instantiated once
//
// The body stands in braces of its own, with nothing before it.
#pragma once

#include <holdfast/dtype.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "msl/kernel_source.h"

namespace holdfast::msl {

// What does not change from call to call.
struct Signature {
  std::string name;
  std::vector<std::string> input_names, output_names;
  std::string body, header;
  bool atomic_outputs = false;
  MathMode math = MathMode::safe;
  bool guard = true;  // accesses that may be outside of the arguments are looked at
};

struct SignatureInput {
  Dtype dtype;
  size_t size;  // elements
  size_t ndim;
};

// What a parameter of the kernel is bound to: input or output `index`, or what is known of an
// input: int32 shape, int64 strides, int32 number of dimensions.
struct SignatureSlot {
  enum class Kind : uint8_t { input, shape, strides, ndim, output };
  Kind kind;
  uint32_t index;
};

using TemplateValue = std::variant<int, bool, Dtype>;

struct GeneratedKernel {
  KernelSource source;               // its text is what `verbose` prints
  std::vector<SignatureSlot> slots;  // by buffer number, which is also the order of parameters
};

// Throws std::invalid_argument for names that cannot be: none, no identifiers, keywords, used
// twice.
void check(const Signature& signature);

// Throws std::invalid_argument for dtypes that MSL lacks, template names that cannot be, too many
// buffers. `inputs` and `outputs` are as many as there are names.
GeneratedKernel generate(const Signature& signature, std::span<const SignatureInput> inputs,
                         std::span<const Dtype> outputs,
                         std::span<const std::pair<std::string, TemplateValue>> template_arguments);

}  // namespace holdfast::msl
