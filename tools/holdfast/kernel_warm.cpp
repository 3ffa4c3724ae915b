// `holdfast kernel warm`: kernels are compiled for a GPU of another machine, into the cache.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "devices/cuda/cuda_target.h"
#include "exec/disk_cache.h"
#include "exec/kernel_warming.h"
#include "tools/holdfast/kernel_arguments.h"
#include "tools/holdfast/kernel_command.h"

namespace holdfast::tool {
namespace {

// Runs the program in the place of this one; what it compiles is compiled for the target, too.
[[noreturn]] void run_program(const std::string& target, Arguments words) {
  setenv("HOLDFAST_WARM_TARGET", target.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw UsageError(words[0] + ": " + std::strerror(errno));
}

}  // namespace

int run_kernel_warm(Arguments arguments) {
  KernelOptions options;
  std::string target;
  std::vector<std::string> files;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (options.take(arguments, i)) continue;
    if (arguments[i] == "--target") {
      target = value_of(arguments, i);
    } else if (arguments[i] == "--") {
      if (target.empty() || i + 1 == arguments.size())
        throw UsageError("kernel warm needs a --target and a program after --");
      run_program(target, arguments.subspan(i + 1));
    } else if (arguments[i].starts_with("-")) {
      throw UsageError("unknown option \"" + arguments[i] + "\"");
    } else {
      files.push_back(arguments[i]);
    }
  }
  if (files.empty()) throw UsageError("kernel warm needs a FILE, or a program after --");
  exec::Target& compiled_for = cuda::cuda_target(architecture_of(target), nullptr);
  exec::KernelOptions kernel_options = exec::user_kernel_options(options.compile.guarded);
  bool all_good = true;
  for (const std::string& file : files) {
    msl::KernelSource source = source_of_file(file);
    options.apply(source);
    for (const msl::KernelInterface& kernel : jit::default_compiler().list(source)) {
      source.kernel = source.entry = kernel.entry;
      try {
        const bool is_new = exec::warm_kernel(source, kernel_options, compiled_for);
        std::printf("%s  %s: %s\n", file.c_str(), kernel.entry.c_str(),
                    is_new ? "compiled" : "was there");
      } catch (const std::exception& error) {
        all_good = false;
        std::printf("%s  %s: FAILED %s\n", file.c_str(), kernel.entry.c_str(), error.what());
      }
    }
  }
  std::printf("cache: %s\n", exec::DiskCache::default_folder().c_str());
  return all_good ? 0 : 1;
}

}  // namespace holdfast::tool
