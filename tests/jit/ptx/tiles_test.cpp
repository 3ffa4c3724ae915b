// The functions of include/holdfast/tile.h: both lowerings for the CPU and the twins of the GPU's
// kernels against plain C++, and the instructions that they become.
#include <doctest/doctest.h>

#include <cstring>

#include "devices/cpu/jit/compiler/service.h"
#include "devices/cuda/assembler.h"
#include "devices/cuda/compiler/ptx.h"
#include "jit/ptx/tile_cases.h"
#include "jit/ptx/twin.h"

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;
using cuda::Positions;

namespace {

Words words_of(const std::vector<char>& bytes) {
  Words result(bytes.size() / 4);
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

Words run_case(const TileCase& one, Lowering lowering, InstructionSet set, bool guarded) {
  const GpuCase gpu = gpu_case(one);
  CompileOptions options;
  options.lowering = lowering;
  options.instruction_set = set;
  options.guarded = guarded;
  CompiledKernel compiled = service().compile(gpu.source, options);
  CHECK(compiled.remark == "");
  Ref<CpuPipeline> pipeline = CpuPipeline::load(one.name, compiled);
  std::vector<std::vector<char>> arguments;
  std::vector<void*> buffers;
  std::vector<ArgumentRange> ranges;
  for (const msl::KernelArgument& argument : pipeline->interface().arguments)
    arguments.push_back(gpu.argument(argument).bytes);
  for (std::vector<char>& bytes : arguments) {
    buffers.push_back(bytes.data());
    ranges.push_back({0, bytes.size()});
  }
  run(*pipeline, buffers, gpu.grid, gpu.threadgroup, {}, ranges);
  return words_of(arguments[1]);
}

}  // namespace

TEST_CASE("tile.h: every function on the CPU") {
  for (const TileCase& one : tile_cases()) {
    CAPTURE(std::string(one.name));
    CHECK(run_case(one, Lowering::reference, host_instruction_set(), false) == one.expected);
    CHECK(run_case(one, Lowering::checked, host_instruction_set(), false) == one.expected);
    CHECK(run_case(one, Lowering::widened, host_instruction_set(), true) == one.expected);
    for (InstructionSet set : instruction_sets()) {
      CAPTURE(static_cast<int>(set));
      CHECK(run_case(one, Lowering::widened, set, false) == one.expected);
    }
  }
}

TEST_CASE("tile.h: twins of the GPU's kernels") {
  for (const TileCase& one : tile_cases()) {
    CAPTURE(std::string(one.name));
    for (Positions positions : {Positions::rows, Positions::exact, Positions::general}) {
      const TwinResult twin = run_twin(gpu_case(one), positions, positions != Positions::exact);
      CHECK(twin.wrong_masks == 0);
      CHECK_FALSE(twin.gathers);
      CHECK(words_of(twin.arguments[1].bytes) == one.expected);
    }
  }
}

TEST_CASE("tile.h: instructions of the GPU") {
  const std::string assembler = cuda::find_assembler();
  for (const TileCase& one : tile_cases()) {
    CAPTURE(std::string(one.name));
    const GpuCase gpu = gpu_case(one);
    const cuda::PtxOptions options = gpu.options(Positions::rows);
    const cuda::PtxKernel kernel = cuda::compile_to_ptx(gpu.source, options);
    for (const char* instruction : one.instructions) {
      CAPTURE(std::string(instruction));
      CHECK(kernel.text.find(instruction) != std::string::npos);
    }
    if (!assembler.empty()) CHECK_NOTHROW(cuda::assemble(assembler, kernel.text, options.target));
  }
}

TEST_CASE("tile.h: a product is one instruction, on sm_80 as well, where launches do not overlap") {
  const std::string assembler = cuda::find_assembler();
  for (const TileCase& one : tile_cases()) {
    CAPTURE(std::string(one.name));
    const GpuCase gpu = gpu_case(one);
    cuda::PtxOptions options = gpu.options(Positions::general);
    options.target = 80;
    const cuda::PtxKernel kernel = cuda::compile_to_ptx(gpu.source, options);
    size_t products = 0;
    for (size_t at = 0; (at = kernel.text.find("mma.sync", at)) != std::string::npos; ++at)
      ++products;
    CHECK(products == (std::string(one.name).starts_with("mma") ? 2 : 0));
    CHECK(kernel.text.find("griddepcontrol") == std::string::npos);
    if (!assembler.empty()) CHECK_NOTHROW(cuda::assemble(assembler, kernel.text, options.target));
  }
}
