#include "jit/ptx/tile_cases.h"

#include <holdfast/types.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace holdfast::jit::testing {
namespace {

Words random_words(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Words result(count);
  for (uint32_t& word : result) word = random();
  return result;
}

template <class T>
uint32_t bits_of(float value) {
  return std::bit_cast<uint16_t>(T(value));
}

Words from_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0, 100);
  Words result(count);
  for (uint32_t& word : result) word = std::bit_cast<uint32_t>(distribution(random));
  return result;
}

// y[block * tile_threads + thread] = value(block, thread).
Words results(uint32_t blocks, const std::function<uint32_t(uint32_t, uint32_t)>& value) {
  Words result;
  for (uint32_t block = 0; block < blocks; ++block)
    for (uint32_t thread = 0; thread < tile_threads; ++thread)
      result.push_back(value(block, thread));
  return result;
}

uint32_t permuted(uint32_t low, uint32_t high, uint32_t selector) {
  const uint32_t words[2] = {low, high};
  uint8_t from[8], to[4];
  std::memcpy(from, words, 8);
  for (int i = 0; i < 4; ++i) {
    const uint32_t choice = selector >> 4 * i & 15;
    to[i] = from[choice & 7];
    if (choice >= 8) to[i] = static_cast<int8_t>(to[i]) < 0 ? 255 : 0;
  }
  uint32_t result;
  std::memcpy(&result, to, 4);
  return result;
}

TileCase byte_permutes() {
  TileCase one{"byte_permute",
               "y[i] = holdfast::byte_permute(x[i], x[i + 64], x[i + 128]);\n"
               "y[i + 64] = holdfast::byte_permute(x[i], x[i + 64], 0x5140u);\n"
               "y[i + 128] = holdfast::byte_permute(x[i], x[i + 64], 0x9bfdu);\n",
               random_words(192, 1),
               {},
               {"prmt.b32"}};
  const Words& x = one.input;
  one.expected = results(3, [&](uint32_t block, uint32_t i) {
    const uint32_t selectors[] = {x[i + 128], 0x5140, 0x9bfd};
    return permuted(x[i], x[i + 64], selectors[block]);
  });
  return one;
}

TileCase packs() {
  TileCase one{"pack_half, pack_bfloat",
               "float a = as_type<float>(x[i]), b = as_type<float>(x[i + 64]);\n"
               "y[i] = holdfast::pack_half(a, b);\n"
               "y[i + 64] = holdfast::pack_bfloat(a, b);\n",
               from_floats(128, 2),
               {},
               {"cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32"}};
  const Words& x = one.input;
  one.expected = results(2, [&](uint32_t block, uint32_t i) {
    const float a = std::bit_cast<float>(x[i]), b = std::bit_cast<float>(x[i + 64]);
    return block == 0 ? bits_of<float16_t>(a) | bits_of<float16_t>(b) << 16
                      : bits_of<bfloat16_t>(a) | bits_of<bfloat16_t>(b) << 16;
  });
  return one;
}

TileCase transposes() {
  TileCase one{"transpose_8x8",
               "y[i] = holdfast::transpose_8x8(x[i]);\n",
               random_words(64, 3),
               {},
               {"movmatrix.sync.aligned.m8n8.trans.b16"}};
  const Words& x = one.input;
  one.expected = results(1, [&](uint32_t, uint32_t i) {
    uint32_t result = 0;
    for (uint32_t e = 0; e < 2; ++e) {
      const uint32_t row = i % 4 * 2 + e, column = i % 32 / 4;
      const uint32_t word = x[i / 32 * 32 + row * 4 + column / 2];
      result |= (word >> 16 * (column % 2) & 0xffff) << 16 * e;
    }
    return result;
  });
  return one;
}

