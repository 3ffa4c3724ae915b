// Members that are overloaded by address space, constructors in constant memory, types without
// their space.
#include <metal_stdlib>
using namespace metal;

struct Pair {
  float first, second;
  constexpr Pair(float a, float b) thread : first(a), second(b) {}
  constexpr Pair(float a, float b) constant : first(a), second(b) {}
  constexpr Pair(float a) constant : first(a), second(a) {}
  Pair() threadgroup = default;
  Pair() thread = default;
  float sum() const thread { return first + second; }
  float sum() const device { return first + second; }
  float sum() const threadgroup { return first + second; }
  float sum() const constant { return first + second; }
  float scaled(float by) constant { return by * (first + second); }
  float scaled(float by) const thread { return by * (first + second); }
  void set(float value) thread { first = second = value; }
  void set(float value) device { first = second = value; }
  void set(float value) volatile device { first = second = value; }
  template <typename T>
  operator T() const thread {
    return static_cast<T>(first);
  }
  template <typename T>
  operator T() const constant {
    return static_cast<T>(first);
  }
  thread float& operator[](int i) thread { return i == 0 ? first : second; }
};

constant Pair three_four(3, 4);
constant Pair five(5);

template <typename P>
struct Inside {
  using type = remove_addrspace_t<remove_reference_t<decltype(*P())>>;
};

kernel void members(device uint* ok [[buffer(0)]], device Pair* pairs [[buffer(1)]],
                    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup Pair shared[1];
  if (lane == 0) {
    shared[0] = Pair(1, 2);
    pairs[0].set(4);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  Pair mine(7, 8);
  mine[1] = 9;
  ok[0] = three_four.sum() == 7 && five.sum() == 10 && three_four.scaled(2) == 14;
  ok[1] = shared[0].sum() == 3 && mine.sum() == 16 && pairs[0].sum() == 8;
  ok[2] = int(mine) == 7 && int(five) == 5 && mine.scaled(0.5) == 8;
}

kernel void types(device uint* ok [[buffer(0)]]) {
  static_assert(is_same_v<remove_addrspace_t<device float>, float>, "");
  static_assert(is_same_v<remove_addrspace_t<const device float>, const float>, "");
  static_assert(is_same_v<remove_addrspace_t<threadgroup Pair>, Pair>, "");
  static_assert(is_same_v<remove_addrspace_t<float>, float>, "");
  static_assert(is_same_v<typename Inside<device half*>::type, half>, "");
  static_assert(is_same_v<remove_const_t<typename Inside<constant int*>::type>, int>, "");
  ok[0] = 1;
}
