// Parameters of a pass of a Fourier transform, as the host and the kernels have them.

struct Fft {
  ulong length, columns;             // of a row, of all rows
  ulong stride, groups, step;        // step: columns of a row
  ulong given, expected, kept;       // elements of a row: of the input, that count; of the output
  ulong source_chirp, target_chirp;  // the length whose chirp it is, or 0
  uint radix;
  uint together;  // columns of a threadgroup
  uint factors;   // of the radix: four bits each
  int source, target;
  bool is_first, is_last;
  bool conjugates_input, conjugates_output;
  float scale;
};
