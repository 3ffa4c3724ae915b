// Random kernels, widened and by the reference lowering. HOLDFAST_TEST_SEED runs one of them.
#include <doctest/doctest.h>
#include <llvm/IR/LLVMContext.h>

#include <algorithm>
#include <cstdlib>

#include "devices/cpu/jit/compiler/service.h"
#include "jit/random_kernel.h"
#include "jit/widen_testing.h"

namespace {

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;

Ref<CpuPipeline> compile_random(uint64_t seed, Lowering lowering, InstructionSet set,
                                bool guarded) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = make_random_kernel(context, seed);
  msl::KernelInterface interface;
  interface.entry = "kernel";
  for (uint32_t i = 0; i < 4; ++i) {
    msl::KernelArgument argument;
    argument.slot = i;
    interface.arguments.push_back(argument);
  }
  CompileOptions options;
  options.lowering = lowering;
  options.instruction_set = set;
  options.guarded = guarded;
  if (const char* folder = std::getenv("HOLDFAST_DUMP_KERNELS")) options.dump_directory = folder;
  return CpuPipeline::load("kernel",
                           compile_scalar_ir(std::move(module), interface, options, "kernel"));
}

// How many bytes of a buffer a guarded kernel is told of: all, most, or few.
uint64_t told(uint64_t bytes, uint64_t seed, size_t buffer) {
  const uint64_t kind = (seed >> (2 * buffer)) % 3;
  return kind == 0 ? bytes : kind == 1 ? bytes - bytes / 4 - seed % 7 : bytes / 8 + seed % 5;
}

// With guards, kernels may touch only a part of their buffers: what is outside reads as 0 and stays
// as it is, in both lowerings alike.
void check_random(uint64_t first, uint64_t count, bool guarded = false) {
  const std::vector<Dispatch> shapes = {
      {{192, 1, 1}, {64, 1, 1}}, {{150, 1, 1}, {96, 1, 1}}, {{32, 4, 1}, {32, 2, 1}},
      {{20, 6, 2}, {8, 4, 2}},   {{33, 3, 1}, {33, 3, 1}},  {{7, 1, 1}, {7, 1, 1}},
  };
  if (const char* one = std::getenv("HOLDFAST_TEST_SEED")) {
    first = std::strtoull(one, nullptr, 10);
    count = 1;
  }
  std::vector<InstructionSet> sets = instruction_sets();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    InstructionSet set = sets[seed % sets.size()];
    Ref<CpuPipeline> reference = compile_random(seed, Lowering::reference, set, guarded);
    Ref<CpuPipeline> widened = compile_random(seed, Lowering::widened, set, guarded);
    for (size_t shape = 0; shape < shapes.size(); ++shape) {
      CAPTURE(shape);
      std::vector<Buffer> buffers = {Buffer::integers(random_words, 1, random_small_words),
                                     Buffer::integers(random_words, 2), Buffer::zeros(4096 * 4),
                                     Buffer::zeros(64)};
      std::vector<Buffer> expected = buffers, got = buffers;
      std::vector<ArgumentRange> ranges;
      for (size_t i = 0; guarded && i < buffers.size(); ++i)
        ranges.push_back({0, told(buffers[i].bytes.size(), seed, i)});
      std::string said[2];
      for (auto [pipeline, of] : {std::pair{&reference, &expected}, std::pair{&widened, &got}}) {
        std::vector<void*> pointers;
        for (Buffer& buffer : *of) pointers.push_back(buffer.bytes.data());
        try {
          run(**pipeline, pointers, shapes[shape].grid, shapes[shape].threadgroup, {}, ranges);
        } catch (const std::runtime_error& error) {
          said[of == &got] = error.what();
        }
      }
      CHECK(said[0].empty() == said[1].empty());
      CHECK((said[0].empty() || said[0].find("writes outside of") != said[0].npos));
      CHECK((guarded || said[0].empty()));
      for (size_t i = 0; i < ranges.size(); ++i) {
        const auto end = static_cast<std::ptrdiff_t>(ranges[i].bytes);
        CHECK(std::equal(buffers[i].bytes.begin() + end, buffers[i].bytes.end(),
                         got[i].bytes.begin() + end));
      }
      for (size_t i = 2; i < 4; ++i) {
        auto where =
            std::mismatch(expected[i].bytes.begin(), expected[i].bytes.end(), got[i].bytes.begin());
        CHECK_MESSAGE(where.first == expected[i].bytes.end(), "buffer ", i, " byte ",
                      where.first - expected[i].bytes.begin());
      }
    }
  }
}

}  // namespace

TEST_CASE("widen: random kernels") { check_random(1, 30); }
TEST_CASE("widen: random kernels that may touch a part of their buffers") {
  check_random(1, 20, true);
}
TEST_CASE("widen: many random kernels that may touch a part of their buffers [long]") {
  check_random(1000, 1500, true);
}
// A pass found that a place in it is never reached.
TEST_CASE("widen: a random kernel with an unreachable end") { check_random(2617, 1); }
TEST_CASE("widen: many random kernels [long]") { check_random(1000, 3000); }