// Two products, one on the other's result. Integers up to 8: no sum is rounded; or any numbers.
template <class T>
TileCase products(const char* name, const std::string& type, bool is_exact,
                  const char* instruction) {
  TileCase one{name,
               "uint4 a = uint4(x[i], x[i + 64], x[i + 128], x[i + 192]);\n"
               "uint2 b = uint2(x[i + 256], x[i + 320]);\n"
               "float4 c = float4(i, 1, lane, -7) * 0.25f;\n"
               "c = holdfast::mma_m16n8k16<" +
                   type +
                   ">(a, b, c);\n"
                   "c = holdfast::mma_m16n8k16<" +
                   type +
                   ">(a, b.yx, c);\n"
                   "y[i] = as_type<uint>(c.x); y[i + 64] = as_type<uint>(c.y);\n"
                   "y[i + 128] = as_type<uint>(c.z); y[i + 192] = as_type<uint>(c.w);\n",
               {},
               {},
               {instruction},
               is_exact};
  std::mt19937 random(4);
  auto number = [&] {
    return is_exact ? static_cast<float>(static_cast<int>(random() % 17) - 8)
                    : static_cast<float>(static_cast<int32_t>(random())) * 0x1p-29f;
  };
  for (uint32_t i = 0; i < 6 * tile_threads; ++i) {
    const uint32_t low = bits_of<T>(number());
    one.input.push_back(low | bits_of<T>(number()) << 16);
  }
  one.expected.resize(4 * tile_threads);
  for (uint32_t simdgroup = 0; simdgroup < 2; ++simdgroup) {
    auto at = [&](uint32_t block, uint32_t lane, uint32_t e) {
      const uint32_t word = one.input[block * tile_threads + simdgroup * 32 + lane];
      return static_cast<float>(std::bit_cast<T>(static_cast<uint16_t>(word >> 16 * e)));
    };
    auto a = [&](uint32_t row, uint32_t k) {
      return at(row / 8 + k / 8 * 2, row % 8 * 4 + k % 8 / 2, k % 2);
    };
    auto b = [&](uint32_t k, uint32_t column) {
      return at(4 + k / 8, column * 4 + k % 8 / 2, k % 2);
    };
    for (uint32_t row = 0; row < 16; ++row) {
      for (uint32_t column = 0; column < 8; ++column) {
        const uint32_t lane = row % 8 * 4 + column / 2, i = simdgroup * 32 + lane;
        const uint32_t element = row / 8 * 2 + column % 2;
        const float start[] = {static_cast<float>(i), 1, static_cast<float>(lane), -7};
        float sum = start[element] * 0.25f;
        for (uint32_t k = 0; k < 16; ++k) sum = std::fma(a(row, k), b(k, column), sum);
        for (uint32_t k = 0; k < 16; ++k) sum = std::fma(a(row, k), b((k + 8) % 16, column), sum);
        one.expected[element * tile_threads + i] = std::bit_cast<uint32_t>(sum);
      }
    }
  }
  return one;
}

// Each simdgroup has 32 rows of four words, and lane l says that row l is the one in place 5 l + 3.
TileCase matrices() {
  TileCase one{"load_matrices",
               "threadgroup uint4 rows[64];\n"
               "rows[i] = uint4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);\n"
               "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
               "uint offset = (i - lane + (lane * 5 + 3) % 32) * 16;\n"
               "uint4 m = holdfast::load_matrices(rows, offset);\n"
               "y[i] = m.x; y[i + 64] = m.y; y[i + 128] = m.z; y[i + 192] = m.w;\n"
               "m = holdfast::load_matrices<true>(rows, offset);\n"
               "y[i + 256] = m.x; y[i + 320] = m.y; y[i + 384] = m.z; y[i + 448] = m.w;\n"
               "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
               "rows[i].x = ~rows[i].x;\n"
               "simdgroup_barrier(mem_flags::mem_threadgroup);\n"
               "y[i + 512] = holdfast::load_matrices(rows, offset).x;\n",
               random_words(256, 5),
               {},
               {"ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"}};
  const Words& x = one.input;
  one.expected = results(9, [&](uint32_t block, uint32_t i) {
    auto element = [&](uint32_t row, uint32_t column) {
      const uint32_t place = i / 32 * 32 + ((block % 4 * 8 + row) * 5 + 3) % 32;
      const uint32_t word = x[place * 4 + column / 2];
      return (block == 8 && column < 2 ? ~word : word) >> 16 * (column % 2) & 0xffff;
    };
    const uint32_t g = i % 32 / 4, t = i % 4 * 2;
    return block < 4 || block == 8 ? element(g, t) | element(g, t + 1) << 16
                                   : element(t, g) | element(t + 1, g) << 16;
  });
  return one;
}

