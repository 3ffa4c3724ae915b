// Which build of the SIMD kernels runs on this machine.
//
// The files in simd/ are compiled once for each instruction set, each into a namespace of its own;
// the best one that the processor supports is chosen at the first use.
#pragma once

#include <vector>

#include "base/machine.h"

namespace holdfast::kernels::cpu {

using machine::instruction_set_name;
using machine::InstructionSet;

// The one in use: the best that is both built in and supported by this processor, unless forced.
InstructionSet instruction_set();

// Those that are built in and run on this processor, from plain to wide; baseline is always one.
std::vector<InstructionSet> available_instruction_sets();

// How products of bfloat16 are computed: in float32; by instructions for pairs (AVX-512 BF16); by
// instructions for tiles (AMX). The best that the processor has and Linux allows, where the set in
// use is avx512.
enum class BFloat16Products { in_float32, in_pairs, in_tiles };
BFloat16Products bfloat16_products();
inline bool has_bfloat16_dot() { return bfloat16_products() >= BFloat16Products::in_pairs; }
inline bool has_bfloat16_tiles() { return bfloat16_products() >= BFloat16Products::in_tiles; }

// Whether there is an instruction that sums the products of bytes (AVX-512 VNNI).
bool has_byte_dot();

// For tests and benchmarks: makes later kernel look-ups use `set`, which must be available. Kernels
// already looked up are not affected; results of two instruction sets may differ in the last bits.
void force_instruction_set(InstructionSet set);
// Back to the automatic choice.
void unforce_instruction_set();
// For tests: as if the processor had no more than this.
void limit_bfloat16_products(BFloat16Products most);
void limit_byte_dot(bool allowed);

}  // namespace holdfast::kernels::cpu
