// Names that Metal leaves to programs.
#include <metal_stdlib>
using namespace metal;

template <typename T>
T forward(T x) {
  return x + 1;
}
template <typename T>
T move(T x) {
  return x + 2;
}
template <typename T>
void swap(thread T& a, thread T& b) {
  T c = a;
  a = b;
  b = c;
}
template <typename T>
T scan(T x) {
  return x;
}
template <typename T>
T lane(T x) {
  return x;
}
template <typename T>
T reduce(T x) {
  return x;
}
template <typename T>
T shuffle(T x) {
  return x;
}
template <typename T>
T convert(T x) {
  return x;
}
template <typename T>
T smaller(T x) {
  return x;
}
template <typename T>
T log_values(T x) {
  return x;
}
struct Sum {};
struct Product {};
struct common {};
enum { width = 3, map = 4, apply = 5 };
template <typename T>
struct void_type {};
namespace metal {
template <typename... T>
struct make_void {
  using type = void;
};
template <typename... T>
using void_t = typename make_void<T...>::type;
template <typename T>
struct is_empty : bool_constant<__is_empty(T)> {};
template <typename T>
struct pointer_element {};
template <typename T>
struct pointer_element<device T*> {
  using type = remove_cv_t<T>;
};
}  // namespace metal

kernel void own_names(device uint* ok [[buffer(0)]]) {
  float2 a(1), b(2);
  swap(a, b);
  ok[0] = forward(a).x == 3 && move(b).x == 3 && scan(a).x == 2 && shuffle(convert(smaller(a))).x == 2;
  ok[1] = lane(reduce(log_values(b))).x == 1 && width + map + apply == 12;
  ok[2] = is_empty<Sum>::value && is_same_v<typename pointer_element<const device half*>::type, half>;
}
