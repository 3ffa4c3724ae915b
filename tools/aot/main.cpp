// holdfast-aot: compiles the kernels of one .metal file ahead of time, into the images that the
// library embeds (devices/image_writer.h). Run by the build.
//
//   holdfast-aot MODULE SOURCE OUTPUT [--instruction-set NAME]… [--ptx] [--report]
//
// MODULE is the kernel compiler, SOURCE a file without #include of its neighbours. Entries that
// need function constants are left out: their values are known when they run.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
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

#include "base/machine.h"
#include "devices/cpu/jit/compiler.h"
#include "devices/cpu/jit/kernel_format.h"
#include "devices/cuda/compiled_kernel.h"
#include "devices/image_writer.h"

namespace holdfast::aot {
namespace {

struct Options {
  std::string module, source, output;
  std::vector<jit::InstructionSet> instruction_sets;
  bool has_ptx = false, reports = false;
};

Options parse(int count, char** arguments) {
  Options options;
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--ptx") {
      options.has_ptx = true;
    } else if (argument == "--report") {
      options.reports = true;
    } else if (argument == "--instruction-set" && i + 1 < count) {
      const std::string name = arguments[++i];
      bool is_known = false;
      for (auto set : {jit::InstructionSet::baseline, jit::InstructionSet::avx2,
                       jit::InstructionSet::avx512}) {
        // native: the best that this machine has, as a process here would compile for
        // (jit::host_instruction_set).
        if (name != jit::instruction_set_name(set) && name != "native") continue;
        is_known = true;
        if (name == "native" && !machine::supports(set)) continue;
        if (name == "native") options.instruction_sets.clear();
        options.instruction_sets.push_back(set);
      }
      if (!is_known) throw std::invalid_argument("unknown instruction set \"" + name + "\"");
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.size() != 3) {
    throw std::invalid_argument(
        "usage: holdfast-aot MODULE SOURCE OUTPUT [--instruction-set NAME]… [--ptx] [--report]");
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

// What one entry becomes.
struct Compiled {
  struct Image {
    std::string name, bytes;
  };
  std::vector<Image> images;
  std::string report;
};

size_t count_of(const std::string& text, const char* word) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++count;
  return count;
}

// The text without the line that names the target.
std::string without_target(const std::string& ptx) {
  const size_t begin = ptx.find(".target"), end = ptx.find('\n', begin);
  return begin == std::string::npos ? ptx : ptx.substr(0, begin) + ptx.substr(end);
}

void compile_for_cpu(const jit::ParsedKernels& kernels, size_t number, jit::InstructionSet set,
                     Compiled& out) {
  jit::CompileOptions options;
  options.instruction_set = set;
  jit::CompiledKernel kernel = kernels.compile(number, options);
  out.report += "  " + jit::image_name(set) + " " + std::to_string(kernel.object.size()) +
                (kernel.remark.empty() ? " bytes" : " bytes, not widened: " + kernel.remark);
  out.images.push_back({jit::image_name(set), jit::to_bytes(kernel)});
}

void compile_for_gpu(const jit::ParsedKernels& kernels, size_t number, Compiled& out) {
  std::string first;
  for (uint32_t target : {80u, 90u}) {
    cuda::PtxOptions options;
    options.target = target;
    bool gathers = false;
    cuda::CompiledKernel kernel = cuda::compile_images(
        [&](const cuda::PtxOptions& one) {
          cuda::PtxKernel image = kernels.compile_to_ptx(number, one);
          gathers |= image.gathers;
          return image;
        },
        options, true);
    std::string all;
    for (const cuda::KernelImage& image : kernel.images) all += without_target(image.code);
    if (first == all) continue;
    if (first.empty()) first = all;
    const std::string name = cuda::image_name(target);
    out.report += "  " + name + " " + std::to_string(all.size()) + " bytes, " +
                  std::to_string(count_of(all, ".v4.")) + " of v4" +
                  (gathers ? ", lanes gather" : "");
    out.images.push_back({name, kernel.to_bytes()});
  }
}

Compiled compile(const jit::ParsedKernels& kernels, size_t number, const Options& options) {
  Compiled compiled;
  compiled.report = kernels.kernels()[number].entry;
  for (jit::InstructionSet set : options.instruction_sets)
    compile_for_cpu(kernels, number, set, compiled);
  if (options.has_ptx) compile_for_gpu(kernels, number, compiled);
  return compiled;
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

void run(const Options& options) {
  std::ifstream file(options.source, std::ios::binary);
  msl::KernelSource source;
  source.text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file) throw std::runtime_error("cannot read " + options.source);
  const size_t slash = options.source.rfind('/') + 1;
  source.kernel = options.source.substr(slash, options.source.rfind('.') - slash);

  const auto kernels = load_compiler(options.module).parse(source);
  std::vector<Compiled> compiled(kernels->kernels().size());
  in_parallel(compiled.size(), [&](size_t i) {
    if (kernels->kernels()[i].assumed_constants.empty())
      compiled[i] = compile(*kernels, i, options);
  });

  exec::ImageWriter writer;
  for (size_t i = 0; i < compiled.size(); ++i) {
    const msl::KernelInterface& interface = kernels->kernels()[i];
    for (const Compiled::Image& image : compiled[i].images)
      writer.add(image.name, interface.entry, image.bytes);
    if (options.reports) {
      std::printf("%s\n",
                  interface.assumed_constants.empty()
                      ? compiled[i].report.c_str()
                      : (interface.entry + "  not compiled: needs function constants").c_str());
    }
  }
  const std::string bytes = writer.take(source.text);
  std::ofstream out(options.output, std::ios::binary);
  out << bytes;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + options.output);
}

}  // namespace
}  // namespace holdfast::aot

int main(int count, char** arguments) {
  try {
    holdfast::aot::run(holdfast::aot::parse(count, arguments));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holdfast-aot: %s\n", error.what());
    return 1;
  }
}
