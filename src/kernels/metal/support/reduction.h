// (After support/indexing.h.) Combining the states of threads, in fixed trees: the same bits for
// any schedule. Rows of a threadgroup are the threads [k * n, (k + 1) * n) for a power of two n;
// all threads of the threadgroup are there, in one dimension.
//
// An Op has `combine(State earlier, State later)`, which need not be commutative in its bits, and
// `identity()`. A State is a number or has `exchanged(mask)`: the state of lane ^ mask.

inline float2 exchanged(float2 state, uint mask) { return simd_shuffle_xor(state, ushort(mask)); }
template <typename State>
inline State exchanged(State state, uint mask) {
  if constexpr (is_class_v<State>) {
    return state.exchanged(mask);
  } else if constexpr (sizeof(State) == 8) {
    return as_type<State>(simd_shuffle_xor(as_type<ulong>(state), ushort(mask)));
  } else {
    return simd_shuffle_xor(state, ushort(mask));
  }
}

// Over the neighbouring `threads` lanes, up to 32; all of them get it.
template <typename Op, typename State>
inline State reduce_lanes(State state, uint threads, uint t) {
  for (uint mask = 1; mask < threads && mask < 32; mask *= 2) {
    State other = exchanged(state, mask);
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
