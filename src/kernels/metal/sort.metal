// Sorts of rows, ascending and stable: the elements, or the indices that would sort them. Elements
// become unsigned keys that compare the same way, NaN last. Short rows are sorted in threadgroup
// memory; long ones from the least significant byte of their keys on.
#include "support/indexing.h"
#include "support/reduction.h"
#include "support/sort_parameters.h"

template <typename U>
inline U signed_key(U bits) {
  constexpr int shift = 8 * sizeof(U) - 1;
  const U negative = U(0) - U(bits >> shift);
  return bits ^ U(negative | U(U(1) << shift));
}
template <typename U>
inline U signed_value(U key) {
  constexpr U sign = U(U(1) << (8 * sizeof(U) - 1));
  return key & sign ? U(key ^ sign) : U(~key);
}

template <typename U>
struct IntegerKeys {
  using T = U;
  using Key = conditional_t<sizeof(U) == 8, ulong, uint>;
  static constant constexpr T sign = T(T(1) << (8 * sizeof(T) - 1));
  static Key key(T value, constant Sort& sort) { return T(sort.is_signed ? value ^ sign : value); }
  static T value(Key key, constant Sort& sort) {
    return T(sort.is_signed ? T(key) ^ sign : T(key));
  }
};
struct HalfKeys {  // of float16 and bfloat16
  using T = ushort;
  using Key = uint;
  static Key key(T value, constant Sort& sort) {
    const uint size = value & 0x7fff;
    if (size > sort.infinity) return 0xffff;
    return signed_key<ushort>(sort.equal_zeros && size == 0 ? ushort(0) : value);
  }
  static T value(Key key, constant Sort&) { return signed_value<ushort>(ushort(key)); }
};
struct FloatKeys {
  using T = uint;
  using Key = uint;
  static Key key(T value, constant Sort& sort) {
    const uint size = value & 0x7fffffff;
    if (size > 0x7f800000) return ~0u;
    return signed_key<uint>(sort.equal_zeros && size == 0 ? 0u : value);
  }
  static T value(Key key, constant Sort&) { return signed_value<uint>(key); }
};
struct ComplexKeys {
  using T = ulong;
  using Key = ulong;
  static Key key(T value, constant Sort&) {
    const uint real = uint(value), imag = uint(value >> 32);
    const uint real_size = real & 0x7fffffff, imag_size = imag & 0x7fffffff;
    if (real_size > 0x7f800000 || imag_size > 0x7f800000) return ~0ul;
    return ulong(signed_key<uint>(real_size == 0 ? 0u : real)) << 32 |
           signed_key<uint>(imag_size == 0 ? 0u : imag);
  }
  static T value(Key key, constant Sort&) {
    return ulong(signed_value<uint>(uint(key))) << 32 | signed_value<uint>(uint(key >> 32));
  }
};

// --- short rows: a bitonic network over as many of them as fit ---

constant constexpr uint sorted_together = 2048;

template <typename Key, bool is_arg>
struct Item {
  Key key;
  static Item make(Key key, uint) { return {key}; }
  bool comes_before(Item other) const { return key < other.key; }
};
template <typename Key>
struct Item<Key, true> {
  Key key;
  uint index;
  static Item make(Key key, uint index) { return {key, index}; }
  bool comes_before(Item other) const {
    return key < other.key || (key == other.key && index < other.index);
  }
};

