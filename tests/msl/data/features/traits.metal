// The rest of <metal_type_traits>, as nested conditions use it.
#include <metal_type_traits>
#include <metal_stdlib>
using namespace metal;

template <typename T>
constexpr constant bool is_atomic_type =
    _disjunction<is_same<T, int>, is_same<T, uint>, _conjunction<is_floating_point<T>, _negation<is_same<T, half>>>>::value;

template <typename T, typename = void>
struct storage {
  using type = T;
};
template <typename T>
struct storage<T, enable_if_t<disjunction_v<is_same<T, bool>, is_same<T, char>>>> {
  using type = uint;
};
template <typename T, typename U>
using wider_t = conditional_t<(sizeof(T) > sizeof(U)), T, U>;

struct Shape {
  float sides[3];
};

kernel void conditions(device uint* ok [[buffer(0)]]) {
  static_assert(is_atomic_type<int> && is_atomic_type<float> && !is_atomic_type<half> && !is_atomic_type<char>, "");
  static_assert(is_same_v<typename storage<bool>::type, uint> && is_same_v<typename storage<short>::type, short>, "");
  static_assert(is_same_v<wider_t<half, float>, float>, "");
  static_assert(is_same_v<common_type_t<int, float>, float> && is_same_v<common_type_t<half, half>, half>, "");
  static_assert(rank_v<float[2][3]> == 2 && extent_v<float[2][3], 1> == 3 && alignment_of_v<float4> == 16, "");
  static_assert(is_convertible_v<int, float> && is_base_of_v<Shape, Shape> && is_trivially_copyable_v<Shape>, "");
  static_assert(is_same_v<add_cv_t<int>, const volatile int> && is_same_v<type_identity_t<half>, half>, "");
  static_assert(is_assignable_v<thread int&, int> && is_copy_constructible_v<Shape> && !is_polymorphic_v<Shape>, "");
  ok[0] = 1;
}
