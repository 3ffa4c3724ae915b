// holdfast-aot: compiles the kernels of one .metal file ahead of time, into the images that the
// library embeds (devices/image_writer.h). Run by the build; `--help` says how.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <holdfast_jit_version.h>

#include "base/byte_stream.h"
#include "base/machine.h"
#include "devices/cpu/jit/compiler.h"
#include "devices/image_writer.h"
#include "tools/aot/compile_entry.h"

namespace holdfast::aot {
namespace {

constexpr const char* usage =
    R"(usage: holdfast-aot MODULE SOURCE OUTPUT [--instruction-set NAME]… [--ptx] [--report] [--no-cache]

Compiles all kernels of SOURCE, a .metal file without #include of its neighbours, with the kernel
compiler MODULE (libholdfast-jit.so), and writes their images to OUTPUT. Kernels that need function
constants are left out: their values are known when they run.

  --instruction-set NAME  images for the CPU: baseline, avx2, avx512, or native, the best that this
                          machine has; may be given several times
  --ptx                   images for NVIDIA GPUs
  --report                a line for each kernel: sizes, and what was in the cache
  --no-cache              compile everything, and keep nothing
  --help                  this text

What was compiled is kept, by what it was made from, in the folder `images` of the kernel cache
(HOLDFAST_CACHE_DIR, else XDG_CACHE_HOME/holdfast or ~/.cache/holdfast; at most 512 MiB): a file
that has not changed, and in a file that has changed each kernel that has not, is taken from there.
HOLDFAST_DISK_CACHE=0 turns that off, as --no-cache does.
)";

struct Options {
  std::string module, source, output;
  Targets targets;
  bool reports = false, has_cache = true, wants_help = false;
};

Options parse(int count, char** arguments) {
  Options options;
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.wants_help = true;
      return options;
    } else if (argument == "--ptx") {
      options.targets.has_ptx = true;
    } else if (argument == "--report") {
      options.reports = true;
    } else if (argument == "--no-cache") {
      options.has_cache = false;
    } else if (argument == "--instruction-set" && i + 1 < count) {
      const std::string name = arguments[++i];
      std::vector<jit::InstructionSet>& chosen = options.targets.instruction_sets;
      bool is_known = false;
      for (auto set : {jit::InstructionSet::baseline, jit::InstructionSet::avx2,
                       jit::InstructionSet::avx512}) {
        // native: the best that this machine has, as a process here would compile for
        // (jit::host_instruction_set).
        if (name != jit::instruction_set_name(set) && name != "native") continue;
        is_known = true;
        if (name == "native" && !machine::supports(set)) continue;
        if (name == "native") chosen.clear();
        chosen.push_back(set);
      }
      if (!is_known) throw std::invalid_argument("unknown instruction set \"" + name + "\"");
    } else if (argument.starts_with("-")) {
      throw std::invalid_argument("unknown argument \"" + argument + "\"\n" + usage);
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.size() != 3) {
    throw std::invalid_argument("expected MODULE SOURCE OUTPUT, got " +
                                std::to_string(paths.size()) + " paths\n" + usage);
  }
  options.module = paths[0];
  options.source = paths[1];
  options.output = paths[2];
  return options;
}

jit::Compiler& load_compiler(const std::string& path) {
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) throw std::runtime_error(dlerror());
  using Factory = jit::Compiler*(const char*);
  auto* factory = reinterpret_cast<Factory*>(dlsym(module, "holdfast_jit_compiler"));
  jit::Compiler* compiler = factory ? factory(HOLDFAST_JIT_VERSION) : nullptr;
  if (!compiler) throw std::runtime_error(path + " belongs to another build");
  return *compiler;
}

// Calls work(0), work(1), … on all cores. Throws the first exception.
void in_parallel(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  auto run = [&] {
    for (size_t i; (i = next++) < count;) {
      try {
        work(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()) - 1);
  for (std::thread& thread : threads) thread = std::thread(run);
  run();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

// The bytes of the images; in `report` a line for each kernel.
std::string compile_file(const msl::KernelSource& source, const Options& options, ImageCache& cache,
                         std::string& report) {
  const auto kernels = load_compiler(options.module).parse(source);
  std::vector<Compiled> compiled(kernels->kernels().size());
  in_parallel(compiled.size(), [&](size_t i) {
    if (kernels->kernels()[i].assumed_constants.empty())
      compiled[i] = compile_entry(*kernels, i, options.targets, cache);
  });
  exec::ImageWriter writer;
  for (size_t i = 0; i < compiled.size(); ++i) {
    const msl::KernelInterface& interface = kernels->kernels()[i];
    for (const Compiled::Image& image : compiled[i].images)
      writer.add(image.name, interface.entry, image.bytes);
    report += interface.assumed_constants.empty()
                  ? compiled[i].report
                  : interface.entry + "  not compiled: needs function constants";
    report += '\n';
  }
  return writer.take(source.text);
}

void run(const Options& options) {
  std::ifstream file(options.source, std::ios::binary);
  msl::KernelSource source;
  source.text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file) throw std::runtime_error("cannot read " + options.source);
  const size_t slash = options.source.rfind('/') + 1;
  source.kernel = options.source.substr(slash, options.source.rfind('.') - slash);

  const char* disk_cache = std::getenv("HOLDFAST_DISK_CACHE");
  ImageCache cache(options.has_cache && (!disk_cache || std::string(disk_cache) != "0"));
  ByteWriter key;
  key.text(source.kernel);
  key.text(source.text);
  key.value(static_cast<uint8_t>(options.targets.has_ptx));
  for (jit::InstructionSet set : options.targets.instruction_sets) key.text(jit::image_name(set));
  std::string report;
  const std::string bytes =
      cache.get("file", key.take(), [&] { return compile_file(source, options, cache, report); });
  if (options.reports)
    std::printf("%s", report.empty() ? "all kernels from the cache\n" : report.c_str());

  std::ofstream out(options.output, std::ios::binary);
  out << bytes;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + options.output);
}

}  // namespace
}  // namespace holdfast::aot

int main(int count, char** arguments) {
  try {
    const holdfast::aot::Options options = holdfast::aot::parse(count, arguments);
    if (options.wants_help) {
      std::printf("%s", holdfast::aot::usage);
    } else {
      holdfast::aot::run(options);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holdfast-aot: %s\n", error.what());
    return 1;
  }
}