TileCase copies() {
  TileCase one{
      "async_copy",
      "threadgroup uint4 wide[64];\n"
      "threadgroup uint2 pairs[64];\n"
      "threadgroup uint words[64];\n"
      "holdfast::async_copy<16>(wide + i, x + 4 * i);\n"
      "holdfast::async_copy_commit();\n"
      "holdfast::async_copy<8>(pairs + i, x + 2 * i, i % 3 != 0);\n"
      "holdfast::async_copy<4>(words + i, x + i, i > 9);\n"
      "holdfast::async_copy_commit();\n"
      "holdfast::async_copy_wait<1>();\n"
      "y[i] = wide[i].z;\n"
      "holdfast::async_copy_wait();\n"
      "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
      "uint other = 63 - i;\n"
      "y[i + 64] = wide[other].w; y[i + 128] = pairs[other].x; y[i + 192] = words[other];\n",
      random_words(256, 6),
      {},
      {"cp.async.cg.shared.global", "cp.async.ca.shared.global", "cp.async.commit_group",
       "cp.async.wait_group"}};
  const Words& x = one.input;
  one.expected = results(4, [&](uint32_t block, uint32_t i) {
    const uint32_t other = tile_threads - 1 - i;
    switch (block) {
      case 0:
        return x[4 * i + 2];
      case 1:
        return x[4 * other + 3];
      case 2:
        return other % 3 != 0 ? x[2 * other] : 0;
      default:
        return other > 9 ? x[other] : 0;
    }
  });
  return one;
}

TileCase streams() {
  TileCase one{"load_streaming",
               "uint4 wide = holdfast::load_streaming((device const uint4*)x + i);\n"
               "float2 pair = holdfast::load_streaming((device const float2*)x + i);\n"
               "y[i] = wide.x ^ wide.y ^ wide.z ^ wide.w;\n"
               "y[i + 64] = as_type<uint>(pair.y);\n"
               "y[i + 128] = holdfast::load_streaming(x + i);\n",
               random_words(256, 7),
               {},
               {"ld.global.nc.L1::no_allocate.v4.b32", "ld.global.nc.L1::no_allocate.b32"}};
  const Words& x = one.input;
  one.expected = results(3, [&](uint32_t block, uint32_t i) {
    return block == 0   ? x[4 * i] ^ x[4 * i + 1] ^ x[4 * i + 2] ^ x[4 * i + 3]
           : block == 1 ? x[2 * i + 1]
                        : x[i];
  });
  return one;
}

TileCase launches() {
  TileCase one{"wait_for_launches_before, allow_next_launch",
               "holdfast::allow_next_launch();\n"
               "holdfast::wait_for_launches_before();\n"
               "y[i] = x[i];\n",
               random_words(64, 8),
               {},
               {"griddepcontrol.wait", "griddepcontrol.launch_dependents"}};
  one.expected = one.input;
  return one;
}

std::vector<char> bytes_of(const Words& words) {
  auto* first = reinterpret_cast<const char*>(words.data());
  return std::vector<char>(first, first + words.size() * sizeof(uint32_t));
}

}  // namespace

std::vector<TileCase> tile_cases() {
  constexpr const char *halves = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                       *bfloats = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
  return {byte_permutes(),
          packs(),
          transposes(),
          products<float16_t>("mma_m16n8k16 of half", "half", true, halves),
          products<bfloat16_t>("mma_m16n8k16 of bfloat", "bfloat", true, bfloats),
          products<float16_t>("mma_m16n8k16 of half, rounded", "half", false, halves),
          products<bfloat16_t>("mma_m16n8k16 of bfloat, rounded", "bfloat", false, bfloats),
          matrices(),
          copies(),
          streams(),
          launches()};
}

GpuCase gpu_case(const TileCase& one) {
  GpuCase result;
  result.group = "tiles";
  result.name = one.name;
  result.source.kernel = "k";
  result.source.text =
      "#include <metal_stdlib>\n#include <holdfast/tile.h>\n"
      R"(
using namespace metal;
kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]],
              uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
)" + one.body +
      "}\n";
  result.grid = {tile_threads, 1, 1};
  result.threadgroup = {tile_threads, 1, 1};
  result.argument = [one](const msl::KernelArgument& argument) -> GpuArgument {
    if (argument.slot == 0) return {bytes_of(one.input)};
    return {std::vector<char>(one.expected.size() * sizeof(uint32_t)), true};
  };
  return result;
}

}  // namespace holdfast::jit::testing
