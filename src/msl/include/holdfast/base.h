// What every header of the kernel library is made with.
//
// Names that start with `__hf` are ours alone: neither a user's kernel nor a pasted library may
// define them. Nothing here or in any other header of this folder is a call after optimising, but
// for the __hf_* functions of the device: everything is inlined.
#pragma once

#include <holdfast/language.h>

#define HF_INLINE inline __attribute__((always_inline))

#ifndef METAL_CONST
#define METAL_CONST __attribute__((const))
#endif

#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-9223372036854775807L - 1)
#define ULONG_MAX 18446744073709551615UL

namespace metal {
using ::bfloat;
using ::half;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::ptrdiff_t;
using ::size_t;
using ::uchar;
using ::uint;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::ulong;
using ::ushort;
}  // namespace metal

// `1.5h`. (The suffixes H, bf and BF are no names that clang lets a header define.)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuser-defined-literals"
HF_INLINE constexpr half operator""h(long double value) { return static_cast<half>(value); }
HF_INLINE constexpr half operator""h(unsigned long long value) { return static_cast<half>(value); }
#pragma clang diagnostic pop
