#include <doctest/doctest.h>

#include <holdfast/fft.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Lengths of one pass and of several, of all radices, and of others.
const std::vector<Shape> short_rows = {{3, 1},  {5, 2},  {0, 4},  {4, 3},   {300, 8},
                                       {2, 60}, {7, 49}, {1, 11}, {40, 13}, {2, 9, 26}};
const std::vector<Shape> long_rows = {{3, 2048},  {2, 2187}, {3, 4096}, {1, 6000},
                                      {2, 16807}, {2, 1009}, {1, 3001}, {1, 1 << 19}};

const Row fft_rows[] = {
    {.name = "complex transforms",
     .entries = {"fft_pass"},
     .dtypes = {complex64},
     .shapes = {},
     .layouts = {Layout::dense, Layout::shifted, Layout::transposed, Layout::reversed},
     .build =
         [](Case& c) {
           array x = c.input(c.shape);
           const int n = c.shape.back();
           return std::vector<array>{fft::fft(x), fft::ifft(x), fft::fft(x, n + 3, -1),
                                     fft::ifft(x, (n + 1) / 2, -1)};
         }},
    {.name = "real transforms",
     .entries = {"fft_pass"},
     .dtypes = {float32},
     .shapes = {},
     .layouts = {Layout::dense, Layout::shifted, Layout::padded},
     .build =
         [](Case& c) {
           array x = c.input(c.shape), spectrum = c.input(c.shape, complex64);
           const int n = c.shape.back();
           return std::vector<array>{fft::rfft(x),
                                     fft::rfft(x, n + 1, -1),
                                     fft::rfft(x, (n + 1) / 2, -1),
                                     fft::irfft(spectrum, n, -1),
                                     fft::irfft(spectrum, 2 * n, -1),
                                     fft::irfft(spectrum, 2 * n + 3, -1)};
         }},
};

}  // namespace

TEST_CASE("metal fourier transforms") {
  for (Row row : fft_rows) {
    // What rounding does to an element is of the size of the largest one, which grows with the root
    // of the length.
    row.shapes = short_rows;
    row.tolerance = 400;
    compare(row);
    row.shapes = long_rows;
    row.tolerance = 0x1p14;
    compare(row);
  }
}
