// metal::is_same and its kind. `is_empty`, `make_void`, `void_t` and `pointer_element` are left
// out on purpose: libraries that are pasted into kernels define them in namespace metal.
#pragma once

#include <holdfast/base.h>

namespace metal {

template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  using type = integral_constant;
  HF_INLINE constexpr operator value_type() const { return v; }
  HF_INLINE constexpr value_type operator()() const { return v; }
};
template <bool v>
using bool_constant = integral_constant<bool, v>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <bool condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool condition, class T = void>
using enable_if_t = typename enable_if<condition, T>::type;

template <bool condition, class T, class F>
struct conditional {
  using type = T;
};
template <class T, class F>
struct conditional<false, T, F> {
  using type = F;
};
template <bool condition, class T, class F>
using conditional_t = typename conditional<condition, T, F>::type;

// An address space counts as a qualifier: these take it away with const and volatile.
#define HF_TRANSFORM(name, builtin) \
  template <class T>                \
  struct name {                     \
    using type = builtin(T);        \
  };                                \
  template <class T>                \
  using name##_t = typename name<T>::type;
HF_TRANSFORM(remove_const, __remove_const)
HF_TRANSFORM(remove_volatile, __remove_volatile)
HF_TRANSFORM(remove_reference, __remove_reference_t)
HF_TRANSFORM(remove_pointer, __remove_pointer)
HF_TRANSFORM(remove_extent, __remove_extent)
HF_TRANSFORM(remove_all_extents, __remove_all_extents)
HF_TRANSFORM(add_pointer, __add_pointer)
HF_TRANSFORM(add_lvalue_reference, __add_lvalue_reference)
HF_TRANSFORM(add_rvalue_reference, __add_rvalue_reference)
HF_TRANSFORM(decay, __decay)
HF_TRANSFORM(make_signed, __make_signed)
HF_TRANSFORM(make_unsigned, __make_unsigned)
HF_TRANSFORM(underlying_type, __underlying_type)
#undef HF_TRANSFORM

template <class T>
struct remove_cv {
  using type = __remove_cv(T);
};
template <class T>
struct remove_cv<device T> : remove_cv<T> {};
template <class T>
struct remove_cv<const device T> : remove_cv<T> {};
template <class T>
struct remove_cv<constant T> : remove_cv<T> {};
template <class T>
struct remove_cv<threadgroup T> : remove_cv<T> {};
template <class T>
struct remove_cv<const threadgroup T> : remove_cv<T> {};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
struct remove_cvref {
  using type = remove_cv_t<__remove_reference_t(T)>;
};
template <class T>
using remove_cvref_t = typename remove_cvref<T>::type;
template <class T>
struct add_const {
  using type = const T;
};
template <class T>
using add_const_t = const T;
template <class T>
struct add_volatile {
  using type = volatile T;
};
template <class T>
using add_volatile_t = volatile T;
template <class T>
struct add_cv {
  using type = const volatile T;
};
template <class T>
using add_cv_t = const volatile T;

// The type without its address space; const and volatile stay, and constant memory is const.
template <class T>
struct remove_addrspace {
  using type = T;
};
template <class T>
struct remove_addrspace<device T> {
  using type = T;
};
template <class T>
struct remove_addrspace<threadgroup T> {
  using type = T;
};
template <class T>
struct remove_addrspace<constant T> {
  using type = const T;
};
template <class T>
using remove_addrspace_t = typename remove_addrspace<T>::type;

template <class T>
struct type_identity {
  using type = T;
};
template <class T>
using type_identity_t = T;

template <class T>
HF_INLINE add_rvalue_reference_t<T> declval();

#define HF_UNARY_TRAIT(name, ...)                \
  template <class T>                             \
  struct name : bool_constant<(__VA_ARGS__)> {}; \
  template <class T>                             \
  inline constexpr bool name##_v = (__VA_ARGS__);
