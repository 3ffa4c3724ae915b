// An update meets what is there (kernels/plan/update.h). Needs support/indexing.h.

enum UpdateMode : uint {
  update_replace,
  update_add,
  update_multiply,
  update_maximum,
  update_minimum
};

template <typename T>
inline bool is_not_a_number(T value) {
  if constexpr (is_floating_point_v<T>) {
    return isnan(value);
  } else {
    return false;
  }
}
inline bool is_not_a_number(float2 value) { return isnan(value.x) || isnan(value.y); }

template <typename T>
inline bool is_less(T a, T b) {
  return a < b;
}
// Complex numbers in lexicographic order.
inline bool is_less(float2 a, float2 b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }

template <typename T>
inline T product(T a, T b) {
  return T(a * b);
}
inline float2 product(float2 a, float2 b) {
#pragma clang fp contract(off)
  return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Half types are rounded after each update. Of NaNs, the first one stays.
template <typename T>
inline T combined(uint mode, T old, T update) {
  if constexpr (is_same_v<T, bool>) {
    if (mode == update_replace) return update;
    return mode == update_add || mode == update_maximum ? old || update : old && update;
  } else {
    if (mode == update_replace) return update;
    if (mode == update_add) return T(old + update);
    if (mode == update_multiply) return product(old, update);
    const bool keeps = is_not_a_number(old) ||
                       (mode == update_maximum ? is_less(update, old) : is_less(old, update)) &&
                           !is_not_a_number(update);
    return keeps ? old : update;
  }
}

// The same for the elements of a block.
template <typename T>
inline uint4 combined_blocks(uint mode, uint4 old, uint4 update) {
  if (mode == update_replace) return update;
  Block<T> to = block_of<T>(old);
  const Block<T> from = block_of<T>(update);
  for (int i = 0; i < Block<T>::size; ++i)
    to.values[i] = combined(mode, to.values[i], from.values[i]);
  return words_of(to);
}
