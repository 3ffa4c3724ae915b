// Parameters of products, as the host and the kernels have them.

struct Product {
  uint rows, columns, depth;               // of C, and of the sums
  uint parts, part_depth;                  // the depth is cut: C is then `parts` sums for add_parts
  int dimensions;                          // of the batch
  long a_row, a_depth, b_column, b_depth;  // strides
  bool a_aligned, b_aligned;               // lines of neighbours begin at multiples of 16 bytes
  bool wide;                               // C is of float32 whatever A and B are
};

// Up to `count` vectors times a matrix, which is read once, in blocks of 16 bytes: lines of
// neighbours consist of whole blocks.
struct MatrixVectors {
  uint rows, depth, vectors;
  uint parts, part_depth;
  uint width;  // of rows: lanes of one; of columns: threads of a line
  int dimensions;
  bool wide;
  long stride;                // between rows, or along the depth
  long vector, vector_depth;  // strides of the vectors
  ulong out_row, out_vector;  // strides of the product
};

struct SumParts {
  ulong size;  // of the sums of one part
  ulong total;
  uint parts;
};
