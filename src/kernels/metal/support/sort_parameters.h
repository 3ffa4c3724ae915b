// Parameters of sorts and searches, as the host and the kernels have them.

struct Sort {
  ulong rows, length;
  ulong chunks;    // of a long row
  uint padded;     // length of a short row, or the next power of two
  uint shift;      // of the byte at hand
  uint infinity;   // of a half type
  bool is_signed;  // of integers
  // -0 and 0 get one key, as indices of a stable sort need; else the key gives the element back.
  bool equal_zeros;
  bool has_indices;  // else an item's index is its position
  bool writes_keys;
};

struct Search {
  long stride;  // of the sorted sequence
  ulong count, size;
  int dimensions;  // of the values
  bool right;
};
