#include <holdfast/holdfast.h>

#include <cstdio>

namespace hf = holdfast;

int main() {
  hf::array a = hf::array({1.0f, 2.0f});
  hf::array c = hf::add(a, a);
  hf::eval(c);
  std::printf("%g %g\n", c.data<float>()[0], c.data<float>()[1]);
  if (!hf::metal::is_available()) return 0;
  // The compiler of kernels is found in the prefix.
  auto kernel = hf::fast::metal_kernel("thrice", {"x"}, {"y"},
                                       "uint i = thread_position_in_grid.x;\n"
                                       "y[i] = 3 * x[i];");
  hf::array y = kernel({a}, {a.shape()}, {a.dtype()}, {2, 1, 1}, {2, 1, 1}, {}, {}, false, {})[0];
  hf::eval(y);
  std::printf("%g %g\n", y.data<float>()[0], y.data<float>()[1]);
}