template <typename Keys, bool is_arg>
KERNEL(256)
sort_rows(const device typename Keys::T* in,
          device conditional_t<is_arg, uint, typename Keys::T>* out, constant Sort& sort,
          IN_GROUPS) {
  using Key = typename Keys::Key;
  threadgroup Key keys[sorted_together];
  threadgroup uint indices[is_arg ? sorted_together : 1];
  const ulong first = group_number(group, groups) * (sorted_together / sort.padded);
  const auto get = [&](uint at) {
    return Item<Key, is_arg>::make(keys[at], indices[is_arg ? at : 0]);
  };
  for (uint at = t; at < sorted_together; at += 256) {
    const ulong row = first + at / sort.padded;
    const uint column = at % sort.padded;
    // What fills up a row comes after all of it.
    keys[at] = row < sort.rows && column < sort.length
                   ? Keys::key(in[row * sort.length + column], sort)
                   : ~Key(0);
    if (is_arg) indices[at] = column;
  }
  for (uint size = 2; size <= sort.padded; size *= 2) {
    for (uint distance = size / 2; distance > 0; distance /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint pair = t; pair < sorted_together / 2; pair += 256) {
        const uint low = 2 * pair - (pair & (distance - 1)), high = low + distance;
        const bool ascends = ((low & (sort.padded - 1)) & size) == 0;
        const auto a = get(low), b = get(high);
        if (b.comes_before(a) != ascends) continue;
        if (!ascends && !a.comes_before(b)) continue;
        keys[low] = b.key;
        keys[high] = a.key;
        if constexpr (is_arg) {
          indices[low] = b.index;
          indices[high] = a.index;
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint at = t; at < sorted_together; at += 256) {
    const ulong row = first + at / sort.padded;
    const uint column = at % sort.padded;
    if (row >= sort.rows || column >= sort.length) continue;
    if constexpr (is_arg)
      out[row * sort.length + column] = indices[at];
    else
      out[row * sort.length + column] = Keys::value(keys[at], sort);
  }
}

// --- long rows ---

template <typename Keys>
[[kernel]] void sort_keys(const device typename Keys::T* in, device typename Keys::Key* keys,
                          constant Sort& sort, constant ulong& size, IN_GRID) {
  constexpr int count = 4;
  const ulong first = thread_number(position, grid) * count;
  for (int i = 0; i < count; ++i) {
    if (first + i < size) keys[first + i] = Keys::key(in[first + i], sort);
  }
}
template <typename Keys>
[[kernel]] void sort_values(const device typename Keys::Key* keys, device typename Keys::T* out,
                            constant Sort& sort, constant ulong& size, IN_GRID) {
  constexpr int count = 4;
  const ulong first = thread_number(position, grid) * count;
  for (int i = 0; i < count; ++i) {
    if (first + i < size) out[first + i] = Keys::value(keys[first + i], sort);
  }
}

// A chunk is what a threadgroup takes at once: 16 items a thread. A simdgroup has 512 neighbours.
constant constexpr uint items_per_thread = 16, chunk_items = 256 * items_per_thread;

// How often each value of the byte occurs in a chunk: counts[row][digit][chunk].
template <typename Key>
KERNEL(256)
sort_count(const device Key* keys, device uint* counts, constant Sort& sort, IN_GROUPS) {
  threadgroup atomic_uint histogram[256];
  const ulong number = group_number(group, groups);
  const ulong row = number / sort.chunks, chunk = number % sort.chunks;
  if (row >= sort.rows) return;  // the whole threadgroup
  atomic_store_explicit(&histogram[t], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < items_per_thread; ++i) {
    const ulong at = chunk * chunk_items + i * 256 + t;
    if (at >= sort.length) break;
    const uint digit = uint(keys[row * sort.length + at] >> sort.shift) & 255;
    atomic_fetch_add_explicit(&histogram[digit], 1, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  counts[(row * 256 + t) * sort.chunks + chunk] =
      atomic_load_explicit(&histogram[t], memory_order_relaxed);
}

inline uint lanes_where(bool condition) { return uint(ulong(simd_ballot(condition))); }

// Items go to where the items with smaller bytes end, and those before them with equal ones.
// `places`: the sums of the counts before each.
template <typename Key, bool is_arg>
KERNEL(256)
sort_move(const device Key* keys, device Key* moved_keys, const device uint* indices,
          device uint* moved_indices, const device uint* places, constant Sort& sort, IN_GROUPS) {
  threadgroup uint counts[8][256];  // of the simdgroups; then where they begin
  const ulong number = group_number(group, groups);
  const ulong row = number / sort.chunks, chunk = number % sort.chunks;
  if (row >= sort.rows) return;  // the whole threadgroup
  const uint simdgroup = t / 32, lane = t % 32;
  for (int i = 0; i < 8; ++i) counts[i][t] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const ulong first = chunk * chunk_items + simdgroup * (32 * items_per_thread) + lane;
  Key items[items_per_thread];
  uint ranks[items_per_thread];  // among equal bytes of the simdgroup
#pragma unroll
  for (uint i = 0; i < items_per_thread; ++i) {
    const ulong at = first + i * 32;
    items[i] = at < sort.length ? keys[row * sort.length + at] : Key(0);
  }
#pragma unroll
  for (uint i = 0; i < items_per_thread; ++i) {
    const bool is_there = first + i * 32 < sort.length;
    const uint digit = uint(items[i] >> sort.shift) & 255;
    uint same = lanes_where(is_there);
    for (uint bit = 0; bit < 8; ++bit) {
      const bool is_set = (digit >> bit & 1) != 0;
      const uint set = lanes_where(is_set);
      same &= is_set ? set : ~set;
    }
    const uint before = popcount(same & ((1u << lane) - 1));
    ranks[i] = counts[simdgroup][digit] + before;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (is_there && before == 0) counts[simdgroup][digit] += popcount(same);
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint place = places[(row * 256 + t) * sort.chunks + chunk];
  for (int i = 0; i < 8; ++i) {
    const uint count = counts[i][t];
    counts[i][t] = place;
    place += count;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint i = 0; i < items_per_thread; ++i) {
    const ulong at = first + i * 32;
    if (at >= sort.length) continue;
    const uint digit = uint(items[i] >> sort.shift) & 255;
    const ulong to = row * sort.length + counts[simdgroup][digit] + ranks[i];
    if (sort.writes_keys) moved_keys[to] = items[i];
    if (is_arg) moved_indices[to] = sort.has_indices ? indices[row * sort.length + at] : uint(at);
  }
}

// --- search ---

template <typename Keys>
[[kernel]] void search_sorted(const device typename Keys::T* sorted,
                              const device typename Keys::T* values, device uint* out,
                              constant Search& search, constant Sort& sort,
                              constant Extent* extents, IN_GRID) {
  const ulong index = thread_number(position, grid);
  if (index >= search.size) return;
  const long offset = search.dimensions <= 1
                          ? (search.dimensions == 1 ? long(index) * extents[0].stride : 0)
                          : offset_of(uint(index), extents, search.dimensions);
  const typename Keys::Key key = Keys::key(values[offset], sort);
  ulong low = 0, high = search.count;
  while (low < high) {
    const ulong middle = (low + high) / 2;
    const typename Keys::Key there = Keys::key(sorted[long(middle) * search.stride], sort);
    if (search.right ? there <= key : there < key)
      low = middle + 1;
    else
      high = middle;
  }
  out[index] = uint(low);
}

#define OF_KEYS(name, Keys)                            \
  ENTRY("sort_rows_" #name, sort_rows<Keys, false>)    \
  ENTRY("sort_rows_arg_" #name, sort_rows<Keys, true>) \
  ENTRY("sort_keys_" #name, sort_keys<Keys>)           \
  ENTRY("sort_values_" #name, sort_values<Keys>)       \
  ENTRY("search_sorted_" #name, search_sorted<Keys>)
OF_KEYS(1, IntegerKeys<uchar>)
OF_KEYS(2, IntegerKeys<ushort>)
OF_KEYS(4, IntegerKeys<uint>)
OF_KEYS(8, IntegerKeys<ulong>)
OF_KEYS(half, HalfKeys)
OF_KEYS(float, FloatKeys)
OF_KEYS(complex, ComplexKeys)
#define OF_ITEMS(name, Key)                        \
  ENTRY("sort_count_" #name, sort_count<Key>)      \
  ENTRY("sort_move_" #name, sort_move<Key, false>) \
  ENTRY("sort_move_arg_" #name, sort_move<Key, true>)
OF_ITEMS(uint, uint)
OF_ITEMS(ulong, ulong)