HF_UNARY_TRAIT(is_void, __is_void(T))
HF_UNARY_TRAIT(is_integral, __is_integral(remove_cv_t<T>))
HF_UNARY_TRAIT(is_floating_point, __is_floating_point(remove_cv_t<T>))
HF_UNARY_TRAIT(is_arithmetic, __is_arithmetic(remove_cv_t<T>))
HF_UNARY_TRAIT(is_fundamental, __is_fundamental(remove_cv_t<T>))
HF_UNARY_TRAIT(is_scalar, __is_scalar(remove_cv_t<T>))
HF_UNARY_TRAIT(is_signed, __is_signed(remove_cv_t<T>))
HF_UNARY_TRAIT(is_unsigned, __is_unsigned(remove_cv_t<T>))
HF_UNARY_TRAIT(is_pointer, __is_pointer(T))
HF_UNARY_TRAIT(is_array, __is_array(T))
HF_UNARY_TRAIT(is_enum, __is_enum(T))
HF_UNARY_TRAIT(is_union, __is_union(T))
HF_UNARY_TRAIT(is_class, __is_class(T))
HF_UNARY_TRAIT(is_function, __is_function(T))
HF_UNARY_TRAIT(is_const, __is_const(T))
HF_UNARY_TRAIT(is_volatile, __is_volatile(T))
HF_UNARY_TRAIT(is_reference, __is_reference(T))
HF_UNARY_TRAIT(is_lvalue_reference, __is_lvalue_reference(T))
HF_UNARY_TRAIT(is_rvalue_reference, __is_rvalue_reference(T))
HF_UNARY_TRAIT(is_trivial, __is_trivial(T))
HF_UNARY_TRAIT(is_standard_layout, __is_standard_layout(T))
HF_UNARY_TRAIT(is_default_constructible, __is_constructible(T))
HF_UNARY_TRAIT(is_copy_constructible, __is_constructible(T, const T&))
HF_UNARY_TRAIT(is_move_constructible, __is_constructible(T, T&&))
HF_UNARY_TRAIT(is_copy_assignable, __is_assignable(T&, const T&))
HF_UNARY_TRAIT(is_move_assignable, __is_assignable(T&, T&&))
HF_UNARY_TRAIT(is_trivially_default_constructible, __is_trivially_constructible(T))
HF_UNARY_TRAIT(is_trivially_destructible, __is_trivially_destructible(T))
HF_UNARY_TRAIT(is_literal_type, __is_literal_type(T))
HF_UNARY_TRAIT(is_polymorphic, __is_polymorphic(T))
HF_UNARY_TRAIT(is_abstract, __is_abstract(T))
HF_UNARY_TRAIT(is_final, __is_final(T))
HF_UNARY_TRAIT(is_object, __is_object(T))
HF_UNARY_TRAIT(is_compound, __is_compound(T))
HF_UNARY_TRAIT(is_member_pointer, __is_member_pointer(T))
#undef HF_UNARY_TRAIT

// A vec counts as trivially copyable: its copies are written out member by member, so that no
// memcpy stays in a kernel, and mean the same.
template <class T, int n>
struct vec;
template <class T>
struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class T, int n>
struct is_trivially_copyable<vec<T, n>> : true_type {};
template <class T>
inline constexpr bool is_trivially_copyable_v = is_trivially_copyable<T>::value;

template <class T, class U>
struct is_same : false_type {};
template <class T>
struct is_same<T, T> : true_type {};
template <class T, class U>
inline constexpr bool is_same_v = __is_same(T, U);
template <class Base, class Derived>
struct is_base_of : bool_constant<__is_base_of(Base, Derived)> {};
template <class Base, class Derived>
inline constexpr bool is_base_of_v = __is_base_of(Base, Derived);
template <class From, class To>
struct is_convertible : bool_constant<__is_convertible(From, To)> {};
template <class From, class To>
inline constexpr bool is_convertible_v = __is_convertible(From, To);
template <class T, class... Args>
struct is_constructible : bool_constant<__is_constructible(T, Args...)> {};
template <class T, class... Args>
inline constexpr bool is_constructible_v = __is_constructible(T, Args...);
template <class To, class From>
struct is_assignable : bool_constant<__is_assignable(To, From)> {};
template <class To, class From>
inline constexpr bool is_assignable_v = __is_assignable(To, From);

template <class T>
struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <class T>
inline constexpr size_t alignment_of_v = alignof(T);
template <class T>
struct rank : integral_constant<size_t, __array_rank(T)> {};
template <class T>
inline constexpr size_t rank_v = __array_rank(T);
template <class T, unsigned axis = 0>
struct extent : integral_constant<size_t, __array_extent(T, axis)> {};
template <class T, unsigned axis = 0>
inline constexpr size_t extent_v = __array_extent(T, axis);

template <class... T>
struct common_type {};
template <class T>
struct common_type<T> {
  using type = __decay(T);
};
template <class A, class B>
struct common_type<A, B> {
  using type = __decay(decltype(false ? declval<A>() : declval<B>()));
};
template <class A, class B, class... Rest>
struct common_type<A, B, Rest...> {
  using type = typename common_type<typename common_type<A, B>::type, Rest...>::type;
};
template <class... T>
using common_type_t = typename common_type<T...>::type;

