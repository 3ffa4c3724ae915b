// A factorisation of one matrix into memory.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

#include "kernels/plan/factorise.h"

namespace holdfast::kernels::cpu {

// One matrix: addresses of its inputs and outputs.
struct MatrixTask {
  FactorisationMethod method;
  bool upper;  // which half is given, or wanted
  int m, n;
  int columns;  // of the right side, where there is one
  const char* inputs[2];
  char* outputs[3];
};

// dtype: float32, float64 or complex64. Throws std::runtime_error when the factorisation fails.
void factorise(Dtype::Val dtype, const MatrixTask& task);

// An output [..., n, n] or [..., n] of `count` elements, of a matrix without elements: the
// orthogonal factors of svd are unit matrices, and lu permutes no row.
void factorise_empty(FactorisationMethod method, Dtype::Val dtype, int64_t n, int64_t count,
                     void* output);

}  // namespace holdfast::kernels::cpu
