// What the attention kernels share. The queries of all heads that have one key head make its rows:
// position by position, and the heads of a position one after the other. So keys and values are
// read once for all of them. The host's side is kernels/metal/encode/attention.cpp.

#include "support/attention_parameters.h"

constant constexpr float lowest_score = -3.4028234663852886e38f;

// Where a row of a group is, for the batch and the key head that `group` counts.
struct AttentionRow {
  long query, mask;  // offsets
  ulong out;         // the row's number in the output
  uint head;
  uint visible;  // keys that it sees, where the mask does not hide them
};

inline AttentionRow attention_row(constant Attention& attention, uint group, uint row) {
  const uint batch = group / attention.key_heads, key_head = group % attention.key_heads;
  const uint position = row / attention.heads_per_group;
  const uint head = key_head * attention.heads_per_group + row % attention.heads_per_group;
  const ulong heads = ulong(attention.key_heads) * attention.heads_per_group;
  AttentionRow result;
  result.query = long(batch) * attention.queries.batch + long(head) * attention.queries.head +
                 long(position) * attention.queries.position;
  result.mask = long(batch) * attention.mask_batch + long(head) * attention.mask_head +
                long(position) * attention.mask_query;
  result.out = (batch * heads + head) * attention.positions + position;
  result.head = head;
  const long visible = long(attention.key_count) - long(attention.positions) + position + 1;
  result.visible = attention.causal ? uint(max(visible, 0l)) : attention.key_count;
  return result;
}

// A score as the mask has it. A key that is not there weighs nothing, one that is hidden as much as
// the others that are, should all be.
inline float masked_score(constant Attention& attention, const device uchar* mask, long mask_row,
                          uint visible, uint key, float score) {
  if (key >= attention.key_count) return -INFINITY;
  if (attention.mask_kind == 1) {
    if (mask[mask_row + long(key) * attention.mask_key] == 0) score = lowest_score;
  } else if (attention.mask_kind == 2) {
    score += reinterpret_cast<const device float*>(mask)[mask_row + long(key) * attention.mask_key];
  }
  return key < visible ? score : lowest_score;
}

// Keys [first, last) that rows [first_row, last_row) of a group need of a split. What no row sees
// is left out, if each row sees something.
struct KeyRange {
  uint first, last;
};
inline KeyRange keys_of_split(constant Attention& attention, uint split, uint first_row,
                              uint last_row) {
  const uint first = split * attention.split_keys;
  uint last = min(attention.key_count, first + attention.split_keys);
  if (attention.causal && attention.mask_kind == 0) {
    const long shift = long(attention.key_count) - long(attention.positions) + 1;
    const long fewest = shift + long(first_row / attention.heads_per_group);
    const long most = shift + long((last_row - 1) / attention.heads_per_group);
    if (fewest > 0) last = uint(clamp(most, long(first), long(last)));
  }
  return {first, last};
}

// Results of the rows of a split, which are combined later: weighted sums of values, padded with
// zeros to whole float4s, then the maximum of the scores and the sum of the weights.
inline device float* partial_row(constant Attention& attention, uint group, uint split, uint row,
                                 device float* partial) {
  const ulong number = (ulong(group) * attention.splits + split) * attention.rows + row;
  return partial + number * attention.partial_stride;
}
inline void store_sums(constant Attention& attention, device float* partial, float maximum,
                       float sum) {
  partial[attention.partial_stride - 4] = maximum;
  partial[attention.partial_stride - 3] = sum;
}
