// The two lowerings against each other, on random programs: every bit must agree, on every
// instruction set. HOLDFAST_TEST_SEED=n runs one seed and prints its program,
// HOLDFAST_TEST_SEED=m..n runs seeds m to n.
#include <doctest/doctest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "devices/cpu/jit/compiler/service.h"
#include "jit/random_kernels.h"
#include "msl/frontend/frontend.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;

namespace {

struct Results {
  std::vector<uint32_t> values;
  std::vector<float> floats;
  std::vector<uint32_t> counters, placed;
};

bool same(float a, float b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0 || (std::isnan(a) && std::isnan(b));
}

// Where the two differ first; empty when they do not.
std::string difference(const Results& a, const Results& b) {
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i] != b.values[i])
      return "out[" + std::to_string(i) + "]: " + std::to_string(a.values[i]) + " and " +
             std::to_string(b.values[i]);
  }
  for (size_t i = 0; i < a.floats.size(); ++i) {
    if (!same(a.floats[i], b.floats[i]))
      return "fout[" + std::to_string(i) + "]: " + std::to_string(a.floats[i]) + " and " +
             std::to_string(b.floats[i]);
  }
  if (a.counters != b.counters) return "counters";
  if (a.placed != b.placed) return "placed";
  return "";
}

Results run_once(const CpuPipeline& pipeline, const RandomKernel& kernel) {
  size_t threads = size_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
  Results results;
  results.values.resize(threads * random_kernel_results);
  results.floats.resize(threads * random_kernel_floats);
  results.counters.resize(random_kernel_counters);
  results.placed.resize(threads * random_kernel_placed);
  std::vector<uint32_t> in(random_kernel_inputs), parameters(random_kernel_parameters),
      table(random_kernel_table);
  for (uint32_t i = 0; i < table.size(); ++i) table[i] = i * 2654435761u;
  std::array<int32_t, 16> sizes = kernel.sizes;
  for (uint32_t i = 0; i < in.size(); ++i) in[i] = (i * 2246822519u) >> (i % 24);
  for (uint32_t i = 0; i < parameters.size(); ++i) parameters[i] = (i * 40503u) >> 3;
  // By parameter of the function, whatever their order.
  std::map<std::string, void*> by_name{{"in", in.data()},
                                       {"out", results.values.data()},
                                       {"fout", results.floats.data()},
                                       {"counters", results.counters.data()},
                                       {"parameters", parameters.data()},
                                       {"table", table.data()},
                                       {"placed", results.placed.data()},
                                       {"sizes", sizes.data()}};
  std::vector<void*> buffers;
  for (const msl::KernelArgument& argument : pipeline.interface().arguments)
    buffers.push_back(by_name.at(argument.name));
  run(pipeline, buffers, kernel.grid, kernel.threadgroup);
  return results;
}

// What went wrong with the seed; empty when nothing did. Counts the kernels that were widened.
std::string check(uint64_t seed, const std::vector<InstructionSet>& sets,
                  std::atomic<int>& widened) {
  RandomKernel kernel = random_kernel(seed);
  msl::KernelSource source;
  source.kernel = "random_kernel";
  source.text = kernel.source;
  llvm::LLVMContext context;
  msl::KernelInterface interface;
  std::unique_ptr<llvm::Module> scalar = msl::to_scalar_ir(source, context, interface);
  auto compile = [&](Lowering lowering, InstructionSet set) {
    CompileOptions options;
    options.lowering = lowering;
    options.instruction_set = set;
    if (const char* folder = std::getenv("HOLDFAST_DUMP_KERNELS")) options.dump_directory = folder;
    return CpuPipeline::load(
        "random_kernel",
        compile_scalar_ir(llvm::CloneModule(*scalar), interface, options, "random_kernel"));
  };
  Results expected = run_once(*compile(Lowering::reference, host_instruction_set()), kernel);
  for (InstructionSet set : sets) {
    Ref<CpuPipeline> pipeline = compile(Lowering::automatic, set);
    widened += pipeline->is_widened();
    if (pipeline->kernel().remark.find("internal error") != std::string::npos)
      return std::string(instruction_set_name(set)) + ": " + pipeline->kernel().remark;
    std::string found = difference(expected, run_once(*pipeline, kernel));
    if (!found.empty())
      return std::string(pipeline->is_widened() ? "widened" : "reference") + ", " +
             instruction_set_name(set) + ": " + found;
  }
  return "";
}

// Each seed on one instruction set in turn, or on all; as many seeds at once as there are
// processors.
void check_seeds(uint64_t first, uint64_t end, bool on_all) {
  if (const char* given = std::getenv("HOLDFAST_TEST_SEED")) {
    char* rest = nullptr;
    first = std::strtoull(given, &rest, 10);
    end = (std::strncmp(rest, "..", 2) == 0 ? std::strtoull(rest + 2, nullptr, 10) : first) + 1;
    if (end - first == 1) std::puts(random_kernel(first).source.c_str());
  }
  const std::vector<InstructionSet> all = instruction_sets();
  std::atomic<uint64_t> next = first;
  std::atomic<int> widened = 0, tried = 0;
  std::mutex mutex;
  std::vector<std::string> problems;
  holdfast::testing::on_threads(
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), [&](int) {
        for (uint64_t seed; (seed = next++) < end;) {
          std::vector<InstructionSet> sets;
          if (on_all || end - first == 1) {
            sets = all;
          } else {
            // Code for the baseline takes longest to compile.
            sets.push_back(seed % 8 == 0 ? all.front()
                                         : all[all.size() - 1 - seed % 2 % all.size()]);
          }
          tried += static_cast<int>(sets.size());
          std::string problem;
          try {
            problem = check(seed, sets, widened);
          } catch (const std::exception& error) {
            problem = error.what();
          }
          std::lock_guard lock(mutex);
          if (!problem.empty()) {
            problems.push_back("HOLDFAST_TEST_SEED=" + std::to_string(seed) + ": " + problem);
          }
          if (on_all && seed % 100 == 0) std::printf("seed %ju\n", static_cast<uintmax_t>(seed));
        }
      });
  for (const std::string& problem : problems) CHECK_MESSAGE(false, problem);
  CHECK(tried > 0);
  MESSAGE("widened ", widened.load(), " of ", tried.load());
}

}  // namespace

TEST_CASE("random kernels: widened and reference agree on every bit") {
  check_seeds(1, 101, /*on_all=*/false);
}

TEST_CASE("random kernels: thousands of them [long]") { check_seeds(1001, 4001, /*on_all=*/true); }
