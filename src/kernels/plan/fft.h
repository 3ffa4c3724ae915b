// What Fourier transforms there are.
#pragma once

#include <cstdint>

namespace holdfast::kernels {

// Numbers that files of functions hold: append only.
enum class FftKind : uint8_t {
  complex = 0,
  to_half = 1,    // real input; of the spectrum, the first half
  from_half = 2,  // the inverse
};

// A transform of rows to `length` elements. Inputs shorter than they should be are padded with
// zeros, longer ones cut.
struct FftSettings {
  FftKind kind;
  bool inverse;
  int length;
  float scale;
};

}  // namespace holdfast::kernels
