// Products on matrix units whose operands are read as blocks of 8 neighbours in the depth.
//
// With g = lane / 4 and c = lane % 4, mma_m16n8k16 takes pairs of neighbours 2 c and 2 c + 8 of row
// g. A product does not care in which order its depth is counted, if both sides count alike: so a
// lane takes block c of 32, of rows g and g + 8 of the left side and of column g of the right, and
// two products use them up.
#include <holdfast/tile.h>

// sums + left right, over a depth of 32. `left` has the lane's block of row g, `low` of row g + 8.
template <typename T>
inline float4 multiply_blocks(uint4 left, uint4 low, uint4 right, float4 sums) {
  sums =
      holdfast::mma_m16n8k16<T>(uint4(left.x, low.x, left.y, low.y), uint2(right.x, right.y), sums);
  return holdfast::mma_m16n8k16<T>(uint4(left.z, low.z, left.w, low.w), uint2(right.z, right.w),
                                   sums);
}
