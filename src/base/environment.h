// The environment switches: one table, read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fault.h"

namespace holdfast::environment {

struct Switch {
  const char* name;
  const char* default_text;
  const char* meaning;
};

// Every switch, in the order the README lists them.
std::span<const Switch> table();

// When `compile` makes kernels of element-wise groups.
enum class CompileKernels : uint8_t { never, when_it_pays, at_once };

// Whether accesses of custom kernels outside of their arguments are prevented; strict: reads fail,
// too.
enum class GuardKernels : uint8_t { off, on, strict };

// What Device::gpu is: `native`: the CPU's cores and memory under a GPU's rules; `simulated`: the
// same cores with memory of its own.
enum class Gpu : uint8_t { automatic, native, simulated, cuda };

// The values, parsed and checked.
struct Settings {
  int threads = 0;  // 0: what affinity and cgroup quota allow
  bool retain = true;
  bool recycle = true;
  bool fuse = true;
  bool disable_compile = false;
  CompileKernels compile_kernels = CompileKernels::when_it_pays;
  int max_ops_per_buffer = 256;
  size_t max_bytes_per_buffer = size_t{256} << 20;
  bool default_device_is_gpu = false;
  Gpu gpu = Gpu::automatic;
  int warm_architecture = 0;  // 90: sm_90; 0: none
  size_t kernel_cache_entries = 1024;
  bool disk_cache = true;
  uint64_t disk_cache_bytes = uint64_t{512} << 20;
  double kernel_timeout = 300;  // seconds; 0: none
  GuardKernels guard_kernels = GuardKernels::on;
  bool reference_lowering = false;
  bool catch_faults = true;
  std::string dump_kernels;  // directory; empty: none
  std::string jit_library;   // path; empty: looked for
  // Parsed by the layers of these names.
  std::string chaos;
  std::vector<fault::Setting> faults;
  std::string validate, validate_mode, validate_ignore, validate_json;
  std::string capture;  // path; empty: none
  int64_t capture_skip = 0, capture_count = -1;
  bool capture_contents = true;
  bool capture_digests = true;
  bool capture_references = false;
  int ring = 16;            // command lists that each queue remembers
  std::string ring_folder;  // empty: in the cache folder
};

// Reads the environment at the first call. Throws std::invalid_argument that names the variable,
// its value and what it may be; a later call tries again.
const Settings& settings();

// The same, to be changed by a test while nothing is in flight.
Settings& settings_for_tests();

// Parses a set of variables given as a look-up function; for tests.
Settings parse(const char* (*lookup)(const char* name));

// The table as Markdown, for the README.
std::string markdown();

}  // namespace holdfast::environment
