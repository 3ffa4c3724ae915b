#include "kernels/cpu/kv_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/simd/hadamard_kernels.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(KvKernels, kv_kernels)

namespace holdfast::kernels::cpu {
namespace {

void transform(float* row, int64_t dims) {
  constexpr uint32_t one_piece = 0;
  simd::hadamard_kernels().transform(row, 1, dims, &one_piece,
                                     1.0f / std::sqrt(static_cast<float>(dims)));
}

}  // namespace

KvCodec::KvCodec(const KvRows& rows) : rows_(rows) {
  if (!rows.is_turbo()) return;
  tables_ = turbo_tables(rows);
  for (size_t i = 0; i < codebook_.size(); ++i) {
    codebook_[i] = tables_->codebook[i % tables_->codebook.size()];
  }
}

void KvCodec::rotate(float* row, float* spare) const {
  if (tables_ == nullptr) return;
  const auto dims = static_cast<size_t>(rows_.dims);
  if (!tables_->signs.empty()) {
    for (size_t j = 0; j < dims; ++j) row[j] *= tables_->signs[j];
    return transform(row, rows_.dims);
  }
  for (size_t j = 0; j < dims; ++j) {
    spare[j] = simd::quantized_kernels().dot(&tables_->matrix[j * dims], row, rows_.dims);
  }
  std::copy_n(spare, dims, row);
}

void KvCodec::rotate_back(float* row, float* spare) const {
  if (tables_ == nullptr) return;
  const auto dims = static_cast<size_t>(rows_.dims);
  if (!tables_->signs.empty()) {
    transform(row, rows_.dims);
    for (size_t j = 0; j < dims; ++j) row[j] *= tables_->signs[j];
    return;
  }
  std::fill_n(spare, dims, 0.0f);
  for (size_t j = 0; j < dims; ++j) {
    simd::quantized_kernels().add_scaled(row[j], &tables_->matrix[j * dims], rows_.dims, spare);
  }
  std::copy_n(spare, dims, row);
}

void KvCodec::encode(float* row, float* spare, uint32_t* words) const {
  const simd::KvKernels& kernels = simd::kv_kernels();
  if (rows_.bits == 8) return kernels.pack_affine(row, rows_.dims, rows_.group(), words);
  float norm = std::sqrt(kernels.sum_of_squares(row, rows_.dims));
  const float factor = 1.0f / std::max(norm, smallest_norm);
  for (int j = 0; j < rows_.dims; ++j) row[j] *= factor;
  rotate(row, spare);
  const float squares = kernels.pack(row, rows_.dims, rows_.bits, codebook_.data(),
                                     tables_->boundaries.data(), words);
  // What a matrix rotates gets its length back, as those who designed the format do.
  if (tables_->signs.empty()) norm /= std::sqrt(squares);
  std::memcpy(words + rows_.packed_words(), &norm, sizeof(norm));
}

void KvCodec::decode(const uint32_t* words, float* row, float* spare) const {
  simd::kv_kernels().unpack(side(float32, nullptr, 0, 1, 1), words, row);
  rotate_back(row, spare);
}

simd::KvSide KvCodec::side(Dtype dtype, const void* base, int64_t head, int64_t heads,
                           int64_t block_size) const {
  const int64_t item = rows_.bits == 0 ? static_cast<int64_t>(dtype.size()) : 4;
  const int64_t row_bytes = rows_.width() * item;
  return {
      rows_.dims,
      rows_.bits,
      dtype.val(),
      rows_.packed_words(),
      rows_.group(),
      rows_.width(),
      codebook_.data(),
      base == nullptr ? nullptr : static_cast<const char*>(base) + head * block_size * row_bytes,
      heads * block_size * row_bytes,
      row_bytes};
}

}  // namespace holdfast::kernels::cpu
