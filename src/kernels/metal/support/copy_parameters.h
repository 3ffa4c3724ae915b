// Parameters of copies, as the host and the kernels have them.

struct StridedCopy {
  ulong size;
  int dimensions;
  bool aligned;  // the output's address is a multiple of 16
  bool inside;   // no block of the output reaches over the end of a row
};

struct TransposedCopy {
  uint rows, columns;  // of the output
  long row_stride;     // of the output; columns are neighbours there, rows in the input
  long column_stride;  // of the input
  int dimensions;      // of the batch
};
