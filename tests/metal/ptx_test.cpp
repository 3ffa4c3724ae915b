// Every kernel of the back-end reaches PTX, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "devices/cpu/jit/compiler.h"
#include "kernels/metal/entries.h"
#include "support/threads.h"

using namespace holdfast;

TEST_CASE("the Metal back-end's kernels reach PTX") {
  jit::Compiler& compiler = jit::default_compiler();
  struct Entry {
    msl::KernelSource source;
    msl::KernelInterface interface;
  };
  std::vector<Entry> entries;
  for (const kernels::metal::EmbeddedSource& file : kernels::metal::embedded_sources()) {
    msl::KernelSource source;
    source.text = file.text;
    source.kernel = file.name;
    source.assume_missing_constants = true;
    for (msl::KernelInterface& interface : compiler.list(source)) {
      source.kernel = source.entry = interface.entry;
      entries.push_back({source, std::move(interface)});
    }
  }
  CHECK(entries.size() > 20);

  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::vector<std::string> problems;
  testing::on_threads(
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), [&](int) {
        for (size_t i; (i = next++) < entries.size();) {
          cuda::PtxOptions options;
          options.max_threads = entries[i].interface.max_threads;
          options.alignment.assign(entries[i].interface.arguments.size(), 16);
          options.trusts_source_alignment = true;
          std::string problem;
          try {
            cuda::PtxKernel kernel = compiler.compile_to_ptx(entries[i].source, options);
            if (kernel.text.find(".entry") == std::string::npos) problem = "no entry";
          } catch (const std::exception& error) {
            problem = error.what();
          }
          if (problem.empty()) continue;
          std::lock_guard lock(mutex);
          problems.push_back(entries[i].interface.entry + ": " + problem);
        }
      });
  CHECK(problems == std::vector<std::string>{});
}
