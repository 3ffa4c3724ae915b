// Rows of caches on the host: numbers to stored rows and back.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <holdfast/array.h>

#include "kernels/cpu/simd/kv_kernels.h"
#include "kernels/plan/kv_cache.h"

namespace holdfast::kernels::cpu {

// A format with its tables. Rows are `dims` floats.
class KvCodec {
 public:
  explicit KvCodec(const KvRows& rows);

  const KvRows& rows() const { return rows_; }
  // Floats that the functions need for themselves.
  int64_t spare() const { return rows_.dims; }
  // In place: into the space where a turbo format has its indices, and back; nothing for others.
  void rotate(float* row, float* spare) const;
  void rotate_back(float* row, float* spare) const;
  // Of formats with bits. `row` is changed.
  void encode(float* row, float* spare, uint32_t* words) const;
  void decode(const uint32_t* words, float* row, float* spare) const;

  // Of a head of a pool with `heads` of them, whose memory begins at `base`. Refers to this codec.
  simd::KvSide side(Dtype dtype, const void* base, int64_t head, int64_t heads,
                    int64_t block_size) const;

 private:
  KvRows rows_;
  std::shared_ptr<const TurboTables> tables_;  // null unless turbo
  std::array<float, 16> codebook_{};
};

}  // namespace holdfast::kernels::cpu
