// Parameters of reductions, as the host and the kernels have them.

struct Reduction {
  ulong outputs, length;  // length: elements for each output
  ulong chunk;            // blocks (rows: of 16 bytes, or of states; columns: rows) of a chunk
  ulong chunks;
  ulong columns, column_blocks;  // columns: the innermost kept dimension; blocks of threadgroups
  long base;                     // where the first element is
  int kept_dimensions, reduced_dimensions;
  uint threads;       // rows: of an output; columns: side by side
  uint misalignment;  // of the first element: elements behind a multiple of 16 bytes
  ulong mask;         // IntegerKeys: makes smaller numbers come first; Truth: the bits that count
  float sign;         // FloatKeys: -1: larger numbers come first
  bool is_all;        // Truth
  bool vector;        // blocks of 16 bytes are neighbours, and begin at multiples of 16 bytes
  bool reads_states, writes_states;
  bool widens;  // the sum of a half type is a float
};
