// masked_scatter: where a mask holds, elements are replaced by those of a source, one after the
// other. Chunks of the mask are counted, the counts added up, and then each chunk knows where its
// part of the source begins.
#include "support/indexing.h"
#include "support/errors.h"

constant constexpr uint chunk = 4096;
constant constexpr uint simdgroups = 8;
constant constexpr uint rounds = chunk / (32 * simdgroups);

// A simdgroup takes neighbours of the mask, 32 a round.
inline ulong first_of(uint group, uint t) {
  return ulong(group) * chunk + t / 32 * (32 * rounds) + t % 32;
}

struct MaskedScatter {
  ulong size;
  ulong available;  // elements of the source
  ulong chunks;
  uint is_aligned;  // the mask's address is a multiple of 16
};

KERNEL(256)
masked_counts(const device uchar* mask, device ulong* counts, constant MaskedScatter& scatter,
              IN_GROUP(uint)) {
  threadgroup uint of_simdgroup[simdgroups];
  const ulong first = ulong(group) * chunk + t * 16;
  uint count = 0;
  if (scatter.is_aligned != 0 && first + 16 <= scatter.size) {
    const uint4 words = *reinterpret_cast<const device uint4*>(mask + first);
    count = popcount(words.x) + popcount(words.y) + popcount(words.z) + popcount(words.w);
  } else {
    for (ulong i = first; i < min(first + 16, scatter.size); ++i) count += mask[i];
  }
  count = simd_sum(count);
  if (t % 32 == 0) of_simdgroup[t / 32] = count;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t > 0) return;
  for (uint i = 1; i < simdgroups; ++i) count += of_simdgroup[i];
  counts[group] = count;
}

template <typename Unit>
KERNEL(256)
masked_scatter(const device uchar* mask, const device ulong* before, const device Unit* source,
               device Unit* out, constant MaskedScatter& scatter, device Errors& errors,
               IN_GROUP(uint)) {
  threadgroup uint of_simdgroup[simdgroups];
  const ulong first = first_of(group, t);
  uint taken[rounds], count = 0;
  for (uint r = 0; r < rounds; ++r) {
    const ulong index = first + r * 32;
    taken[r] = uint(ulong(simd_ballot(index < scatter.size && mask[index] != 0)));
    count += popcount(taken[r]);
  }
  if (t % 32 == 0) of_simdgroup[t / 32] = count;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  ulong next = before[group], all = next;
  for (uint i = 0; i < simdgroups; ++i) {
    next += i < t / 32 ? of_simdgroup[i] : 0;
    all += of_simdgroup[i];
  }
  if (t == 0 && all > scatter.available && group + 1 == scatter.chunks)
    report(errors, 1, long(all), long(scatter.available));
  for (uint r = 0; r < rounds; ++r) {
    const uint lower = (1u << (t % 32)) - 1;
    const ulong from = next + popcount(taken[r] & lower);
    if ((taken[r] >> (t % 32) & 1) != 0 && from < scatter.available)
      out[first + r * 32] = source[from];
    next += popcount(taken[r]);
  }
}

#define MASKED(bytes, Unit) ENTRY("masked_scatter_" #bytes, masked_scatter<Unit>)
FOR_SIZES(MASKED)
