// What vectors are made of.
#include <metal_stdlib>
using namespace metal;

struct Flags {
  uchar4 bytes;
  uint packed() const { return as_type<uint>(bytes); }
};

kernel void constructors(device uint* ok [[buffer(0)]], device uint* words [[buffer(1)]],
                         uint3 position [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  const ushort4 small(1, 2, 3, 4);
  const uint4 wide(small), from_float(float4(1.5, 2.5, 3.5, 4.5));
  const uint4 mixed(1, 2u, short(3), long(4));
  const uint4 parts(uint2(1, 2), uint2(3, 4)), more(uint3(1, 2, 3), 4), again(1, uint3(2, 3, 4)), middle(1, uint2(2, 3), 4);
  const uint4 all(7), braces{1, 2, 3, 4};
  uint4 copied = *(device uint4*)(words);
  copied = uint4(position, 4u);
  const uint4 of_lane = uint4(lane) + uint4(0, 1, 2, 3);
  ok[0] = metal::all(wide == from_float) && metal::all(wide == mixed) && metal::all(parts == more);
  ok[1] = metal::all(again == middle) && metal::all(braces == again) && all.w == 7 && copied.w == 4;
  ok[2] = of_lane.w == uint(lane) + 3;
  const Flags flags{uchar4(1, 0, 0, 2)};
  ok[3] = flags.packed() == 0x02000001u && ulong2(1, 2).y == 2 && bool4(true).w;
}
