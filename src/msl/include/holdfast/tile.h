// What Holdfast adds to Metal, for kernels on matrix units and for streams of data: products of
// tiles, words of packed 16-bit elements, copies that run beside the kernel. A function is what its
// C++ here computes, on every device, but for the rounding of mma_m16n8k16; on an NVIDIA GPU each
// is one instruction.
//
// A word is a uint that holds two 16-bit elements, the first one in its low half. `lane` is
// thread_index_in_simdgroup. Functions that say "simdgroup" take all 32 lanes: where one is
// missing, results are unspecified.
//
// (x & mask) | bits and the like need no function: any such expression of three words is one
// instruction. fast::exp2 and fast::log2 are the GPU's approximations already.
#pragma once

#include <holdfast/as_type.h>
#include <holdfast/simdgroup.h>

namespace holdfast {

// --- words ---

// Byte i of the result is byte s of the eight of `low` (0 to 3) and `high` (4 to 7), where s is the
// low three bits of the four at 4 i of the selector. If the fourth is set, it is that byte's
// highest bit, eight times.
HF_INLINE uint byte_permute(uint low, uint high, uint selector) {
  if (__hf_has_tile_instructions()) return __hf_byte_permute(low, high, selector);
  const ulong bytes = static_cast<ulong>(high) << 32 | low;
  uint result = 0;
#pragma unroll
  for (uint i = 0; i < 4; ++i) {
    const uint choice = selector >> (4 * i);
    const uint byte = static_cast<uint>(bytes >> ((choice & 7u) * 8)) & 255u;
    result |= ((choice & 8u) != 0 ? (byte >> 7) * 255u : byte) << (8 * i);
  }
  return result;
}

// Two numbers, each rounded to nearest even.
HF_INLINE uint pack_half(float first, float second) {
  if (__hf_has_tile_instructions()) return __hf_pack_f16(first, second);
  return static_cast<uint>(as_type<ushort>(static_cast<half>(first))) |
         static_cast<uint>(as_type<ushort>(static_cast<half>(second))) << 16;
}
HF_INLINE uint pack_bfloat(float first, float second) {
  if (__hf_has_tile_instructions()) return __hf_pack_bf16(first, second);
  return static_cast<uint>(as_type<ushort>(static_cast<bfloat>(first))) |
         static_cast<uint>(as_type<ushort>(static_cast<bfloat>(second))) << 16;
}

// --- tiles of 16-bit elements, distributed over a simdgroup ---

// The transpose of an 8×8 matrix (simdgroup). The lane holds elements 2 (lane % 4) and the next of
// row lane / 4, before and after.
HF_INLINE uint transpose_8x8(uint word) {
  if (__hf_has_tile_instructions()) return __hf_transpose_8x8(word);
  const uint lane = __hf::lane(), row = lane >> 2, column = (lane & 3u) * 2;
  const uint from = column * 4 + (row >> 1), shift = (row & 1u) * 16;
  const uint first = __hf_shuffle_u32(word, from), second = __hf_shuffle_u32(word, from + 4);
  return ((first >> shift) & 0xffffu) | (second >> shift) << 16;
}

// D = A B + C for A of 16×16, B of 16×8, C and D of 16×8 (simdgroup). T is half or bfloat, the type
// of A and B. With g = lane / 4 and t = 2 (lane % 4), the lane holds
//   a.x  A[g][t], A[g][t+1]          a.y  A[g+8][t], A[g+8][t+1]
//   a.z  A[g][t+8], A[g][t+9]        a.w  A[g+8][t+8], A[g+8][t+9]
//   b.x  B[t][g], B[t+1][g]          b.y  B[t+8][g], B[t+9][g]
//   c.x  C[g][t]    c.y  C[g][t+1]   c.z  C[g+8][t]    c.w  C[g+8][t+1]
// and of D as of C. On the CPU an element starts from C and adds fma(A[row][k], B[k][column], sum)
// for k = 0 … 15. A GPU adds exact products in an order of its own, and cuts off what lies below
// the largest of them: |difference| <= 2^-18 (|C| + Σ |A[row][k] B[k][column]|).
template <class T>
HF_INLINE metal::vec<float, 4> mma_m16n8k16(metal::vec<uint, 4> a, metal::vec<uint, 2> b,
                                            metal::vec<float, 4> c) {
  static_assert(__is_same(T, half) || __is_same(T, bfloat),
                "mma_m16n8k16: the elements are half or bfloat");
#define HF_MMA(type, which) \
  __hf_mma_m16n8k16_##type(a.x, a.y, a.z, a.w, b.x, b.y, c.x, c.y, c.z, c.w, which)
  if constexpr (__is_same(T, half))
    return metal::vec<float, 4>(HF_MMA(f16, 0u), HF_MMA(f16, 1u), HF_MMA(f16, 2u), HF_MMA(f16, 3u));
  else
    return metal::vec<float, 4>(HF_MMA(bf16, 0u), HF_MMA(bf16, 1u), HF_MMA(bf16, 2u),
                                HF_MMA(bf16, 3u));
#undef HF_MMA
}

// Four 8×8 matrices from threadgroup memory (simdgroup). Row r of matrix m is the 16 bytes at
// `offset` bytes from `tile` on, as lane 8 m + r says it: a multiple of 16. `tile`, aligned to 16
// bytes, is the same for all lanes. Component m of the result is matrix m as transpose_8x8 has it;
// `transposed`: its transpose.
template <bool transposed = false>
HF_INLINE metal::vec<uint, 4> load_matrices(const threadgroup void* tile, uint offset) {
  if (__hf_has_tile_memory()) {
    // One instruction, asked for its four results.
    return metal::vec<uint, 4>(__hf_load_matrices(tile, offset, transposed, 0u),
                               __hf_load_matrices(tile, offset, transposed, 1u),
                               __hf_load_matrices(tile, offset, transposed, 2u),
                               __hf_load_matrices(tile, offset, transposed, 3u));
  }
  const uint lane = __hf::lane();
  uint words[4];
#pragma unroll
  for (uint m = 0; m < 4; ++m) {
    const uint row = __hf_shuffle_u32(offset, 8 * m + (lane >> 2));
    const threadgroup char* at = static_cast<const threadgroup char*>(tile) + row;
    words[m] = reinterpret_cast<const threadgroup uint*>(at)[lane & 3u];
    if (transposed) words[m] = transpose_8x8(words[m]);
  }
  return metal::vec<uint, 4>(words[0], words[1], words[2], words[3]);
}

// --- memory ---

// What is read once: it does not displace what caches hold. T has 4, 8 or 16 bytes.
template <class T>
HF_INLINE T load_streaming(const device T* from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "load_streaming: the type has 4, 8 or 16 bytes");
  if constexpr (sizeof(T) == 4) {
    return as_type<T>(__builtin_nontemporal_load(reinterpret_cast<const device uint*>(from)));
  } else {
    typedef uint Words __attribute__((ext_vector_type(sizeof(T) / 4)));
    return as_type<T>(__builtin_nontemporal_load(reinterpret_cast<const device Words*>(from)));
  }
}

