#include <holdfast/holdfast.h>

#include <cstdio>

int main() {
  holdfast::array a = holdfast::array({1.0f, 2.0f});
  holdfast::array c = holdfast::add(a, a);
  holdfast::eval(c);
  std::printf("%g %g\n", c.data<float>()[0], c.data<float>()[1]);
}
