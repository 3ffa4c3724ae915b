// Sorts numbers stably together with their positions: passes of eight bits, from the lowest. A pass
// counts the digits of each chunk, adds the counts up digit by digit, and puts each number where
// the counts of smaller digits and earlier chunks say.
#include "support/indexing.h"

constant constexpr uint digits = 256;
constant constexpr uint simdgroups = 8;
constant constexpr uint rounds = 16;
constant constexpr uint chunk = 32 * simdgroups * rounds;

struct RadixPass {
  uint size;
  uint chunks;
  uint shift;     // of the digit
  uint is_first;  // positions are not read: they count up
};

inline uint digit_of(ulong number, constant RadixPass& pass) {
  return uint(number >> pass.shift) % digits;
}
// A simdgroup takes neighbours, 32 a round.
inline uint first_of(uint group, uint t) {
  return group * chunk + t / 32 * (32 * rounds) + t % 32;
}

// counts[digit][chunk]
[[kernel, max_total_threads_per_threadgroup(256)]] void radix_counts(
    const device ulong* numbers, device uint* counts, constant RadixPass& pass,
    uint group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint count[digits];
  atomic_store_explicit(&count[t], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < rounds; ++i) {
    const uint index = group * chunk + i * 256 + t;
    if (index < pass.size)
      atomic_fetch_add_explicit(&count[digit_of(numbers[index], pass)], 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  counts[ulong(t) * pass.chunks + group] = atomic_load_explicit(&count[t], memory_order_relaxed);
}

// A threadgroup per digit: each count becomes the sum of those of earlier chunks, totals[digit] the
// sum of all.
[[kernel, max_total_threads_per_threadgroup(256)]] void radix_sums(
    device uint* counts, device uint* totals, constant RadixPass& pass,
    uint digit [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint of_simdgroup[simdgroups];
  device uint* row = counts + ulong(digit) * pass.chunks;
  uint before = 0;
  for (uint first = 0; first < pass.chunks; first += 256) {
    const uint own = first + t < pass.chunks ? row[first + t] : 0;
    const uint inside = simd_prefix_exclusive_sum(own);
    if (t % 32 == 31) of_simdgroup[t / 32] = inside + own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint at = before + inside;
    for (uint i = 0; i < simdgroups; ++i) {
      if (i < t / 32) at += of_simdgroup[i];
      before += of_simdgroup[i];
    }
    if (first + t < pass.chunks) row[first + t] = at;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) totals[digit] = before;
}

// The lanes whose digit is the same.
inline uint lanes_with(uint digit, bool counts) {
  uint lanes = uint(ulong(simd_ballot(counts)));
  for (uint bit = 1; bit < digits; bit *= 2) {
    const uint set = uint(ulong(simd_ballot((digit & bit) != 0)));
    lanes &= (digit & bit) != 0 ? set : ~set;
  }
  return lanes;
}

[[kernel, max_total_threads_per_threadgroup(256)]] void radix_place(
    const device ulong* numbers, const device uint* positions, device ulong* sorted,
    device uint* sorted_positions, const device uint* counts, const device uint* totals,
    constant RadixPass& pass, uint group [[threadgroup_position_in_grid]],
    uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint next[simdgroups][digits];  // where a simdgroup puts the next one of a digit
  threadgroup uint of_simdgroup[simdgroups];
  const uint first = first_of(group, t), simdgroup = t / 32, lower = (1u << (t % 32)) - 1;
  for (uint i = 0; i < simdgroups; ++i) next[i][t] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Registers do not hold the numbers of all rounds beside what is counted: they are read twice.
#pragma clang loop unroll_count(2)
  for (uint r = 0; r < rounds; ++r) {
    const uint index = first + r * 32;
    const bool counts_here = index < pass.size;
    const uint digit = digit_of(counts_here ? numbers[index] : 0, pass);
    const uint same = lanes_with(digit, counts_here);
    if (counts_here && (same & lower) == 0) next[simdgroup][digit] += popcount(same);
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  // Thread t adds up for digit t.
  const uint total = totals[t], inside = simd_prefix_exclusive_sum(total);
  if (t % 32 == 31) of_simdgroup[simdgroup] = inside + total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint at = inside + counts[ulong(t) * pass.chunks + group];
  for (uint i = 0; i < simdgroup; ++i) at += of_simdgroup[i];
  for (uint i = 0; i < simdgroups; ++i) {
    const uint count = next[i][t];
    next[i][t] = at;
    at += count;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll_count(2)
  for (uint r = 0; r < rounds; ++r) {
    const uint index = first + r * 32;
    const bool counts_here = index < pass.size;
    const ulong number = counts_here ? numbers[index] : 0;
    const uint digit = digit_of(number, pass), same = lanes_with(digit, counts_here);
    const uint to = next[simdgroup][digit] + popcount(same & lower);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (counts_here) {
      if ((same & lower) == 0) next[simdgroup][digit] += popcount(same);
      sorted[to] = number;
      sorted_positions[to] = pass.is_first ? index : positions[index];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
}
