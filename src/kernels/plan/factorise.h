// What factorisations of matrices there are.
#pragma once

#include <cstdint>

namespace holdfast::kernels {

// Inputs are matrices [m, n] with batch dimensions before them, of float32, float64 or (svd, eigh,
// eig and their values) complex64; k = min(m, n). Numbers that files of functions hold: append
// only.
enum class FactorisationMethod : uint8_t {
  qr = 0,                // [m, k], [k, n]
  svd = 1,               // [m, m], [k] (real), [n, n]
  singular_values = 2,   // [k] (real)
  inverse = 3,           // [n, n]
  cholesky = 4,          // [n, n]
  lu_factor = 5,         // both factors in one matrix [m, n], pivots [k] (uint32, from 0)
  lu = 6,                // position of each row in L [m] (uint32), [m, k], [k, n]
  solve = 7,             // a second input, [n, columns], as the output
  solve_triangular = 8,  // the same
  eigh = 9,              // [n] (real), [n, n]
  eigvalsh = 10,         // [n] (real)
  eig = 11,              // [n], [n, n] (complex64)
  eigvals = 12,          // [n] (complex64)
  slogdet = 13,          // sign [], logarithm []
};

}  // namespace holdfast::kernels
