// pack_float_to_* and unpack_*_to_float, and their twins for half.
#pragma once

#include <holdfast/as_type.h>
#include <holdfast/math.h>

namespace __hf {

// A normalised integer of `bits` bits; NaN packs as 0.
HF_INLINE uint pack_unorm(float x, float scale) {
  float clamped = smaller<float>(larger<float>(x, 0.0f), 1.0f);
  clamped = x != x ? 0.0f : clamped;
  return static_cast<uint>(__builtin_rintf(clamped * scale));
}
HF_INLINE uint pack_snorm(float x, float scale, uint mask) {
  float clamped = smaller<float>(larger<float>(x, -1.0f), 1.0f);
  clamped = x != x ? 0.0f : clamped;
  return static_cast<uint>(static_cast<int>(__builtin_rintf(clamped * scale))) & mask;
}
HF_INLINE float unpack_snorm(int x, float scale) {
  return larger<float>(static_cast<float>(x) / scale, -1.0f);
}
HF_INLINE float from_srgb(float x) {
  return x <= 0.04045f ? x / 12.92f : __hf::pow((x + 0.055f) / 1.055f, 2.4f);
}
HF_INLINE float to_srgb(float x) {
  x = smaller<float>(larger<float>(x, 0.0f), 1.0f);
  return x <= 0.0031308f ? x * 12.92f : 1.055f * __hf::pow(x, 1.0f / 2.4f) - 0.055f;
}

}  // namespace __hf

namespace metal {

#define HF_PACK(T)                                                                                \
  HF_INLINE T##4 unpack_unorm4x8_to_##T(uint x) {                                                 \
    return T##4(float4(x & 255u, (x >> 8) & 255u, (x >> 16) & 255u, x >> 24) / 255.0f);           \
  }                                                                                               \
  HF_INLINE T##4 unpack_snorm4x8_to_##T(uint x) {                                                 \
    char4 c = as_type<char4>(x);                                                                  \
    return T##4(float4(__hf::unpack_snorm(c.x, 127.0f), __hf::unpack_snorm(c.y, 127.0f),          \
                       __hf::unpack_snorm(c.z, 127.0f), __hf::unpack_snorm(c.w, 127.0f)));        \
  }                                                                                               \
  HF_INLINE T##4 unpack_unorm4x8_srgb_to_##T(uint x) {                                            \
    float4 c = float4(x & 255u, (x >> 8) & 255u, (x >> 16) & 255u, x >> 24) / 255.0f;             \
    return T##4(float4(__hf::from_srgb(c.x), __hf::from_srgb(c.y), __hf::from_srgb(c.z), c.w));   \
  }                                                                                               \
  HF_INLINE T##2 unpack_unorm2x16_to_##T(uint x) {                                                \
    return T##2(float2(x & 65535u, x >> 16) / 65535.0f);                                          \
  }                                                                                               \
  HF_INLINE T##2 unpack_snorm2x16_to_##T(uint x) {                                                \
    short2 c = as_type<short2>(x);                                                                \
    return T##2(float2(__hf::unpack_snorm(c.x, 32767.0f), __hf::unpack_snorm(c.y, 32767.0f)));    \
  }                                                                                               \
  HF_INLINE T##4 unpack_unorm10a2_to_##T(uint x) {                                                \
    return T##4(float4((x & 1023u) / 1023.0f, ((x >> 10) & 1023u) / 1023.0f,                      \
                       ((x >> 20) & 1023u) / 1023.0f, (x >> 30) / 3.0f));                         \
  }                                                                                               \
  HF_INLINE T##3 unpack_unorm565_to_##T(ushort x) {                                               \
    return T##3(float3(((x >> 11) & 31) / 31.0f, ((x >> 5) & 63) / 63.0f, (x & 31) / 31.0f));     \
  }                                                                                               \
  HF_INLINE uint pack_##T##_to_unorm4x8(T##4 v) {                                                 \
    return __hf::pack_unorm(v.x, 255.0f) | __hf::pack_unorm(v.y, 255.0f) << 8 |                   \
           __hf::pack_unorm(v.z, 255.0f) << 16 | __hf::pack_unorm(v.w, 255.0f) << 24;             \
  }                                                                                               \
  HF_INLINE uint pack_##T##_to_snorm4x8(T##4 v) {                                                 \
    return __hf::pack_snorm(v.x, 127.0f, 255u) | __hf::pack_snorm(v.y, 127.0f, 255u) << 8 |       \
           __hf::pack_snorm(v.z, 127.0f, 255u) << 16 | __hf::pack_snorm(v.w, 127.0f, 255u) << 24; \
  }                                                                                               \
  HF_INLINE uint pack_##T##_to_srgb_unorm4x8(T##4 v) {                                            \
    return __hf::pack_unorm(__hf::to_srgb(v.x), 255.0f) |                                         \
           __hf::pack_unorm(__hf::to_srgb(v.y), 255.0f) << 8 |                                    \
           __hf::pack_unorm(__hf::to_srgb(v.z), 255.0f) << 16 |                                   \
           __hf::pack_unorm(v.w, 255.0f) << 24;                                                   \
  }                                                                                               \
  HF_INLINE uint pack_##T##_to_unorm2x16(T##2 v) {                                                \
    return __hf::pack_unorm(v.x, 65535.0f) | __hf::pack_unorm(v.y, 65535.0f) << 16;               \
  }                                                                                               \
  HF_INLINE uint pack_##T##_to_snorm2x16(T##2 v) {                                                \
    return __hf::pack_snorm(v.x, 32767.0f, 65535u) | __hf::pack_snorm(v.y, 32767.0f, 65535u)      \
                                                         << 16;                                   \
  }                                                                                               \
  HF_INLINE uint pack_##T##_to_unorm10a2(T##4 v) {                                                \
    return __hf::pack_unorm(v.x, 1023.0f) | __hf::pack_unorm(v.y, 1023.0f) << 10 |                \
           __hf::pack_unorm(v.z, 1023.0f) << 20 | __hf::pack_unorm(v.w, 3.0f) << 30;              \
  }                                                                                               \
  HF_INLINE ushort pack_##T##_to_unorm565(T##3 v) {                                               \
    return static_cast<ushort>(__hf::pack_unorm(v.x, 31.0f) << 11 |                               \
                               __hf::pack_unorm(v.y, 63.0f) << 5 | __hf::pack_unorm(v.z, 31.0f)); \
  }
HF_PACK(float)
HF_PACK(half)
#undef HF_PACK

}  // namespace metal
