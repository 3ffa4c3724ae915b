// What is compiled, and what is known about it afterwards. No LLVM here: the key of a pipeline is
// made of these, and programs that load a kernel from the disk cache never load a compiler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::msl {

enum class MathMode : uint8_t { safe, relaxed, fast };

// A part of KernelSource::text that the user wrote or named: diagnostics in it are reported as
// `name:line:column`, counted from its first character.
struct SourcePart {
  std::string name;   // "header", "body", "signature" (the generated parameters), or a file's name
  size_t begin, end;  // bytes of `text`
  bool is_generated = false;
};

// [[function_constant(index)]] and its value, as bytes of its MSL type ("bool", "int", "float4",
// …), the first in the lowest place; what the type does not need is zero.
struct FunctionConstant {
  uint32_t index;
  std::string name;  // may be empty: then the index decides
  std::string type;
  std::array<uint64_t, 4> bits;
};

// How an input of a custom kernel was declared, where that surprises: without dimensions, or with
// few elements. Errors on lines that name it say so. Not part of a pipeline's key: the text is.
struct DeclaredInput {
  std::string name;
  std::string declaration;  // "const constant float& x"
  size_t size = 1, ndim = 0;
};

struct KernelSource {
  std::string kernel;  // the user's name of the kernel, for messages
  std::string entry;   // the function, or its [[host_name]]; empty: the only kernel of `text`
  std::string text;    // the MSL source, without the prelude (metal_stdlib, MLX's helpers)
  std::vector<SourcePart> parts;
  std::vector<FunctionConstant> constants;
  std::vector<DeclaredInput> declared;
  // Where the text came from: `#include "file"` looks there, then in the include_directories, which
  // `#include <file>` searches, too. Empty: no file can be included.
  std::string directory;
  std::vector<std::string> include_directories;
  MathMode math = MathMode::safe;
  // Function constants that are not in `constants` are 0 or false, and not defined, instead of an
  // error where a kernel uses them: to look at a file without knowing what its program gives. Not
  // part of a pipeline's key: what is dispatched is never compiled so.
  bool assume_missing_constants = false;
};

struct KernelArgument {
  enum class Kind : uint8_t { device, constant, threadgroup };
  std::string name;
  Kind kind = Kind::device;
  bool written = false;       // may be stored to
  uint32_t slot = 0;          // [[buffer(n)]] or [[threadgroup(n)]]
  uint32_t element_size = 0;  // bytes of the pointed-to type
  uint32_t alignment = 0;     // of it; 0: not known
};

// What a compiled kernel expects of its dispatch.
struct KernelInterface {
  std::string entry;
  std::vector<KernelArgument> arguments;  // in the order of the scalar function's parameters
  uint32_t threadgroup_bytes = 0;         // of variables; dynamic arguments come on top
  std::vector<std::string> attributes;    // thread_position_in_grid, …, as used
  uint32_t max_threads = 1024;            // [[max_total_threads_per_threadgroup(n)]]
  // The function constants that the kernel refers to and that were assumed to be 0 or false, as
  // "name (index)". Only with KernelSource::assume_missing_constants; not kept on disk.
  std::vector<std::string> assumed_constants;
};

// A source that does not compile. what(): "[kernel] body:3:7: error: …", several lines.
struct CompileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace holdfast::msl
