// (After support/reduction.h.) Rows whose elements are neighbours in memory, as blocks of 16 bytes
// at addresses that are multiples of 16. The first block may begin before the row, by `skew`
// elements, and the last may reach over its end: what is missing there is left out.

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
  uint skew, out_skew;
  Index whole_begin, whole_end, blocks;  // blocks, and those that lie inside the row

  Row(const device T* all_in, device T* all_out, ulong number, constant Rows& rows,
      constant Extent* extents) {
    const long offset = rows.dimensions <= 1
                            ? (rows.dimensions == 1 ? long(number) * extents[0].stride : 0)
                            : offset_of(uint(number), extents, rows.dimensions);
    in = all_in + offset;
    out = all_out + number * rows.length;
    length = Index(rows.length);
    skew = uint(rows.in_misalignment + offset) & (per_block - 1);
    out_skew = uint(rows.out_misalignment + number * rows.length) & (per_block - 1);
    whole_begin = skew > 0 ? 1 : 0;
    whole_end = (length + skew) / per_block;
    blocks = (length + skew + per_block - 1) / per_block;
  }

  // For threads without a row.
  void clear() { length = whole_begin = whole_end = blocks = 0; }

  bool is_whole(Index block) const { return block >= whole_begin && block < whole_end; }
  // Of element i of a block; beyond the length where the row has none.
  Index position(Index block, int i) const { return block * per_block + i - skew; }
  bool has(Index block, int i) const { return position(block, i) < length; }

  // Block number `block`, of any row that is as long, from memory that begins as this one.
  void load(thread float* x, Index block, float missing) const {
    if (is_whole(block)) {
      const Block<T> values = load_block(in + position(block, 0));
      for (int i = 0; i < per_block; ++i) x[i] = float(values.values[i]);
    } else {
      for (int i = 0; i < per_block; ++i)
        x[i] = has(block, i) ? float(in[position(block, i)]) : missing;
    }
  }
  void store(const thread float* x, Index block) const {
    if (is_whole(block) && skew == out_skew) {
      Block<T> values;
      for (int i = 0; i < per_block; ++i) values.values[i] = T(x[i]);
      store_block(out + position(block, 0), values);
    } else {
      for (int i = 0; i < per_block; ++i) {
        if (has(block, i)) out[position(block, i)] = T(x[i]);
      }
    }
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
    const bool some = row.whole_begin < row.whole_end;
    for (int b = 0; some && b < size; ++b) {
      const uint block = clamp(lane + b * threads, row.whole_begin, row.whole_end - 1);
      loaded[b] = load_block(row.in + row.position(block, 0));
    }
    for (int b = 0; b < size; ++b) {
      const uint block = lane + b * threads;
      for (int i = 0; i < Block<T>::size; ++i) {
        if (row.is_whole(block))
          x[b][i] = float(loaded[b].values[i]);
        else
          x[b][i] = row.has(block, i) ? float(row.in[row.position(block, i)]) : missing;
      }
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