// Copies 4, 8 or 16 bytes, aligned to as many, or writes zeros if not `copies`; `from` is not read
// then. The copy may run beside what the thread does next: its bytes are there after an
// async_copy_wait that covers it, for the thread itself, and for others after a barrier behind
// that.
template <uint bytes>
HF_INLINE void async_copy(threadgroup void* to, const device void* from, bool copies = true) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "async_copy: 4, 8 or 16 bytes");
  if (__hf_has_tile_memory()) {
    __hf_async_copy(to, from, bytes, copies ? bytes : 0u);
    return;
  }
  threadgroup uint* target = static_cast<threadgroup uint*>(to);
  const device uint* source = static_cast<const device uint*>(from);
  if (copies) {
#pragma unroll
    for (uint i = 0; i < bytes / 4; ++i) target[i] = source[i];
  } else {
#pragma unroll
    for (uint i = 0; i < bytes / 4; ++i) target[i] = 0;
  }
}
// Ends a group of copies: those of the thread since the last group.
HF_INLINE void async_copy_commit() {
  if (__hf_has_tile_memory()) __hf_async_copy_commit();
}
// Waits until at most `pending` of the thread's last groups may be unfinished.
template <uint pending = 0>
HF_INLINE void async_copy_wait() {
  if (__hf_has_tile_memory()) __hf_async_copy_wait(pending);
}

// --- the order of launches ---

// A kernel may be started before the one in front of it in its list has ended, where the device
// does that for it. Then memory which that one writes may be touched after this call only.
HF_INLINE void wait_for_launches_before() {
  if (__hf_has_tile_instructions()) __hf_wait_for_launches_before();
}
// Lets the kernel behind this one start, once all threads have called it or ended.
HF_INLINE void allow_next_launch() {
  if (__hf_has_tile_instructions()) __hf_allow_next_launch();
}

}  // namespace holdfast
