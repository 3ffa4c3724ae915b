// Target: what kernels are compiled for, such as an instruction set of this processor or a GPU's
// architecture, and the compiler that does it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "devices/pipeline.h"
#include "msl/kernel_source.h"

namespace holdfast::exec {

// What a dispatch may ask for. These are Metal's, which devices keep so that what breaks there
// breaks here.
struct KernelLimits {
  uint32_t max_threads_per_threadgroup = 1024;
  uint32_t max_threadgroup_memory = 32 * 1024;
  uint32_t max_grid = uint32_t{1} << 31;  // threads along one axis
};

// How a kernel is compiled, beside what its source says.
struct KernelOptions {
  // One of the target's own ways to compile it, as the target numbers them; 0: it chooses.
  uint64_t variant = 0;
  // Accesses that cannot be proved to be inside of what the kernel was given are looked at, and not
  // made when they are not.
  bool guarded = false;
  // A kernel of the library: it looks at the alignment of its arguments itself, and gets no arrays
  // in constant memory.
  bool is_of_library = false;
  // Threads of the threadgroups that the kernel is wanted for, for what is said of it; zeros: a row
  // of them. Not part of a key.
  std::array<uint32_t, 3> threadgroup{};
};

// A kernel that is compiled: machine code, and all that running it needs to know.
class Binary {
 public:
  virtual ~Binary() = default;
  // What Target::load takes, for files.
  virtual std::string bytes() const = 0;
  // `name`: the user's name of the kernel, for messages. Throws std::runtime_error when the machine
  // code is not sound.
  virtual Ref<Pipeline> make_pipeline(const std::string& name) const = 0;
};

// Lives as long as the process. Any thread may use it at any time.
class Target {
 public:
  virtual ~Target() = default;
  // Short, for names of files: "avx512".
  virtual const std::string& name() const = 0;
  // Everything that decides what the machine code does and is not in the request, as bytes: the
  // architecture, the versions of the compiler and of the interface to generated code. Part of
  // every key; known without loading the compiler.
  virtual const std::string& identity() const = 0;
  virtual KernelLimits limits() const { return {}; }
  // False: only `load` works.
  virtual bool has_compiler() const { return true; }
  // Throws msl::CompileError for the source's faults, and std::runtime_error where there is no
  // compiler.
  virtual std::unique_ptr<const Binary> compile(const msl::KernelSource& source,
                                                const KernelOptions& options) = 0;
  // Null unless the bytes are as Binary::bytes gives them.
  virtual std::unique_ptr<const Binary> load(std::string_view bytes) = 0;
  // What images of kernels that are compiled so are called (devices/image_writer.h), the best one
  // first.
  virtual std::vector<std::string> image_names(const KernelOptions&) const { return {}; }
  // What comes of an image takes time to load, which a cache on disk saves.
  virtual bool assembles_images() const { return false; }
  // The variant that runs threads one by one, as the source is written; 0: there is none.
  virtual uint64_t reference_variant() const { return 0; }
  // The variant that finds what a kernel's threads do wrong (kernel_finding.h); 0: there is none.
  virtual uint64_t checked_variant() const { return 0; }
};

}  // namespace holdfast::exec
