#include <metal_stdlib>
using namespace metal;
namespace detail { template <class F, class... A> auto call(F f, A... a) { return f(a...); } template <int... I> struct list { static constexpr int size = sizeof...(I); }; }
template <typename T> struct is_small { static constexpr bool value = sizeof(T) < 4; };
template <typename T, typename = metal::enable_if_t<is_small<T>::value>> T widen_it(T a) { return a * 2; }
template <typename T> T fold(T a) { return a; }
template <typename T, typename... R> T fold(T a, R... r) { return a + fold(r...); }
constexpr int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
struct Walker { device float* p; int step; device float& operator[](int i) const { return p[i * step]; } void advance() thread { p += step; } };
kernel void lambdas(device float* x, device half* h, uint i [[thread_position_in_grid]]) {
  auto scale = [=](float a) { return a * detail::list<1, 2, 3>::size; };
  Walker w{x, fib(6)}; w.advance();
  w[i] = detail::call(scale, fold(1.0f, x[i], float(widen_it(h[i]))));
  array<float, 4> values = {1, 2, 3, 4};
  for (float v : values) x[i] += v;
  thread auto& first = values[0]; first = 3; x[0] = first;
}
