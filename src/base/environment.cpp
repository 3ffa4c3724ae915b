#include "base/environment.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace holdfast::environment {
namespace {

constexpr Switch switches[] = {
    {"HOLDFAST_THREADS", "all cores", "worker threads of the CPU device (1 to 1024)"},
    {"HOLDFAST_DEFAULT_DEVICE", "cpu", "device that ops run on when none is named: `cpu` or `gpu`"},
    {"HOLDFAST_GPU", "auto",
     "what the device `gpu` is: `native`: the CPU's cores and memory under a GPU's rules, at full "
     "speed; `simulated`: a GPU with memory of its own, for tests; `cuda`: an NVIDIA GPU; `auto`: "
     "`cuda` where there is one, else `native`"},
    {"HOLDFAST_MAX_OPS_PER_BUFFER", "256",
     "ops in a command list before it is committed (1 or more)"},
    {"HOLDFAST_MAX_MB_PER_BUFFER", "256",
     "MiB read and written by a command list before it is committed (1 or more)"},
    {"HOLDFAST_FUSE", "1", "`0`: run every element-wise op on its own; results do not change"},
    {"HOLDFAST_DISABLE_COMPILE", "0",
     "`1`: compiled functions call what they were made from, until the program calls "
     "`enable_compile` or sets a mode"},
    {"HOLDFAST_COMPILE_KERNELS", "auto",
     "when `compile` makes kernels of element-wise ops: `auto`: in the background, where they pay; "
     "`always`: at the first call; `never`; results do not change"},
    {"HOLDFAST_RECYCLE", "1",
     "`0`: memory that queued work still uses is not reused inside its queue"},
    {"HOLDFAST_RETAIN", "1",
     "`0`: bind without retaining, for tests and bisection only: programs break"},
    {"HOLDFAST_KERNEL_CACHE_ENTRIES", "1024",
     "compiled kernels kept in memory (1 or more); work in flight keeps its own"},
    {"HOLDFAST_DISK_CACHE", "1", "`0`: compiled kernels are neither read from disk nor kept there"},
    {"HOLDFAST_CACHE_DIR", "~/.cache/holdfast",
     "folder for compiled kernels; `XDG_CACHE_HOME` is respected"},
    {"HOLDFAST_CACHE_MB", "512", "MiB of compiled kernels kept on disk (1 or more)"},
    {"HOLDFAST_KERNEL_TIMEOUT", "300",
     "seconds that a dispatch of a custom kernel may take before it is stopped and its outputs "
     "fail; `0`: any time"},
    {"HOLDFAST_GUARD_KERNELS", "1",
     "`1`: what a custom kernel writes outside of its arguments is not written and fails its "
     "outputs, what it reads there is 0; `strict`: such reads fail them, too; `0`: nothing is "
     "looked at, and such a kernel may end the process"},
    {"HOLDFAST_LOWERING", "automatic",
     "`reference`: run custom kernels one thread at a time on the CPU, as they are written and "
     "slowly, to tell a bug of the kernel from one of the vectoriser"},
    {"HOLDFAST_CATCH_FAULTS", "1",
     "`0`: a memory fault inside a custom kernel ends the process, as any other does"},
    {"HOLDFAST_WARM_TARGET", "",
     "architecture of an NVIDIA GPU, as `sm_90`: kernels that the program uses are compiled for it "
     "as well, into the kernel cache, for machines without the compiler"},
    {"HOLDFAST_DUMP_KERNELS", "",
     "folder that receives source, intermediate code, assembly and remarks of each kernel that is "
     "compiled; turns the disk cache off"},
    {"HOLDFAST_JIT_LIBRARY", "beside the library",
     "path of libholdfast-jit.so, the compiler of custom kernels"},
    {"HOLDFAST_VALIDATE", "0",
     "`1`: validate what the program does, or names of checks with commas (docs/validation.md)"},
    {"HOLDFAST_VALIDATE_MODE", "report",
     "`report`: print what is found to stderr; `throw`: throw it as well; `abort`: end the "
     "process"},
    {"HOLDFAST_VALIDATE_IGNORE", "", "identifiers of reports that are not wanted, with commas"},
    {"HOLDFAST_VALIDATE_JSON", "", "file that receives a line for each report"},
    {"HOLDFAST_CHAOS", "",
     "seed, or seed and knobs as `7:order,split,delay,poison`: run commands in unusual orders, "
     "commit and complete at unusual times, overwrite memory that was let go; right programs "
     "compute "
     "the same values"},
    {"HOLDFAST_FAULT", "",
     "what fails, and at which visit, as `alloc:3,compile:1,dispatch:2,file:1`; with `+` behind "
     "the "
     "number later visits fail, too"},
    {"HOLDFAST_CAPTURE", "",
     "`path[:skip,count]`: record what runs into this file, leaving out `skip` command lists and "
     "recording `count`; see docs/capture.md"},
    {"HOLDFAST_CAPTURE_CONTENTS", "1",
     "`0`: record no contents of memory: smaller, and only to be looked at"},
    {"HOLDFAST_CAPTURE_DIGESTS", "1", "`0`: record no digests of what ops write"},
    {"HOLDFAST_CAPTURE_REFERENCES", "0",
     "`1`: name contents that were loaded from a file by file, range and digest instead of copying "
     "them"},
    {"HOLDFAST_RING", "16",
     "command lists that each stream remembers, and writes to a file when a command fails and "
     "nothing handles the error; `0`: none"},
    {"HOLDFAST_RING_DIR", "rings in the cache folder",
     "folder of these files; the last 8 are kept"},
    {"HOLDFAST_SCHEDULE_SEED", "", "preset `controlled` only: run this one schedule of each test"},
    {"HOLDFAST_SCHEDULE_STRATEGY", "", "preset `controlled` only: `random` or `pct`"},
};

[[noreturn]] void reject(const char* name, const char* text, const char* expected) {
  throw std::invalid_argument(std::string("[environment] ") + name + " must be " + expected +
                              ", got \"" + text + "\"");
}

using Lookup = const char* (*)(const char*);

int64_t integer(Lookup lookup, const char* name, int64_t fallback, int64_t low, int64_t high) {
  const char* text = lookup(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  errno = 0;
  long long value = std::strtoll(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < low || value > high) {
    std::string expected =
        "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
    reject(name, text, expected.c_str());
  }
  return value;
}

double seconds(Lookup lookup, const char* name, double fallback) {
  const char* text = lookup(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  double value = std::strtod(text, &end);
  if (*end != '\0' || !(value >= 0 && value <= 1e9)) reject(name, text, "seconds from 0 to 1e9");
  return value;
}

bool boolean(Lookup lookup, const char* name, bool fallback) {
  const char* text = lookup(name);
  if (!text || !*text) return fallback;
  if (std::strcmp(text, "0") != 0 && std::strcmp(text, "1") != 0) reject(name, text, "0 or 1");
  return text[0] == '1';
}

}  // namespace

std::span<const Switch> table() { return switches; }

Settings parse(Lookup lookup) {
  Settings s;
  s.threads = static_cast<int>(integer(lookup, "HOLDFAST_THREADS", 0, 1, 1024));
  s.max_ops_per_buffer = static_cast<int>(
      integer(lookup, "HOLDFAST_MAX_OPS_PER_BUFFER", s.max_ops_per_buffer, 1, 1 << 20));
  s.max_bytes_per_buffer =
      static_cast<size_t>(integer(lookup, "HOLDFAST_MAX_MB_PER_BUFFER", 256, 1, int64_t{1} << 30))
      << 20;
  s.fuse = boolean(lookup, "HOLDFAST_FUSE", true);
  s.disable_compile = boolean(lookup, "HOLDFAST_DISABLE_COMPILE", false);
  if (const char* when = lookup("HOLDFAST_COMPILE_KERNELS"); when && *when) {
    std::string_view name = when;
    if (name != "auto" && name != "always" && name != "never") {
      reject("HOLDFAST_COMPILE_KERNELS", when, "auto, always or never");
    }
    if (name == "always") s.compile_kernels = CompileKernels::at_once;
    if (name == "never") s.compile_kernels = CompileKernels::never;
  }
  s.recycle = boolean(lookup, "HOLDFAST_RECYCLE", true);
  s.retain = boolean(lookup, "HOLDFAST_RETAIN", true);
  s.kernel_cache_entries = static_cast<size_t>(
      integer(lookup, "HOLDFAST_KERNEL_CACHE_ENTRIES", 1024, 1, int64_t{1} << 20));
  s.disk_cache = boolean(lookup, "HOLDFAST_DISK_CACHE", true);
  s.disk_cache_bytes =
      static_cast<uint64_t>(integer(lookup, "HOLDFAST_CACHE_MB", 512, 1, int64_t{1} << 30)) << 20;
  s.kernel_timeout = seconds(lookup, "HOLDFAST_KERNEL_TIMEOUT", s.kernel_timeout);
  if (const char* guard = lookup("HOLDFAST_GUARD_KERNELS"); guard && *guard) {
    std::string_view name = guard;
    if (name != "0" && name != "1" && name != "strict")
      reject("HOLDFAST_GUARD_KERNELS", guard, "0, 1 or strict");
    if (name == "0") s.guard_kernels = GuardKernels::off;
    if (name == "strict") s.guard_kernels = GuardKernels::strict;
  }
  if (const char* lowering = lookup("HOLDFAST_LOWERING"); lowering && *lowering) {
    std::string_view name = lowering;
    if (name != "automatic" && name != "reference")
      reject("HOLDFAST_LOWERING", lowering, "automatic or reference");
    s.reference_lowering = name == "reference";
  }
  s.catch_faults = boolean(lookup, "HOLDFAST_CATCH_FAULTS", true);
  if (const char* folder = lookup("HOLDFAST_DUMP_KERNELS")) s.dump_kernels = folder;
  if (const char* path = lookup("HOLDFAST_JIT_LIBRARY")) s.jit_library = path;
  auto text = [&](const char* name) { return std::string(lookup(name) ? lookup(name) : ""); };
  s.chaos = text("HOLDFAST_CHAOS");
  if (std::string fault = text("HOLDFAST_FAULT"); !fault.empty()) {
    std::vector<fault::Setting> settings;
    if (!fault::parse(fault, settings))
      reject("HOLDFAST_FAULT", fault.c_str(), fault::expected_text);
    s.faults = std::move(settings);
  }
  s.validate = text("HOLDFAST_VALIDATE");
  s.validate_mode = text("HOLDFAST_VALIDATE_MODE");
  s.validate_ignore = text("HOLDFAST_VALIDATE_IGNORE");
  s.validate_json = text("HOLDFAST_VALIDATE_JSON");
  if (const char* given = lookup("HOLDFAST_CAPTURE"); given && *given) {
    s.capture = given;
    // What stands behind the last colon, where it is two numbers.
    size_t colon = s.capture.rfind(':');
    long long skip = 0, count = 0;
    int used = 0;
    if (colon != std::string::npos &&
        std::sscanf(s.capture.c_str() + colon, ":%lld,%lld%n", &skip, &count, &used) == 2 &&
        s.capture[colon + static_cast<size_t>(used)] == '\0') {
      if (skip < 0 || count < 1)
        reject("HOLDFAST_CAPTURE", given, "path[:skip,count], count from 1");
      s.capture_skip = skip;
      s.capture_count = count;
      s.capture.resize(colon);
    }
  }
  s.capture_contents = boolean(lookup, "HOLDFAST_CAPTURE_CONTENTS", true);
  s.ring = static_cast<int>(integer(lookup, "HOLDFAST_RING", s.ring, 0, 1 << 16));
  s.ring_folder = text("HOLDFAST_RING_DIR");
  s.capture_digests = boolean(lookup, "HOLDFAST_CAPTURE_DIGESTS", true);
  s.capture_references = boolean(lookup, "HOLDFAST_CAPTURE_REFERENCES", false);
  if (const char* target = lookup("HOLDFAST_WARM_TARGET"); target && *target) {
    const std::string_view name(target);
    if (!name.starts_with("sm_")) reject("HOLDFAST_WARM_TARGET", target, "as in sm_90");
    s.warm_architecture = static_cast<int>(
        integer([](const char* number) { return number; }, target + 3, 0, 80, 999));
  }
  if (const char* gpu = lookup("HOLDFAST_GPU"); gpu && *gpu) {
    std::string_view name(gpu);
    if (name != "auto" && name != "native" && name != "simulated" && name != "cuda")
      reject("HOLDFAST_GPU", gpu, "auto, native, simulated or cuda");
    if (name == "native") s.gpu = Gpu::native;
    if (name == "simulated") s.gpu = Gpu::simulated;
    if (name == "cuda") s.gpu = Gpu::cuda;
  }
  if (const char* device = lookup("HOLDFAST_DEFAULT_DEVICE"); device && *device) {
    std::string_view name(device);
    if (name != "cpu" && name != "gpu") reject("HOLDFAST_DEFAULT_DEVICE", device, "cpu or gpu");
    s.default_device_is_gpu = name == "gpu";
  }
  return s;
}

const Settings& settings() { return settings_for_tests(); }

Settings& settings_for_tests() {
  static Settings parsed = [] {
    Settings s =
        parse([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
    for (const fault::Setting& fault : s.faults) fault::arm(fault.point, fault.k, fault.persistent);
    return s;
  }();
  return parsed;
}

std::string markdown() {
  std::string text = "| switch | default | meaning |\n|---|---|---|\n";
  for (const Switch& s : switches) {
    text += std::string("| `") + s.name + "` | " + s.default_text + " | " + s.meaning + " |\n";
  }
  return text;
}

}  // namespace holdfast::environment
