// Several views of one shape, walked together. Needs support/indexing.h. The host's side is
// kernels/metal/walk.h, which cuts walks of more than 2^31 positions.

// A dimension of the views; see Extent.
template <int views>
struct JointExtent {
  uint size, multiplier, shift, unused;
  long strides[views];
};

template <int views>
struct Offsets {
  long of[views];
};

template <int views>
struct Walk {
  uint size;
  int dimensions;
  long bases[views];  // offsets of position 0
};

// Where position `index` is in each of the views.
template <int views>
inline Offsets<views> offsets_of(uint index, constant Walk<views>& walk,
                                 constant JointExtent<views>* extents) {
  Offsets<views> offsets;
  for (int v = 0; v < views; ++v) offsets.of[v] = walk.bases[v];
#pragma clang loop unroll(disable)
  for (int d = walk.dimensions - 1; d >= 0; --d) {
    uint quotient = 0, place = index;
    if (d > 0) {
      quotient = mulhi(index, extents[d].multiplier) >> extents[d].shift;
      place = index - quotient * extents[d].size;
    }
    for (int v = 0; v < views; ++v) offsets.of[v] += long(place) * extents[d].strides[v];
    index = quotient;
  }
  return offsets;
}
