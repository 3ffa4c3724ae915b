// Parameters of Hadamard transforms, as the host and the kernels have them.

struct Hadamard {
  ulong rows;
  uint length, factor, power;  // length = factor * power
  float scale;
  bool aligned;  // rows begin at multiples of 16 bytes
};
