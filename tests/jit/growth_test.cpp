// How large kernels become by widening: in proportion to what they are, or not at all.
#include <doctest/doctest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "devices/cpu/jit/compiler/reference.h"
#include "devices/cpu/jit/compiler/widen/expand_math.h"
#include "devices/cpu/jit/compiler/widen/growth.h"
#include "devices/cpu/jit/compiler/widen/widen.h"
#include "jit/widen_testing.h"
#include "msl/frontend/frontend.h"
#include "msl/frontend/inline_calls.h"

namespace {

using namespace holdfast;
using namespace holdfast::jit;
using testing::Buffer;

std::string number(uint32_t value) { return std::to_string(value); }

// An interpreter: `cases` operations, some of which go on with the next one, by an operation code
// that lanes read from memory, on private registers.
std::string interpreter(uint32_t cases) {
  std::string text =
      "kernel void k(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],\n"
      "              uint gid [[thread_position_in_grid]]) {\n"
      "  uint a = in[gid], b = in[gid + 1], c = 0, p[16];\n"
      "  for (uint i = 0; i < 16; ++i) p[i] = a + i;\n"
      "  for (uint step = 0; step < 20; ++step) {\n"
      "    switch (in[(step * 7 + a) & 255] % " +
      number(cases + 1) + "u) {\n";
  for (uint32_t i = 0; i < cases; ++i) {
    text += "      case " + number(i) + ": a = a * " + number(2 * i + 3) + "u + in[(b + " +
            number(i) + ") & 255]; p[(a + " + number(i) + ") & 15] ^= b;" +
            (i % 3 == 2 ? " break;\n" : "\n");
  }
  return text + "      default: c += a;\n    }\n  }\n  out[gid] = a ^ b ^ c ^ p[a & 15];\n}\n";
}

// Lanes that leave at many places.
std::string returns(uint32_t count) {
  std::string text =
      "kernel void k(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],\n"
      "              uint gid [[thread_position_in_grid]]) {\n"
      "  uint a = in[gid], b = in[gid + 1];\n";
  for (uint32_t i = 0; i < count; ++i) {
    text += "  if (((a >> " + number(i % 27) + ") & 31) == " + number(i % 32) +
            ") { out[gid] = a + b * " + number(i) + "; return; }\n  a = a * 1664525u + in[(b + " +
            number(i) + ") & 255];\n";
  }
  return text + "  out[gid] = a;\n}\n";
}

uint64_t size_of_widened(const std::string& text) {
  msl::KernelSource source;
  source.kernel = source.entry = "k";
  source.text = "#include <metal_stdlib>\nusing namespace metal;\n" + text;
  llvm::LLVMContext context;
  msl::KernelInterface interface;
  std::unique_ptr<llvm::Module> module = msl::to_scalar_ir(source, context, interface);
  llvm::Function* scalar = nullptr;
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    define_arithmetic(function);
    expand_math(function, InstructionSet::avx2);
    if (!msl::is_shared_function(function)) scalar = &function;
  }
  WidenResult result = widen(*scalar, InstructionSet::avx2);
  REQUIRE_MESSAGE(result.group, result.declined);
  return Growth::size_of(*result.group);
}

}  // namespace

// Before tests of waiting lanes were shared, 100 cases became 72 MB of IR.
TEST_CASE("growth: many blocks that lanes wait for") {
  for (auto* make : {interpreter, returns}) {
    uint64_t some = size_of_widened(make(20)), more = size_of_widened(make(60));
    CAPTURE(some);
    CAPTURE(more);
    CHECK(more < 5 * some);
  }
  for (const std::string& text : {interpreter(12), returns(12)}) {
    testing::check_widened(text, {Buffer::integers(257, 5), Buffer::zeros(256 * 4)},
                           {{{256, 1, 1}, {64, 1, 1}}, {{75, 1, 1}, {50, 1, 1}}});
  }
}

// Each load is written out for 32 lanes: three thousand of them are more than is worth its time.
TEST_CASE("growth: a kernel that would become too large is not widened, and says so") {
  std::string text =
      "define void @kernel(ptr addrspace(1) %p, ptr addrspace(1) %out) {\n"
      "  %x0 = call i32 @__hf_thread_position_in_threadgroup(i32 0)\n";
  constexpr uint32_t loads = 3000;
  for (uint32_t i = 0; i < loads; ++i) {
    std::string id = number(i);
    text += "  %i" + id + " = and i32 %x" + id + ", 63\n  %w" + id + " = zext i32 %i" + id +
            " to i64\n  %a" + id + " = getelementptr i32, ptr addrspace(1) %p, i64 %w" + id +
            "\n  %x" + number(i + 1) + " = load i32, ptr addrspace(1) %a" + id + "\n";
  }
  text +=
      "  %t = zext i32 %x0 to i64\n"
      "  %o = getelementptr i32, ptr addrspace(1) %out, i64 %t\n"
      "  store i32 %x" +
      number(loads) + ", ptr addrspace(1) %o\n  ret void\n}\n";
  CompiledKernel kernel = testing::compile_ir(text, Lowering::automatic, InstructionSet::baseline);
  CHECK(kernel.lowering == Lowering::reference);
  CHECK(kernel.remark.find("it is too large: 1") == 0);
  CHECK(kernel.remark.find("for one thread would become more than 150000") != std::string::npos);
  CHECK_THROWS_WITH_AS(testing::compile_ir(text, Lowering::widened, InstructionSet::baseline),
                       doctest::Contains("[kernel] cannot be widened: it is too large"),
                       CompileError);
}
