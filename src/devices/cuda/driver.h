// CUDA's driver, libcuda.so.1, by declarations of our own: it is loaded where it is found, and
// neither building nor starting needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace holdfast::cuda {

using Address = uint64_t;
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Graph = struct GraphObject*;
using GraphNode = struct GraphNodeObject*;
using GraphExec = struct GraphExecObject*;
using Link = struct LinkObject*;

// The structures and numbers below are CUDA's, as its driver takes them.
struct KernelNode {
  Function function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  Context context;
};
static_assert(sizeof(KernelNode) == 72);

struct CopyNode {
  struct Side {
    size_t x, y, z, level;
    unsigned memory;
    const void* host;
    Address device;
    void* array;
    void* reserved;
    size_t pitch, height;
  };
  Side source, target;
  size_t width, height, depth;
};
static_assert(sizeof(CopyNode) == 200);

struct FillNode {
  Address target;
  size_t pitch;
  unsigned value, element_size;
  size_t width, height;
};
static_assert(sizeof(FillNode) == 40);

namespace result {
inline constexpr int success = 0, out_of_memory = 2, deinitialized = 4, no_device = 100,
                     not_ready = 600;
}
namespace attribute {
inline constexpr int major = 75, minor = 76, writes_64_bits = 122;
// Of a function.
inline constexpr int max_threads_of_function = 0;
}  // namespace attribute
inline constexpr unsigned memory_of_device = 2;            // CopyNode::Side::memory
inline constexpr unsigned non_blocking_stream = 1;         // create_stream
inline constexpr unsigned event_without_timing = 2;        // create_event
inline constexpr unsigned host_memory_of_all_threads = 1;  // allocate_host: in any context
inline constexpr int ptx_input = 1;                        // add_to_link

// A function of the driver failed.
class Error : public std::runtime_error {
 public:
  Error(const char* function, int code, const std::string& name);
  int code() const { return code_; }
  // The context can do nothing more, and no other one of this process can: see Gpu::lose.
  bool is_sticky() const { return is_sticky(code_); }
  static bool is_sticky(int code);

 private:
  int code_;
};

struct Driver;

template <class... Parameters>
struct DriverFunction {
  int (*call)(Parameters...) = nullptr;
  const char* name = "";
  Driver* driver = nullptr;

  // Throws Error.
  void operator()(Parameters... parameters) const;
  int attempt(Parameters... parameters) const { return call(parameters...); }
};

// The table of functions. Lives as long as the process, or the test that made it.
struct Driver {
  Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

#define FUNCTION(member, symbol, ...) DriverFunction<__VA_ARGS__> member;
#include "devices/cuda/driver_functions.def"
#undef FUNCTION

  [[noreturn]] void fail(const char* function, int code) const;

  // May there be a GPU? A look at a file, so that machines without one pay nothing.
  static bool may_be_there();
  // libcuda's, loaded and initialised at the first call. Throws std::runtime_error that says what
  // is missing: the library, a function of it (an old driver), a GPU that may be used.
  static Driver& of_system();
};

template <class... Parameters>
void DriverFunction<Parameters...>::operator()(Parameters... parameters) const {
  if (const int code = call(parameters...)) driver->fail(name, code);
}

}  // namespace holdfast::cuda
