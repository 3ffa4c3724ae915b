// (After support/reduction.h.) Rows whose elements are neighbours in memory, in blocks of 16 bytes
// from the beginning of the row on: what a thread has of it does not depend on where it lies.

// The host's side is in encode/rows.h.
struct Rows {
  ulong count, length;
  ulong chunk, chunks;                     // of a long row, in blocks
  int dimensions;                          // of `extents`, which say where rows begin in the input
  uint threads;                            // of a row or, of long rows, of a chunk
  uint in_misalignment, out_misalignment;  // elements behind a multiple of 16 bytes
};

// Index: uint for rows that are held in registers, else ulong.
template <typename T, typename Index>
struct Row {
  static constant constexpr int per_block = Block<T>::size;
  const device T* in;
  device T* out;  // the row of the output, which is dense
  Index length;
  uint misalignment, out_misalignment;  // of the beginnings

  Row(const device T* all_in, device T* all_out, ulong number, constant Rows& rows,
      constant Extent* extents) {
    const long offset = rows.dimensions <= 1
                            ? (rows.dimensions == 1 ? long(number) * extents[0].stride : 0)
                            : offset_of(uint(number), extents, rows.dimensions);
    in = all_in + offset;
    out = all_out + number * rows.length;
    length = Index(rows.length);
    misalignment = uint(rows.in_misalignment + offset) & (per_block - 1);
    out_misalignment = uint(rows.out_misalignment + number * rows.length) & (per_block - 1);
  }
  // For threads without a row.
  void clear() { length = 0; }

  Index blocks() const { return (length + per_block - 1) / per_block; }
  // Of element i of a block; beyond the length where the row has none.
  Index position(Index block, int i) const { return block * per_block + i; }
  bool has(Index block, int i) const { return position(block, i) < length; }
  bool is_whole(Index block) const { return position(block, per_block) <= length; }

  Block<T> load_elements(Index block, T missing) const {
    Block<T> values;
    for (int i = 0; i < per_block; ++i)
      values.values[i] = has(block, i) ? in[position(block, i)] : missing;
    return values;
  }
  Block<T> load(Index block, T missing) const {
    if (is_whole(block)) return load_shifted(in + position(block, 0), misalignment);
    return load_elements(block, missing);
  }
  void load(thread float* x, Index block, float missing) const {
    const Block<T> values = load(block, T(missing));
    for (int i = 0; i < per_block; ++i) x[i] = float(values.values[i]);
  }
  void store(Block<T> values, Index block) const {
    if (is_whole(block) && out_misalignment == 0) {
      store_block(out + position(block, 0), values);
    } else {
      for (int i = 0; i < per_block; ++i) {
        if (has(block, i)) out[position(block, i)] = values.values[i];
      }
    }
  }
  void store(const thread float* x, Index block) const {
    Block<T> values;
    for (int i = 0; i < per_block; ++i) values.values[i] = T(x[i]);
    store(values, block);
  }
};

// What a thread holds of a row: 16 elements, blocks lane, lane + threads, ….
template <typename T>
struct HeldRow {
  static constant constexpr int size = 16 / Block<T>::size;
  float x[size][Block<T>::size];

  // All loads are under way before the first value is used.
  void load(Row<T, uint> row, uint lane, uint threads, float missing) {
    Block<T> loaded[size];
    for (int b = 0; b < size; ++b) {
      const uint block = lane + b * threads;
      if (row.is_whole(block))
        loaded[b] = load_shifted(row.in + row.position(block, 0), row.misalignment);
    }
    for (int b = 0; b < size; ++b) {
      const uint block = lane + b * threads;
      if (!row.is_whole(block)) loaded[b] = row.load_elements(block, T(missing));
      for (int i = 0; i < Block<T>::size; ++i) x[b][i] = float(loaded[b].values[i]);
    }
  }
};

struct MaximumOp {
  static float combine(float a, float b) { return max(a, b); }
};
struct SumOp {
  static float combine(float a, float b) { return a + b; }
};
struct SumPairOp {
  static float2 combine(float2 a, float2 b) { return a + b; }
};
