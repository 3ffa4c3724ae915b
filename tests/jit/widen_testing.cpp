#include "jit/widen_testing.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "devices/cpu/jit/compiler/service.h"

namespace holdfast::jit::testing {

Buffer Buffer::floats(size_t count, uint32_t seed, float low, float high) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values)
    value = low + (high - low) * static_cast<float>(random() >> 8) / 16777216.0f;
  return of(values);
}

Buffer Buffer::integers(size_t count, uint32_t seed, uint32_t limit) {
  std::mt19937 random(seed);
  std::vector<uint32_t> values(count);
  for (uint32_t& value : values) value = limit == ~0u ? random() : random() % limit;
  return of(values);
}

Buffer Buffer::zeros(size_t bytes) { return {std::vector<char>(bytes)}; }

std::vector<ArgumentRange> ranges_of(const std::vector<Buffer>& buffers) {
  std::vector<ArgumentRange> ranges;
  for (const Buffer& buffer : buffers) ranges.push_back({0, buffer.bytes.size()});
  return ranges;
}

CompiledKernel compile_msl(const std::string& text, Lowering lowering, InstructionSet set,
                           bool guarded) {
  msl::KernelSource source;
  source.kernel = "k";
  source.entry = "k";
  source.text = "#include <metal_stdlib>\nusing namespace metal;\n" + text;
  CompileOptions options;
  options.lowering = lowering;
  options.instruction_set = set;
  options.guarded = guarded;
  if (const char* folder = std::getenv("HOLDFAST_DUMP_KERNELS")) options.dump_directory = folder;
  return service().compile(source, options);
}

std::vector<Buffer> run_msl(const std::string& text, Lowering lowering, InstructionSet set,
                            std::vector<Buffer> buffers, const Dispatch& dispatch) {
  Ref<CpuPipeline> pipeline = CpuPipeline::load("k", compile_msl(text, lowering, set));
  std::vector<void*> pointers;
  for (Buffer& buffer : buffers) pointers.push_back(buffer.bytes.data());
  run(*pipeline, pointers, dispatch.grid, dispatch.threadgroup);
  return buffers;
}

void check_widened(const std::string& text, const std::vector<Buffer>& buffers,
                   const std::vector<Dispatch>& dispatches) {
  for (InstructionSet set : instruction_sets()) {
    Ref<CpuPipeline> reference =
        CpuPipeline::load("k", compile_msl(text, Lowering::reference, set));
    Ref<CpuPipeline> widened = CpuPipeline::load("k", compile_msl(text, Lowering::widened, set));
    Ref<CpuPipeline> guarded =
        CpuPipeline::load("k", compile_msl(text, Lowering::widened, set, true));
    for (const Dispatch& dispatch : dispatches) {
      std::vector<Buffer> expected = buffers, got = buffers, got_guarded = buffers;
      auto pointers = [](std::vector<Buffer>& of) {
        std::vector<void*> result;
        for (Buffer& buffer : of) result.push_back(buffer.bytes.data());
        return result;
      };
      run(*reference, pointers(expected), dispatch.grid, dispatch.threadgroup);
      run(*widened, pointers(got), dispatch.grid, dispatch.threadgroup);
      CHECK_NOTHROW(run(*guarded, pointers(got_guarded), dispatch.grid, dispatch.threadgroup, {},
                        ranges_of(buffers)));
      CAPTURE(static_cast<int>(set));
      CAPTURE(dispatch.grid[0]);
      CAPTURE(dispatch.threadgroup[0]);
      CAPTURE(dispatch.threadgroup[1]);
      for (size_t i = 0; i < buffers.size(); ++i) {
        CAPTURE(i);
        size_t differs = 0;
        while (differs < expected[i].bytes.size() &&
               expected[i].bytes[differs] == got[i].bytes[differs])
          ++differs;
        CHECK_MESSAGE(differs == expected[i].bytes.size(), "first difference at byte ", differs);
        CHECK(expected[i].bytes == got_guarded[i].bytes);
      }
    }
  }
}

}  // namespace holdfast::jit::testing
