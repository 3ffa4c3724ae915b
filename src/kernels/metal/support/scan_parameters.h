// Parameters of scans, as the host and the kernels have them.

struct Scan {
  ulong inner;  // columns: neighbours of a line's elements
  ulong chunk;  // columns: rows
  ulong mask;   // IntegerKeys of reduce.metal, and sign its FloatKeys
  float sign;
  bool reverse, inclusive;
  bool totals;   // only the states of chunks are written
  bool carries;  // the states before chunks are given
  bool vector;   // columns: rows begin at multiples of 16 bytes
};
