// Random kernels in scalar IR: divergent branches, loops with breaks and early returns, private
// arrays, threadgroup memory with barriers, shuffles, reductions, atomics; those of even seeds also
// signed sums that are made in one block and index memory in others. What they leave in memory does
// not depend on the order of threads.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <memory>

namespace holdfast::jit::testing {

// Buffers of @kernel: 0 and 1 read (`words` words each), 2 written (`results` words for each thread
// of the grid), 3 counters (16 words). The words of buffer 0 are less than `small_words`.
inline constexpr uint32_t random_words = 2048, random_results = 4, random_small_words = 300;
// What signed sums add up to, and what is taken away from them: together inside a buffer.
inline constexpr int random_most_sum = 1400, random_most_start = 600;

std::unique_ptr<llvm::Module> make_random_kernel(llvm::LLVMContext& context, uint64_t seed);

}  // namespace holdfast::jit::testing
