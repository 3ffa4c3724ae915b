// Objects as they come from a cache: sound, damaged, foreign.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <stdexcept>

#include "devices/cpu/jit/image.h"
#include "jit/kernel_testing.h"

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;

namespace {

// A kernel with constants, a table, a switch: relocations of several kinds.
const char* const rich = R"(
@table = internal addrspace(5) constant [4 x i32] [i32 11, i32 22, i32 33, i32 44]
define void @kernel(ptr addrspace(1) %out) {
entry:
  %i = call i32 @__hf_thread_position_in_threadgroup(i32 0)
  %k = and i32 %i, 3
  %p = getelementptr i32, ptr addrspace(5) @table, i32 %k
  %t = load i32, ptr addrspace(5) %p
  %f = uitofp i32 %i to float
  %g = fmul float %f, 0x3FD5555560000000
  switch i32 %i, label %other [ i32 0, label %a
    i32 1, label %b
    i32 2, label %c
    i32 3, label %d
    i32 4, label %e ]
a:
  %sa = call i32 @__hf_reduce_add_u32(i32 1)
  br label %join
b:
  %sb = call i32 @__hf_reduce_add_u32(i32 20)
  br label %join
c:
  %sc = call i32 @__hf_reduce_add_u32(i32 300)
  br label %join
d:
  %sd = call i32 @__hf_reduce_add_u32(i32 4000)
  br label %join
e:
  %se = call i32 @__hf_reduce_add_u32(i32 50000)
  br label %join
other:
  br label %join
join:
  %v = phi i32 [ %sa, %a ], [ %sb, %b ], [ %sc, %c ], [ %sd, %d ], [ %se, %e ], [ 0, %other ]
  %u = fptoui float %g to i32
  %w = add i32 %v, %u
  %r = add i32 %w, %t
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %r, ptr addrspace(1) %to
  ret void
})";

// Loads it or says no; anything else (a crash, a hang) fails the test by itself.
bool loads(const std::vector<char>& object) {
  try {
    Image image(object);
    image.find("kernel.thread");
    return true;
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).find("[jit]") == 0);
    return false;
  }
}

}  // namespace

TEST_CASE("image: an object with tables, constants and jumps runs on every instruction set") {
  for (InstructionSet set : instruction_sets()) {
    CAPTURE(instruction_set_name(set));
    std::vector<uint32_t> out(40);
    run(*load_ir(rich, Lowering::reference, set), {out.data()}, {40, 1, 1}, {40, 1, 1});
    const uint32_t table[] = {11, 22, 33, 44}, cases[] = {1, 20, 300, 4000, 50000};
    for (uint32_t i = 0; i < 40; ++i) {
      auto third = static_cast<uint32_t>(static_cast<float>(i) * 0x1.555556p-2f);
      REQUIRE(out[i] == (i < 5 ? cases[i] : 0) + third + table[i % 4]);
    }
  }
}

TEST_CASE("image: nothing that is mapped can be written") {
  CompiledKernel kernel = compile_ir(rich, Lowering::reference, host_instruction_set());
  Image image(kernel.object);
  REQUIRE(image.find(kernel.symbol) != nullptr);
  CHECK(image.find("kernel") == nullptr);
  CHECK(image.contains(image.find(kernel.symbol)));
  CHECK_FALSE(image.contains(&image));
}

TEST_CASE("image: truncated objects are refused") {
  CompiledKernel kernel = compile_ir(rich, Lowering::reference, host_instruction_set());
  for (size_t size = 0; size < kernel.object.size(); ++size)
    REQUIRE_FALSE(loads(std::vector<char>(kernel.object.begin(),
                                          kernel.object.begin() + static_cast<ptrdiff_t>(size))));
}

TEST_CASE("image: damaged bytes never lead outside the object") {
  CompiledKernel kernel = compile_ir(rich, Lowering::reference, host_instruction_set());
  // Where the tables are: header, section headers; then anywhere.
  std::mt19937 random(1);
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<char> object = kernel.object;
    size_t flips = 1 + random() % 3;
    for (size_t i = 0; i < flips; ++i) {
      uint64_t offset = 0;
      std::memcpy(&offset, kernel.object.data() + 40, sizeof(offset));  // e_shoff
      size_t at = random() % 4 == 0   ? random() % 64
                  : random() % 2 == 0 ? offset + random() % (object.size() - offset)
                                      : random() % object.size();
      static const char interesting[] = {0, 1, 127, -128, -1};
      object[at] = random() % 2 == 0 ? interesting[random() % 5]
                                     : static_cast<char>(object[at] ^ (1 << random() % 8));
    }
    refused += !loads(object);
  }
  CHECK(refused > 1000);
}

TEST_CASE("image: a pipeline without its function is refused") {
  CompiledKernel kernel = compile_ir(rich, Lowering::reference, host_instruction_set());
  kernel.symbol = "elsewhere";
  CHECK_THROWS_AS(CpuPipeline::load("kernel", kernel), std::runtime_error);
}