template <class F, class... Args>
struct invoke_result {
  using type = decltype(declval<F>()(declval<Args>()...));
};
template <class F, class... Args>
using invoke_result_t = typename invoke_result<F, Args...>::type;

template <class... B>
struct conjunction : bool_constant<(B::value && ...)> {};
template <class... B>
struct disjunction : bool_constant<(B::value || ...)> {};
template <class B>
struct negation : bool_constant<!B::value> {};
// By the names that Metal's own headers give them.
template <class... B>
using _conjunction = conjunction<B...>;
template <class... B>
using _disjunction = disjunction<B...>;
template <class B>
using _negation = negation<B>;
template <class... B>
inline constexpr bool conjunction_v = (B::value && ...);
template <class... B>
inline constexpr bool disjunction_v = (B::value || ...);
template <class B>
inline constexpr bool negation_v = !B::value;

template <class T, T... values>
struct integer_sequence {
  using value_type = T;
  static constexpr size_t size() { return sizeof...(values); }
};
// The compiler makes all of the numbers, however many.
template <unsigned long count>
struct __hf_sequence_length {
  static_assert(count <= 65536, "a sequence of more than 65536 integers");
  static constexpr unsigned long value = count <= 65536 ? count : 0;
};
template <class T, T count>
using make_integer_sequence =
    __make_integer_seq<integer_sequence, T,
                       static_cast<T>(
                           __hf_sequence_length<static_cast<unsigned long>(count)>::value)>;
template <size_t... values>
using index_sequence = integer_sequence<size_t, values...>;
template <size_t count>
using make_index_sequence = make_integer_sequence<size_t, count>;

}  // namespace metal

namespace __hf {

using metal::vec;

// Stops deduction from a parameter: the argument is converted to what the others decided.
template <class T>
struct same_as {
  using type = T;
};
template <class T>
using same = typename same_as<T>::type;

// The scalars of the language. `real` is the type that mathematical functions give for an argument
// of the type: half and bfloat keep theirs, integers become float.
template <class T>
struct scalar {};
#define HF_SCALAR(T, R) \
  template <>           \
  struct scalar<T> {    \
    using type = T;     \
    using real = R;     \
  };
HF_SCALAR(bool, float)
HF_SCALAR(char, float)
HF_SCALAR(signed char, float)
HF_SCALAR(uchar, float)
HF_SCALAR(short, float)
HF_SCALAR(ushort, float)
HF_SCALAR(int, float)
HF_SCALAR(uint, float)
HF_SCALAR(long, float)
HF_SCALAR(ulong, float)
HF_SCALAR(long long, float)
HF_SCALAR(unsigned long long, float)
HF_SCALAR(half, half)
HF_SCALAR(bfloat, bfloat)
HF_SCALAR(float, float)
#undef HF_SCALAR
template <class T>
using scalar_t = typename scalar<T>::type;
template <class T>
using real_t = typename scalar<T>::real;

template <class T>
inline constexpr bool is_float = __is_same(T, float) || __is_same(T, half) || __is_same(T, bfloat);

template <class T>
using if_integer = metal::enable_if_t<__is_integral(T), T>;
template <class T>
using if_float = metal::enable_if_t<is_float<T>, T>;

// The type in which two scalars meet: their own when they agree, what C++ makes of a + b when not
// (half with an integer is half, with float is float), float for half with bfloat.
template <class A, class B, class = scalar_t<A>, class = scalar_t<B>>
struct common {
  using type = decltype(A() + B());
};
template <class A>
struct common<A, A, A, A> {
  using type = A;
};
template <>
struct common<half, bfloat, half, bfloat> {
  using type = float;
};
template <>
struct common<bfloat, half, bfloat, half> {
  using type = float;
};
template <class A, class B>
using common_t = typename common<A, B>::type;
template <class A, class B, class C>
using common3_t = common_t<common_t<A, B>, C>;

// A conversion as a cast writes it; half and bfloat meet in float.
template <class To, class From>
HF_INLINE constexpr To convert(From value) {
  if constexpr ((__is_same(To, half) && __is_same(From, bfloat)) ||
                (__is_same(To, bfloat) && __is_same(From, half)))
    return static_cast<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

}  // namespace __hf

// The operand of a cast from half to bfloat or back, which the front-end puts through float because
// clang has no such cast. In a template the same cast may see other types: these stay what they
// are.
template <class T>
HF_INLINE constexpr auto __hf_meet(T value) {
  if constexpr (__is_same(T, half) || __is_same(T, bfloat))
    return static_cast<float>(value);
  else
    return value;
}
