// The reference lowering: the scalar function as it is, one call for each thread of a threadgroup.
// Slow and obviously right: the oracle of the tests, and what runs where widening declines.
#pragma once

#include <cstdint>

#include "msl/frontend/define_arithmetic.h"

namespace llvm {
class Function;
}

namespace holdfast::jit {

// Makes `void <entry>.thread(ThreadContext*)` of the scalar function (msl/scalar_ir.h), which is
// consumed: the module holds only the new one afterwards.
//  - positions come from the context, threadgroup variables lie in GroupContext::threadgroup_memory
//    (`threadgroup_bytes` of it, each aligned to 16 bytes or more);
//  - cross-lane operations and barriers are calls through ReferenceRuntime;
//  - every loop polls GroupContext::cancelled on its back edge;
//  - arithmetic is defined for all operands (msl/frontend/define_arithmetic.h).
// `parks`, when not null, says whether a thread can wait for others: if not, it needs no fibre.
llvm::Function* lower_to_thread(llvm::Function& scalar, uint32_t& threadgroup_bytes,
                                bool* parks = nullptr);

using msl::define_arithmetic;

}  // namespace holdfast::jit
