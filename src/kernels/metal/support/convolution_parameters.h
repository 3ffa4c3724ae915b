// Parameters of convolutions, as the host and the kernels have them.

struct Convolution {
  ulong rows;  // pixels of the output
  uint depth, split_depth, splits;
  uint channels, group_channels, outputs, group_outputs;
  int size[3], taps[3], stride[3], padding[3], dilation[3], input_dilation[3];
  bool flip, is_dilated;  // is_dilated: the input is
  bool aligned;           // blocks of 16 bytes are, and have one tap each
};

// The sizes that numbers count to: of the output's pixels, of taps, of channels.
struct ConvolutionCounts {
  Extent result[3], taps[3], channels;
};
