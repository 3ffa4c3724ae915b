// What the fuzzer of kernels puts into texts, beside pieces of its corpus.
#pragma once

namespace holdfast::fuzzing {

// clang-format off
// What is inserted, beside the tokens of the corpus.
inline constexpr const char* words[] = {
    "(", ")", "{", "}", "[", "]", "<", ">", "[[", "]]", ";", ",", "::", "->", "...", "#", "##", "\\\n", "0", "-1", "1/0", "0x7fffffff",
    "0xffffffffffffffff", "2147483648", "1e400", "1e-400", "0.0/0.0", "1.5h", "2bf", "0x1p-1", "1.e", "'a'", "\"text\"", "u8\"x\"", "R\"(", "/*", "*/",
    "//", "?\?/", "device", "constant", "threadgroup", "thread", "threadgroup_imageblock", "const", "volatile", "static", "extern", "inline", "constexpr",
    "consteval", "mutable", "virtual", "explicit", "friend", "typename", "template", "template<>", "using", "typedef", "auto", "decltype",
    "decltype(auto)", "sizeof", "alignof", "alignas(1<<30)", "alignas(4)", "new", "delete", "throw", "try", "catch(...)", "noexcept", "typeid",
    "dynamic_cast<int*>", "reinterpret_cast<device int*>", "const_cast<int*>", "static_cast<half>", "(thread float*)", "(device float*)",
    "(threadgroup int*)", "goto x; x:", "asm(\"nop\")", "__asm__ volatile(\"\" ::: \"memory\")", "co_await", "co_return", "concept", "requires", "switch",
    "case", "case 0 ... 9:", "default:", "break", "continue", "return", "if constexpr", "for(;;)", "while(1)", "do", "bool", "char", "uchar", "short",
    "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat", "double", "void", "size_t", "__int128", "_BitInt(37)", "_BitInt(128)",
    "_Complex float", "_Atomic int", "long double", "wchar_t", "float2", "float4", "half4", "bool3", "uchar4", "packed_float3", "float4x4",
    "simdgroup_float8x8", "simdgroup_matrix<half, 8, 8>", "atomic_int", "atomic_uint", "atomic_float", "array<int, 4>", "metal::vec<float, 3>",
    "[[kernel]]", "[[host_name(\"f\")]]", "[[buffer(0)]]", "[[buffer(99999999999)]]", "[[threadgroup(0)]]", "[[thread_position_in_grid]]",
    "[[function_constant(0)]]", "[[function_constant(-1)]]", "[[max_total_threads_per_threadgroup(0)]]", "[[thread_index_in_simdgroup, buffer(3)]]",
    "[[unroll]]", "[[noreturn]]", "[[maybe_unused]]", "[[clang::opencl_global]]", "__attribute__((aligned(268435456)))",
    "__attribute__((vector_size(64)))", "__attribute__((ext_vector_type(7)))", "__attribute__((noinline))", "__attribute__((always_inline))",
    "__attribute__((naked))", "__attribute__((weak))", "__attribute__((alias(\"f\")))", "__attribute__((section(\".text\")))",
    "__attribute__((cleanup(f)))", "__attribute__((target(\"avx2\")))", "__attribute__((constructor))", "__attribute__((address_space(7)))",
    "__attribute__((packed))", "__attribute__((mode(TI)))", "__declspec(align(64))", "__shared__", "__thread", "thread_local", "__block", "__restrict",
    "__builtin_trap()", "__builtin_unreachable()", "__builtin_alloca(1<<20)", "__builtin_va_list", "__builtin_frame_address(0)",
    "__builtin_return_address(0)", "__builtin_memcpy", "__builtin_constant_p(i)", "__builtin_assume(i > 3)", "__builtin_bit_cast(int, 1.0f)",
    "__builtin_shufflevector", "__builtin_convertvector", "__builtin_nontemporal_load", "__builtin_setjmp(0)", "__builtin_debugtrap()",
    "__builtin_add_overflow", "__builtin_expect(i, 1)", "__builtin_prefetch(x)", "__builtin_launder(x)", "__builtin_ia32_pause()", "__nvvm_barrier0()",
    "__builtin_classify_type(1)", "__builtin_object_size(x, 0)", "__builtin_choose_expr(1, 2, 3)", "__builtin_clz(0)", "__builtin_offsetof(S, a)",
    "__func__", "__LINE__", "__COUNTER__", "__has_include(<metal_stdlib>)", "__is_same(int, int)", "__underlying_type(int)", "simd_sum", "simd_shuffle",
    "simd_ballot", "quad_sum", "simdgroup_barrier(mem_flags::mem_none)", "threadgroup_barrier(mem_flags::mem_threadgroup)", "simdgroup_load",
    "simdgroup_multiply_accumulate", "atomic_fetch_add_explicit", "memory_order_relaxed", "as_type<int>", "select", "clamp", "fma",
    "is_function_constant_defined", "is_function_constant_defined(has_mask)", "__hf_entry", "__hf_function_constant<3>()", "__hf_is_defined_n", "&", "&&",
    "|", "||", "^", "~", "!", "=", "==", "+", "-", "*", "/", "%", "<<", ">>", "++", "--", "+=", "/=", "%=", "<<=", "?", ":", ".", ".*", "x", "y", "i",
    "n", "f", "S", "T", "N", "this", "operator", "operator()", "operator float", "struct S {", "union U {", "enum class E {", "namespace n {", "[&]{",
    "[=](auto a) { return a; }(1)",
};

inline constexpr const char* lines[] = {
    "#include <metal_stdlib>", "#include \"/etc/passwd\"", "#include \"../../x\"", "#include <iostream>", "#include \".\"", "#include __FILE__",
    "#include_next <metal_stdlib>", "#define x x x", "#define f(a) f(a, a)", "#define i i##i", "#undef float", "#define float int", "#define kernel",
    "#define if while", "#if 1/0", "#if", "#else", "#endif", "#error x", "#line 0", "#line 2147483647 \"y\"", "#pragma once", "#pragma unroll 1000000",
    "#pragma clang loop unroll(full)", "#pragma clang loop vectorize_width(1<<20)", "#pragma pack(1)",
    "#pragma clang attribute push(__attribute__((noinline)), apply_to=function)", "#pragma METAL fp math_mode(fast)", "#pragma METAL internals : enable",
    "#pragma clang fp contract(fast) reassociate(on)", "#pragma STDC FENV_ACCESS ON", "#pragma clang module import x", "#pragma __hf_entries",
    "#pragma omp parallel for", "#pragma push_macro(\"x\")", "#pragma weak f", "#pragma clang section bss=\"x\"", "#pragma redefine_extname f g",
    "#pragma clang optimize off", "#pragma GCC diagnostic error \"-Wall\"", "#pragma GCC poison x", "#embed \"/dev/zero\"", "#warning x", "#ident \"x\"",
    "template<int N> struct Deep { static constexpr int value = Deep<N + 1>::value; }; constant " "int deep = Deep<0>::value;",
    "template<int N> int down(int a) { return down<N - 1>(a) + down<N - 2>(a); } int forever(int " "a) { return down<0>(a); }",
    "constexpr int steps(int a) { int s = 0; for (int i = 0; i >= 0; ++i) s += a; return s; } " "constant int stepped = steps(1);",
    "constexpr int twice(int a) { return a < 1 ? 1 : twice(a - 1) + twice(a - 1); } constant int " "many = twice(60);",
    "int self(int a) { return a ? self(a - 1) : 0; }", "int odd(int); int even(int a) { return odd(a); } int odd(int a) { return even(a); }",
    "struct Base { virtual int v() { return 1; } virtual ~Base() {} }; struct Derived : Base { int " "v() override { return 2; } };",
    "struct Loop { Loop* next; int a[4]; ~Loop() {} };", "struct Big { int a[1 << 28]; }; thread Big* big;",
    "struct Empty {}; struct Bits { int a : 3, b : 29; unsigned : 0; };", "constant int table[1 << 20] = {1, 2, 3};",
    "constant float huge[1 << 30] = {};", "threadgroup int shared_x[1 << 20];", "constant int a_constant = a_constant + 1;", "static int counter = 0;",
    "int global_array[];", "constant int* pointer_to = nullptr;", "constant float ratios[] = {1.0 / 0.0, 0.0 / 0.0};",
    "constant int zero = 0; constant int by_zero = 1 / zero;", "constant bool extra [[function_constant(77)]]; constant int chosen = "
    "is_function_constant_defined(extra) ? 1 : 2;", "for (int k = 0; k < 1000000; ++k) x[k] = k;", "for (int k = 0; k < 9; k += 0) { }",
    "while (x[0]) { if (x[1]) break; else continue; }", "do { } while (0);", "switch (int(x[0])) { case 0: x[1] = 1; case 1: { default: x[2] = 2; } }",
    "int vla[i];", "char big_local[1 << 24]; x[0] = big_local[i];", "float many_values[64] = {}; x[i] = many_values[i % 64];",
    "threadgroup float shared_values[32]; shared_values[i % 32] = x[i]; "
    "threadgroup_barrier(mem_flags::mem_threadgroup); x[i] = shared_values[(i + 1) % 32];", "if (i & 1) threadgroup_barrier(mem_flags::mem_threadgroup);",
    "x[i] = simd_sum(x[i]); if (x[i] > 0) x[i] = simd_shuffle_down(x[i], 3);", "goto out; { int q = 3; out: x[0] = q; }",
    "void* here = &&label; label: goto *here;", "auto lambda = [&](auto a) { return a + x[0]; }; x[0] = lambda(1);",
    "float (*pointer)(float) = nullptr; x[0] = pointer(1);", "int S::* member = nullptr;", "x[0] = (int)(uintptr_t)x;", "x = nullptr; x[0] = 1;",
    "*(device int*)0 = 1;", "*(int*)16 = 1;", "x[1ul << 62] = 1;", "x[-1] = x[i] / 0;", "x[0] = 1 << 99; x[1] = 5 % 0;",
    "x[0] = float(1e39); x[1] = int(1e39);", "half h = x[0]; bfloat b = h; x[0] = b * h;", "int j = x[0]; j = j / 0 + j % 0; x[0] = j << j;",
    "simdgroup_float8x8 m(1); simdgroup_multiply_accumulate(m, m, m, m); simdgroup_store(m, x, 8);",
    "atomic_fetch_add_explicit((device atomic_int*)x, 1, memory_order_relaxed);",
    "struct { int a; float b[3]; } s = {}; s.b[i % 3] = x[0]; x[1] = s.b[2];", "union { int a; float b; } u; u.b = x[0]; x[0] = u.a;",
};

// Put in each other's place, they often leave a text that compiles.
inline constexpr const char* types[] = {
    "bool",  "char", "uchar", "short",  "ushort", "int",   "uint",   "long", "ulong", "half", "float", "bfloat", "float2", "half4", "uchar3", "ulong4",
};
inline constexpr const char* numbers[] = {
    "0",     "1",          "2",          "31",   "32",     "33",   "64",   "255",   "1024",
    "65536", "2147483647", "4294967295", "-1",   "-32768", "0.5f", "1e30", "1.5h",  "0x80u",
    "3ul",   "1000000",    "1ul << 40",  "-0.0", "1 / 0",  "i",    "7",    "1e-45", "16777217",
};
inline constexpr const char* operators[] = {"+", "-", "*",  "/",  "%",  "<<", ">>", "&",  "|", "^",
                                     "<", ">", "==", "!=", "&&", "||", "=",  "+=", "/="};
// clang-format on

}  // namespace holdfast::fuzzing
