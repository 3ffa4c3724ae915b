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

// 16 bytes from any element on, of which neighbours lie at `misalignment` elements behind a
// multiple of 16 bytes. Another 16 bytes are read behind them where that is not 0.
template <typename T>
inline Block<T> load_shifted(const device T* at, uint misalignment) {
  if (misalignment == 0) return load_block(at);
  const device uint4* from = reinterpret_cast<const device uint4*>(at - misalignment);
  const uint4 low = from[0], high = from[1];
  const uint bytes = misalignment * uint(sizeof(T));
  const ulong w0 = ulong(low.x) | ulong(low.y) << 32, w1 = ulong(low.z) | ulong(low.w) << 32;
  const ulong w2 = ulong(high.x) | ulong(high.y) << 32, w3 = ulong(high.z) | ulong(high.w) << 32;
  const bool far = bytes >= 8;
  const ulong a = far ? w1 : w0, b = far ? w2 : w1, c = far ? w3 : w2;
  // In two steps: a shift by 64 has no meaning.
  const uint by = bytes % 8 * 8, rest = 63 - by;
  const ulong first = a >> by | b << 1 << rest, second = b >> by | c << 1 << rest;
  return block_of<T>(uint4(uint(first), uint(first >> 32), uint(second), uint(second >> 32)));
}
