#include "io/gguf_blocks.h"

#include <cstring>

#include <holdfast/types.h>

namespace holdfast::io {
namespace {

float half_at(const char* from) {
  float16_t value;
  std::memcpy(&value, from, 2);
  return static_cast<float>(value);
}
uint8_t byte_at(const char* from) { return static_cast<uint8_t>(*from); }

// Calls `block(source, i)` for each block i.
template <size_t bytes, class Block>
void each(const char* source, int64_t begin, int64_t end, Block block) {
  for (int64_t i = begin; i < end; ++i, source += bytes) block(source, i);
}

// --- groups of 32: as quantized_matmul takes them ---

// Sixteen bytes, value j in the low half of byte j, value j + 16 in the high one → value j at bit
// 4·j.
void repack_nibbles(const char* from, uint32_t* to) {
  for (int word = 0; word < 4; ++word) {
    uint32_t packed = 0;
    for (int i = 0; i < 8; ++i) {
      int j = word * 8 + i;
      uint32_t byte = byte_at(from + j % 16);
      packed |= (j < 16 ? byte & 15 : byte >> 4) << (4 * i);
    }
    to[word] = packed;
  }
}

// 4 bits: value q stands for d·q + m, where m is in the block (Q4_1) or -8·d (Q4_0).
template <size_t bytes>
void nibble_weights(const char* source, char* target, int64_t begin, int64_t end) {
  auto* to = reinterpret_cast<uint32_t*>(target);
  each<bytes>(source, begin, end, [&](const char* block, int64_t i) {
    repack_nibbles(block + bytes - 16, to + i * 4);
  });
}
// 8 bits, signed: stored with 128 added, so the bias is -128·d.
void byte_weights(const char* source, char* target, int64_t begin, int64_t end) {
  each<34>(source, begin, end, [&](const char* block, int64_t i) {
    for (int j = 0; j < 32; ++j)
      target[i * 32 + j] = static_cast<char>(byte_at(block + 2 + j) ^ 0x80);
  });
}
template <size_t bytes, size_t offset = 0>
void copy_half(const char* source, char* target, int64_t begin, int64_t end) {
  each<bytes>(source, begin, end, [&](const char* block, int64_t i) {
    std::memcpy(target + i * 2, block + offset, 2);
  });
}
template <size_t bytes, int times>
void scaled_half(const char* source, char* target, int64_t begin, int64_t end) {
  each<bytes>(source, begin, end, [&](const char* block, int64_t i) {
    float16_t bias(half_at(block) * static_cast<float>(times));
    std::memcpy(target + i * 2, &bias, 2);
  });
}

// --- the others: values as float16 ---

// Writes `values` halves for each block through `value(block, j)`.
template <int values, size_t bytes, class Value>
void to_halves(const char* source, char* target, int64_t begin, int64_t end, Value value) {
  auto* to = reinterpret_cast<float16_t*>(target);
  each<bytes>(source, begin, end, [&](const char* block, int64_t i) {
    for (int j = 0; j < values; ++j) to[i * values + j] = float16_t(value(block, j));
  });
}

// Five bits: the fifth stands in a word of 32 bits.
int five_bits(const char* high, const char* low, int j) {
  uint32_t word;
  std::memcpy(&word, high, 4);
  int nibble = j < 16 ? byte_at(low + j) & 15 : byte_at(low + j - 16) >> 4;
  return nibble | static_cast<int>((word >> j) & 1) << 4;
}
void q5_0(const char* source, char* target, int64_t begin, int64_t end) {
  to_halves<32, 22>(source, target, begin, end, [](const char* block, int j) {
    return half_at(block) * static_cast<float>(five_bits(block + 2, block + 6, j) - 16);
  });
}
void q5_1(const char* source, char* target, int64_t begin, int64_t end) {
  to_halves<32, 24>(source, target, begin, end, [](const char* block, int j) {
    return half_at(block) * static_cast<float>(five_bits(block + 4, block + 8, j)) +
           half_at(block + 2);
  });
}

// Blocks of 256 with scales of their own. Two bits: the values j, j + 32, j + 64, j + 96 of a half
// share byte j.
int two_bits(const char* from, int j) {
  return byte_at(from + j / 128 * 32 + j % 32) >> (j % 128 / 32 * 2) & 3;
}
void q2_k(const char* source, char* target, int64_t begin, int64_t end) {
  to_halves<256, 84>(source, target, begin, end, [](const char* block, int j) {
    int scales = byte_at(block + j / 16);
    return half_at(block + 80) * static_cast<float>(scales & 15) *
               static_cast<float>(two_bits(block + 16, j)) -
           half_at(block + 82) * static_cast<float>(scales >> 4);
  });
}
void q3_k(const char* source, char* target, int64_t begin, int64_t end) {
  to_halves<256, 110>(source, target, begin, end, [](const char* block, int j) {
    const char* scales = block + 96;
    int group = j / 16;
    int low = group < 8 ? byte_at(scales + group) & 15 : byte_at(scales + group - 8) >> 4;
    int scale = (low | (byte_at(scales + 8 + group % 4) >> (group / 4 * 2) & 3) << 4) - 32;
    bool high = byte_at(block + j % 32) >> (j / 32) & 1;
    int value = two_bits(block + 32, j) - (high ? 0 : 4);
    return half_at(block + 108) * static_cast<float>(scale) * static_cast<float>(value);
  });
}

// Scale and minimum of sub-block `group` (of eight), six bits each, in twelve bytes.
void scale_and_minimum(const char* scales, int group, int& scale, int& minimum) {
  if (group < 4) {
    scale = byte_at(scales + group) & 63;
    minimum = byte_at(scales + group + 4) & 63;
  } else {
    scale = (byte_at(scales + group + 4) & 15) | byte_at(scales + group - 4) >> 6 << 4;
    minimum = byte_at(scales + group + 4) >> 4 | byte_at(scales + group) >> 6 << 4;
  }
}
float scaled_minus_minimum(const char* block, int group, int value) {
  int scale, minimum;
  scale_and_minimum(block + 4, group, scale, minimum);
  return half_at(block) * static_cast<float>(scale) * static_cast<float>(value) -
         half_at(block + 2) * static_cast<float>(minimum);
}
// Four bits: two sub-blocks of 32 share 32 bytes.
int four_bits(const char* from, int j) {
  int byte = byte_at(from + j / 64 * 32 + j % 32);
  return j % 64 < 32 ? byte & 15 : byte >> 4;
}
void q4_k(const char* source, char* target, int64_t begin, int64_t end) {
  to_halves<256, 144>(source, target, begin, end, [](const char* block, int j) {
    return scaled_minus_minimum(block, j / 32, four_bits(block + 16, j));
  });
}
void q5_k(const char* source, char* target, int64_t begin, int64_t end) {
  to_halves<256, 176>(source, target, begin, end, [](const char* block, int j) {
    int high = byte_at(block + 16 + j % 32) >> (j / 32) & 1;
    return scaled_minus_minimum(block, j / 32, four_bits(block + 48, j) | high << 4);
  });
}
// Six bits: four in the first 128 bytes, two in the next 64, for each half of 128 values.
void q6_k(const char* source, char* target, int64_t begin, int64_t end) {
  to_halves<256, 210>(source, target, begin, end, [](const char* block, int j) {
    int half = j / 128, within = j % 128;
    int low_byte = byte_at(block + half * 64 + within % 64);
    int low = within < 64 ? low_byte & 15 : low_byte >> 4;
    int high = byte_at(block + 128 + half * 32 + within % 32) >> (within / 32 * 2) & 3;
    int scale = static_cast<int8_t>(byte_at(block + 192 + j / 16));
    return half_at(block + 208) * static_cast<float>(scale) *
           static_cast<float>((low | high << 4) - 32);
  });
}

constexpr GgufBlocks all_blocks[] = {
    {2, "Q4_0", 32, 18, nibble_weights<18>, copy_half<18>, scaled_half<18, -8>, 4, nullptr},
    {3, "Q4_1", 32, 20, nibble_weights<20>, copy_half<20>, copy_half<20, 2>, 4, nullptr},
    {6, "Q5_0", 32, 22, nullptr, nullptr, nullptr, 0, q5_0},
    {7, "Q5_1", 32, 24, nullptr, nullptr, nullptr, 0, q5_1},
    {8, "Q8_0", 32, 34, byte_weights, copy_half<34>, scaled_half<34, -128>, 8, nullptr},
    {10, "Q2_K", 256, 84, nullptr, nullptr, nullptr, 0, q2_k},
    {11, "Q3_K", 256, 110, nullptr, nullptr, nullptr, 0, q3_k},
    {12, "Q4_K", 256, 144, nullptr, nullptr, nullptr, 0, q4_k},
    {13, "Q5_K", 256, 176, nullptr, nullptr, nullptr, 0, q5_k},
    {14, "Q6_K", 256, 210, nullptr, nullptr, nullptr, 0, q6_k},
};

}  // namespace

const GgufBlocks* find_gguf_blocks(uint32_t type) {
  for (const GgufBlocks& blocks : all_blocks) {
    if (blocks.type == type) return &blocks;
  }
  return nullptr;
}

}  // namespace holdfast::io
