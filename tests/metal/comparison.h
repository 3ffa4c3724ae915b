// The Metal back-end beside the CPU's: what one computes with kernels on a simulated GPU, the other
// computes with native code, from the same inputs.
//
// To add a family of ops:
//   1. src/kernels/metal/<family>.metal has the kernels. Include "support/indexing.h"; name each
//      entry with [[host_name("<family>_…")]]. `holdfast kernel check FILE` compiles them by hand,
//      with `--target sm_90` for an NVIDIA GPU: both must accept every entry.
//   2. src/kernels/metal/encode/<family>.cpp has MetalBackend's functions of the family, which
//      encode dispatches with Launch (kernels/metal/launch.h). What a family has no kernel for (a
//      dtype, a size) throws NoKernel before anything is encoded: the host computes it.
//   3. tests/metal/<family>_test.cpp has one row for each op (Row), and a test case that runs them.
//      Each row is compared for all of its dtypes, shapes and layouts. It names the entries that
//      its cases must have dispatched, together: a case that the host computed proves nothing.
//
// Rows are compared bit for bit unless they say how far results may differ.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <holdfast/holdfast.h>

namespace holdfast::testing {

// How inputs lie in memory.
enum class Layout {
  dense,
  shifted,     // one element behind the beginning of a buffer
  transposed,  // the last axis is the first in memory
  padded,      // rows of a wider matrix
  every_other,
  reversed,   // along all axes
  broadcast,  // along the first axis
};
inline const std::vector<Layout> all_layouts = {
    Layout::dense,       Layout::shifted,  Layout::transposed, Layout::padded,
    Layout::every_other, Layout::reversed, Layout::broadcast};

// Empty, 0-d, odd and even, small and larger than a threadgroup.
extern const std::vector<Shape> common_shapes;
extern const std::vector<Dtype> metal_dtypes;  // all but float64
extern const std::vector<Dtype> integer_dtypes, float_dtypes;

// One comparison: makes the inputs of the op, the same whenever it is asked.
class Case {
 public:
  Case(Dtype dtype, Shape shape, Layout layout)
      : dtype(dtype), shape(std::move(shape)), layout(layout) {}

  const Dtype dtype;
  const Shape shape;
  const Layout layout;

  // A view of random elements in the case's layout: integers of all sizes, floating-point numbers
  // between -4 and 4, of the case's dtype where none is given. Each call gives other elements.
  array input(Shape of) { return input(std::move(of), dtype); }
  array input(Shape of, Dtype type);
  // Integers from low to high - 1, for indices.
  array integers(Shape of, Dtype type, int64_t low, int64_t high);

  std::string description() const;
  // The inputs from the first one on; `magnitudes`: only how large their elements are, as float32.
  void restart(bool magnitudes = false) {
    inputs_ = 0;
    magnitudes_ = magnitudes;
  }

 private:
  array laid_out(const std::function<array(const Shape&)>& make, Shape of) const;
  uint32_t inputs_ = 0;
  bool magnitudes_ = false;
};

struct Row {
  std::string name;
  // Beginnings of names of entries, each of which the row's cases dispatch.
  std::vector<std::string> entries;
  std::vector<Dtype> dtypes;
  std::vector<Shape> shapes;
  std::vector<Layout> layouts;
  std::function<std::vector<array>(Case&)> build;
  // Of the result's magnitude or, for results below 1, of 1; and in units of the last place of the
  // dtype. 0: bit for bit, NaNs of any kind being equal.
  double tolerance = 0;
  // Of sums of products: how many products a result has at most. With n of them, sums of float32 in
  // any order are within 8 sqrt(n) 2^-24 of the sum of the products' magnitudes (N. Higham and T.
  // Mary, "A new approach to probabilistic rounding error analysis" (2019): but for one in 10^13 n
  // results). That sum is what `build` gives for the inputs' magnitudes. Both devices may be that
  // far from the exact result; `tolerance` is for the rounding of the result, and then relative to
  // it.
  std::function<double(const Case&)> products = nullptr;
};

// Evaluates each case of the row on both devices, and compares shapes, dtypes and elements; then
// one case of each dtype by instrumented kernels, which must find nothing
// (HOLDFAST_VALIDATE=kernels).
void compare(const Row& row);

}  // namespace holdfast::testing
