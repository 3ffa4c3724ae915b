// CpuBackend: the library's ops as native commands on the host's memory.
#pragma once

#include "kernels/backend.h"

namespace holdfast::kernels::cpu {

// The functions are in encode/, a file a family.
class CpuBackend final : public Backend {
 public:
  static CpuBackend& get();

  // --- copies, views, indices ---
  void copy(Encoder& encoder, const array& in, array& out) override;
  void dynamic_slice(Encoder& encoder, std::span<const int> axes, const array& in,
                     const array& start, array& out) override;
  void slice_update(Encoder& encoder, const SliceRegion& region, UpdateMode mode,
                    const array& update, const array* start, array& out) override;
  void masked_scatter(Encoder& encoder, const array& mask, const array& source,
                      array& out) override;
  void concatenate(Encoder& encoder, int axis, const std::vector<array>& inputs,
                   array& out) override;
  void pad(Encoder& encoder, const Shape& low, const array& in, const array& value,
           array& out) override;
  void gather(Encoder& encoder, const Indexing& indexing, const array& in,
              std::span<const array> indices, array& out) override;
  void scatter(Encoder& encoder, const Indexing& indexing, UpdateMode mode,
               std::span<const array> indices, const array& updates, array& out) override;
  void convert_fp8(Encoder& encoder, const array& in, array& out) override;

  // --- reductions, scans, sorts ---
  void reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes, const array& in,
              array& out) override;
  void softmax(Encoder& encoder, const std::vector<int>& axes, const array& in,
               array& out) override;
  void scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out) override;
  void recurrence(Encoder& encoder, int axis, bool reverse, const array& factors,
                  const array& terms, array& out) override;
  void sort(Encoder& encoder, const SortKind& kind, const array& in, array& out) override;
  void search_sorted(Encoder& encoder, bool right, const array& sorted, const array& values,
                     array& out) override;

  // --- norms, attention, transforms, convolutions, factorisations ---
  void norm(Encoder& encoder, NormKind kind, float epsilon, const array& in, const array* weight,
            const array* bias, array& out) override;
  void rope(Encoder& encoder, const RopeSettings& settings, const array& in, const array* offsets,
            const array* frequencies, array& out) override;
  void attention(Encoder& encoder, float scale, bool causal, const AttentionInputs& inputs,
                 array& out) override;
  void fft(Encoder& encoder, const FftSettings& settings, const array& in, array& out) override;
  void hadamard(Encoder& encoder, float scale, bool transposed, const array& in,
                array& out) override;
  void convolution(Encoder& encoder, const ConvolutionShape& shape, const array& in,
                   const array& weights, array& out) override;
  void factorise(Encoder& encoder, FactorisationMethod method, bool upper,
                 const std::vector<array>& inputs, std::vector<array>& outputs) override;

  // --- creation, random numbers ---
  void fill(Encoder& encoder, const array& value, array& out) override;
  void arange(Encoder& encoder, double start, double step, array& out) override;
  void random_bits(Encoder& encoder, const array& key, array& out) override;

  // --- products, quantisation ---
  void matmul(Encoder& encoder, const array& a, const array& b, array& out) override;
  void segmented_matmul(Encoder& encoder, const array& a, const array& b, const array& segments,
                        array& out) override;
  void quantize(Encoder& encoder, const QuantizedFormat& format, const std::vector<array>& inputs,
                std::vector<array>& outputs) override;
  void dequantize(Encoder& encoder, const QuantizedFormat& format, const std::vector<array>& inputs,
                  array& out) override;
  void quantized_matmul(Encoder& encoder, const QuantizedProduct& product,
                        const std::vector<array>& inputs, array& out) override;

  // --- element-wise programs ---
  std::unique_ptr<const Prepared> prepare_fused(exec::Device& device,
                                                const FusedGroup& group) override;
  void fused(Encoder& encoder, const FusedGroup& group) override;
  void rows(Encoder& encoder, const RowGroup& group, const std::vector<array>& inputs,
            std::vector<array>& outputs) override;

  // --- language models ---
  void kv_write(Encoder& encoder, const KvWrite& write, array& key_pool,
                array& value_pool) override;
  void kv_convert(Encoder& encoder, const KvRows& format, bool encodes, const array& in,
                  array& out) override;
  void paged_attention(Encoder& encoder, const PagedAttention& attention, const PagedInputs& inputs,
                       array& out) override;
  void gated_delta(Encoder& encoder, const DeltaInputs& inputs, array& states, array& out) override;
  void causal_conv(Encoder& encoder, const ConvInputs& inputs, array& states, array& out) override;
};

}  // namespace holdfast::kernels::cpu
