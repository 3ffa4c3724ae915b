// (After support/indexing.h.) Combining the states of threads, in fixed trees: the same bits for
// any schedule. Rows of a threadgroup are the threads [k * n, (k + 1) * n) for a power of two n;
// all threads of the threadgroup are there, in one dimension.
//
// An Op has `combine(State earlier, State later)`, which need not be commutative in its bits, and
// `identity()`. A State is a number or has `from_lane(lane)`.

// What another lane of the simdgroup has.
inline float2 from_lane(float2 state, uint lane) { return simd_shuffle(state, ushort(lane % 32)); }
template <typename State>
inline State from_lane(State state, uint lane) {
  if constexpr (is_class_v<State>) {
    return state.from_lane(lane);
  } else if constexpr (sizeof(State) == 8) {
    return as_type<State>(simd_shuffle(as_type<ulong>(state), ushort(lane % 32)));
  } else {
    return simd_shuffle(state, ushort(lane % 32));
  }
}

// Over the neighbouring `threads` lanes, up to 32; all of them get it.
template <typename Op, typename State>
inline State reduce_lanes(State state, uint threads, uint t) {
  for (uint mask = 1; mask < threads && mask < 32; mask *= 2) {
    State other = from_lane(state, t ^ mask);
    state = t & mask ? Op::combine(other, state) : Op::combine(state, other);
  }
  return state;
}

// Over the row of `threads` threads; all of them get it. `scratch` has a state for each simdgroup.
// It has to be called by all threads of the threadgroup.
template <typename Op, typename State>
inline State reduce_row(State state, uint threads, uint t, threadgroup State* scratch) {
  state = reduce_lanes<Op>(state, threads, t);
  if (threads <= 32) return state;
  threadgroup_barrier(mem_flags::mem_threadgroup);  // those that read the scratch before
  if (t % 32 == 0) scratch[t / 32] = state;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint first = t / threads * (threads / 32);
  state = scratch[first];
  for (uint i = 1; i < threads / 32; ++i) state = Op::combine(state, scratch[first + i]);
  return state;
}

// The number of a threadgroup in a grid that the host made with Launch::groups.
inline ulong group_number(uint3 group, uint3 groups) { return ulong(group.y) * groups.x + group.x; }

// 16 bytes from any element on, which lies `misalignment` elements behind a multiple of 16 bytes.
// Nothing else is read: neighbours may belong to other threads.
template <typename T>
inline Block<T> load_shifted(const device T* at, uint misalignment) {
  if (misalignment == 0) return load_block(at);
  if constexpr (sizeof(T) < 4) {
    const uint behind = misalignment * uint(sizeof(T)) % 4;
    if (behind == 0) {
      const auto* words = reinterpret_cast<const device uint*>(at);
      return block_of<T>(uint4(words[0], words[1], words[2], words[3]));
    }
    if (behind == 2) {
      const auto* halves = reinterpret_cast<const device ushort*>(at);
      const auto* words = reinterpret_cast<const device uint*>(halves + 1);
      const uint a = words[0], b = words[1], c = words[2];
      return block_of<T>(uint4(halves[0] | a << 16, a >> 16 | b << 16, b >> 16 | c << 16,
                               c >> 16 | uint(halves[7]) << 16));
    }
  }
  Block<T> block;
  for (int i = 0; i < Block<T>::size; ++i) block.values[i] = at[i];
  return block;
}
