// Values that are made in one block and read in another: signed indices of several parts, of which
// a part is made before a barrier and the whole is used in a conditional block after it. How the
// emitter takes such an index apart must not lose a part.
#include <doctest/doctest.h>

#include "jit/widen_testing.h"

namespace {

using namespace holdfast::jit;
using testing::Buffer;
using testing::check_widened;
using testing::Dispatch;

// Groups of several simdgroups, of one, and of a part of one; positions that do not rise by lanes.
const std::vector<Dispatch> shapes = {
    {{128, 4, 1}, {64, 1, 1}}, {{128, 4, 1}, {128, 1, 1}}, {{96, 2, 1}, {96, 1, 1}},
    {{32, 3, 1}, {32, 1, 1}},  {{50, 4, 1}, {20, 1, 1}},   {{48, 4, 1}, {24, 2, 1}},
};

// What the kernels read as sizes: wide enough for all of the shapes.
constexpr int32_t hidden = 640, group_size = 128, rows = 4;

Buffer numbers(const std::vector<int32_t>& values) { return Buffer::of(values); }

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

}  // namespace

// Rotations of pairs of channels in threadgroup memory, several of them, then out by a signed
// index.
TEST_CASE("widen: pairwise rotation with a signed index of parts from before the barriers") {
  const std::string text = R"(
kernel void k(device const half* x [[buffer(0)]], device half* out [[buffer(1)]],
              device const short* pairs [[buffer(2)]], device const half* angles [[buffer(3)]],
              device const int* sizes [[buffer(4)]], uint3 group [[threadgroup_position_in_grid]],
              uint3 local [[thread_position_in_threadgroup]],
              uint3 grid_position [[thread_position_in_grid]],
              uint3 size [[threads_per_threadgroup]]) {
  threadgroup half tile[256];
  const $T hidden = sizes[0], gs = sizes[1], rotations = sizes[2];
  const $T tid = $T(local.x), g = $T(group.x), row = $T(grid_position.y);
  const $T column = g * gs + tid;
  threadgroup half* mine = tile + local.y * 64;
  mine[tid] = x[row * hidden + column];
  for ($T r = 0; r < rotations; ++r) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const $T other = min($T(pairs[r * gs + tid]), $T(size.x - 1));
    const float a = angles[r * gs + tid], b = mine[tid], c = mine[other];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    mine[tid] = half(other < tid ? c * sin(a) + b * cos(a) : b * cos(a) - c * sin(a));
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sizes[3] > 0) {
    out[row * hidden + (g * gs + tid)] = mine[tid];
    if (sizes[4] > 0) out[row * hidden + column + sizes[5]] = half(1);
  }
})";
  constexpr int32_t rotations = 3;
  std::vector<int16_t> pairs;
  for (int32_t i = 0; i < rotations * group_size; ++i)
    pairs.push_back(static_cast<int16_t>((i ^ (1 << i / group_size)) % group_size));
  // Halves between 1 and 2.
  Buffer x = Buffer::integers(rows * hidden / 2, 1), angles = Buffer::integers(256, 2);
  for (Buffer* buffer : {&x, &angles}) {
    for (size_t i = 1; i < buffer->bytes.size(); i += 2)
      buffer->bytes[i] = static_cast<char>(0x3c + (buffer->bytes[i] & 3));
  }
  for (const char* type : {"int", "short"}) {
    CAPTURE(type);
    check_widened(replaced(text, "$T", type),
                  {x, Buffer::zeros(4 * rows * hidden + 4), Buffer::of(pairs), angles,
                   numbers({hidden, group_size, rotations, 1, 1, rows * hidden})},
                  shapes);
  }
}

// Parts of parts, one of them negative, in loops and nested conditions, for loads and stores of
// device, threadgroup and private memory.
TEST_CASE("widen: signed indices of parts from before a barrier, in loops and conditions") {
  const std::string text = R"(
kernel void k(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
              device const int* sizes [[buffer(2)]], uint3 group [[threadgroup_position_in_grid]],
              uint3 local [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
              uint3 p [[thread_position_in_grid]], uint3 size [[threads_per_threadgroup]],
              uint tid [[thread_index_in_threadgroup]]) {
  threadgroup uint tile[512];
  const $T hidden = sizes[0], gs = sizes[1], some = sizes[2], less = sizes[3];
  const $T line = $T(p.y);
  const $T first = $T(group.x) * gs + $T(local.x);
  const $T second = some + (first + less), third = $T(lane) * 2 + (some + $T(local.x));
  uint sum = 0, own[4] = {tid, lane, 3, 4};
  for (uint i = tid; i < 512; i += size.x * size.y) tile[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (some > 2) sum += in[second] + in[line * hidden + first];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for ($T i = 0; i < some; ++i) {
    const $T moved = first + some - less + i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sizes[4 + i] > 0) {
      sum = sum * 31 + in[line * hidden + second];
      if (sum & 1) sum += in[moved + some] ^ tile[third];
      else sum ^= tile[third + some];
    }
    threadgroup_barrier(mem_flags::mem_none);
    if (sizes[5] > 0) sum += in[moved + line];
    for (uint k = 0; k < (lane & 3); ++k) {
      if (sizes[6] > 0) sum += tile[third + $T(k)] + own[(third + $T(k)) & 3];
    }
  }
  if (sizes[7] > 0) out[line * hidden + first] = sum;
  if (sizes[8] > 0 && (lane & 1)) out[line * hidden + (first + less) - less] += 5;
})";
  for (const char* type : {"int", "uint"}) {
    CAPTURE(type);
    check_widened(replaced(text, "$T", type),
                  {Buffer::integers(rows * hidden + 256, 3), Buffer::zeros(4 * rows * hidden),
                   numbers({hidden, group_size, 3, 2, 1, 1, 1, 1, 1})},
                  shapes);
  }
}
