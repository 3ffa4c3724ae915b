// How ordinary code reaches a table of kernels that is compiled once per instruction set.
//
// A file in simd/ defines `const simd::Type name` inside namespace
// holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET; HOLDFAST_SIMD_TABLE(Type, name), at global scope of
// one ordinary file, defines `const simd::Type& simd::name()`.
#pragma once

#include "kernels/cpu/instruction_set.h"

#if defined(HOLDFAST_SIMD_ONLY_BASELINE)
#define HOLDFAST_SIMD_TABLE(Type, name)         \
  namespace holdfast::kernels::cpu::baseline {  \
  extern const simd::Type name;                 \
  }                                             \
  namespace holdfast::kernels::cpu::simd {      \
  const Type& name() { return baseline::name; } \
  }
#else
#define HOLDFAST_SIMD_TABLE(Type, name)        \
  namespace holdfast::kernels::cpu::baseline { \
  extern const simd::Type name;                \
  }                                            \
  namespace holdfast::kernels::cpu::avx2 {     \
  extern const simd::Type name;                \
  }                                            \
  namespace holdfast::kernels::cpu::avx512 {   \
  extern const simd::Type name;                \
  }                                            \
  namespace holdfast::kernels::cpu::simd {     \
  const Type& name() {                         \
    switch (instruction_set()) {               \
      case InstructionSet::avx512:             \
        return avx512::name;                   \
      case InstructionSet::avx2:               \
        return avx2::name;                     \
      case InstructionSet::baseline:           \
        break;                                 \
    }                                          \
    return baseline::name;                     \
  }                                            \
  }
#endif
