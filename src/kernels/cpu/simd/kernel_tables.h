// What each build of simd/ exports: the tables of its kernels.
#pragma once

#include "kernels/cpu/chain.h"
#include "kernels/cpu/elementwise.h"

// One row an op, in the order of elementwise.def; nullptr where the op rejects the lane. The first
// two take the integer lanes of that width (narrow: with b8).
#define HOLDFAST_DECLARE_KERNEL_TABLES(target)                  \
  namespace holdfast::kernels::cpu::target {                    \
  const BlockKernel* narrow_integer_kernels(Lane lane);         \
  const BlockKernel* wide_integer_kernels(Lane lane);           \
  const BlockKernel* float_kernels();                           \
  const simd::ChainKernels& chain_kernels();                    \
  const BlockKernel* double_kernels();                          \
  const BlockKernel* complex_kernels();                         \
  ConvertKernel lane_converter(Lane from, Lane to);             \
  ConvertKernel half_loader(Dtype::Val from);                   \
  ConvertKernel half_storer(Dtype::Val to);                     \
  ConvertKernel half_rounder(Dtype::Val half);                  \
  ConvertKernel half_converter(Dtype::Val from, Dtype::Val to); \
  }

HOLDFAST_DECLARE_KERNEL_TABLES(baseline)
#ifndef HOLDFAST_SIMD_ONLY_BASELINE
HOLDFAST_DECLARE_KERNEL_TABLES(avx2)
HOLDFAST_DECLARE_KERNEL_TABLES(avx512)
#endif
#undef HOLDFAST_DECLARE_KERNEL_TABLES
