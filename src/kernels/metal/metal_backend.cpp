// Families without kernels: one line each, to be removed with the family's file in encode/.
#include "kernels/metal/metal_backend.h"

#include "kernels/cpu/cpu_backend.h"

namespace holdfast::kernels::metal {
namespace {

Backend& fallback() { return cpu::CpuBackend::get(); }

}  // namespace

MetalBackend& MetalBackend::get() {
  static auto* backend = new MetalBackend;  // as long as the process: queues may use it at exit
  return *backend;
}

void MetalBackend::dynamic_slice(Encoder& encoder, std::span<const int> axes, const array& in,
                                 const array& start, array& out) {
  fallback().dynamic_slice(encoder, axes, in, start, out);
}
void MetalBackend::slice_update(Encoder& encoder, const SliceRegion& region, UpdateMode mode,
                                const array& update, const array* start, array& out) {
  fallback().slice_update(encoder, region, mode, update, start, out);
}
void MetalBackend::masked_scatter(Encoder& encoder, const array& mask, const array& source,
                                  array& out) {
  fallback().masked_scatter(encoder, mask, source, out);
}
void MetalBackend::concatenate(Encoder& encoder, int axis, const std::vector<array>& inputs,
                               array& out) {
  fallback().concatenate(encoder, axis, inputs, out);
}
void MetalBackend::pad(Encoder& encoder, const Shape& low, const array& in, const array& value,
                       array& out) {
  fallback().pad(encoder, low, in, value, out);
}
void MetalBackend::gather(Encoder& encoder, const Indexing& indexing, const array& in,
                          std::span<const array> indices, array& out) {
  fallback().gather(encoder, indexing, in, indices, out);
}
void MetalBackend::scatter(Encoder& encoder, const Indexing& indexing, UpdateMode mode,
                           std::span<const array> indices, const array& updates, array& out) {
  fallback().scatter(encoder, indexing, mode, indices, updates, out);
}
void MetalBackend::convert_fp8(Encoder& encoder, const array& in, array& out) {
  fallback().convert_fp8(encoder, in, out);
}
void MetalBackend::reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes,
                          const array& in, array& out) {
  fallback().reduce(encoder, op, axes, in, out);
}
void MetalBackend::softmax(Encoder& encoder, const std::vector<int>& axes, const array& in,
                           array& out) {
  fallback().softmax(encoder, axes, in, out);
}
void MetalBackend::scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out) {
  fallback().scan(encoder, kind, in, out);
}
void MetalBackend::recurrence(Encoder& encoder, int axis, bool reverse, const array& factors,
                              const array& terms, array& out) {
  fallback().recurrence(encoder, axis, reverse, factors, terms, out);
}
void MetalBackend::sort(Encoder& encoder, const SortKind& kind, const array& in, array& out) {
  fallback().sort(encoder, kind, in, out);
}
void MetalBackend::search_sorted(Encoder& encoder, bool right, const array& sorted,
                                 const array& values, array& out) {
  fallback().search_sorted(encoder, right, sorted, values, out);
}
void MetalBackend::norm(Encoder& encoder, NormKind kind, float epsilon, const array& in,
                        const array* weight, const array* bias, array& out) {
  fallback().norm(encoder, kind, epsilon, in, weight, bias, out);
}
void MetalBackend::rope(Encoder& encoder, const RopeSettings& settings, const array& in,
                        const array* offsets, const array* frequencies, array& out) {
  fallback().rope(encoder, settings, in, offsets, frequencies, out);
}
void MetalBackend::attention(Encoder& encoder, float scale, bool causal,
                             const AttentionInputs& inputs, array& out) {
  fallback().attention(encoder, scale, causal, inputs, out);
}
void MetalBackend::fft(Encoder& encoder, const FftSettings& settings, const array& in, array& out) {
  fallback().fft(encoder, settings, in, out);
}
void MetalBackend::hadamard(Encoder& encoder, float scale, bool transposed, const array& in,
                            array& out) {
  fallback().hadamard(encoder, scale, transposed, in, out);
}
void MetalBackend::convolution(Encoder& encoder, const ConvolutionShape& shape, const array& in,
                               const array& weights, array& out) {
  fallback().convolution(encoder, shape, in, weights, out);
}
void MetalBackend::factorise(Encoder& encoder, FactorisationMethod method, bool upper,
                             const std::vector<array>& inputs, std::vector<array>& outputs) {
  fallback().factorise(encoder, method, upper, inputs, outputs);
}
void MetalBackend::random_bits(Encoder& encoder, const array& key, array& out) {
  fallback().random_bits(encoder, key, out);
}
void MetalBackend::matmul(Encoder& encoder, const array& a, const array& b, array& out) {
  fallback().matmul(encoder, a, b, out);
}
void MetalBackend::segmented_matmul(Encoder& encoder, const array& a, const array& b,
                                    const array& segments, array& out) {
  fallback().segmented_matmul(encoder, a, b, segments, out);
}
void MetalBackend::quantize(Encoder& encoder, const QuantizedFormat& format,
                            const std::vector<array>& inputs, std::vector<array>& outputs) {
  fallback().quantize(encoder, format, inputs, outputs);
}
void MetalBackend::dequantize(Encoder& encoder, const QuantizedFormat& format,
                              const std::vector<array>& inputs, array& out) {
  fallback().dequantize(encoder, format, inputs, out);
}
void MetalBackend::quantized_matmul(Encoder& encoder, const QuantizedProduct& product,
                                    const std::vector<array>& inputs, array& out) {
  fallback().quantized_matmul(encoder, product, inputs, out);
}
void MetalBackend::fused(Encoder& encoder, const FusedGroup& group) {
  fallback().fused(encoder, group);
}
void MetalBackend::rows(Encoder& encoder, const RowGroup& group, const std::vector<array>& inputs,
                        std::vector<array>& outputs) {
  fallback().rows(encoder, group, inputs, outputs);
}

}  // namespace holdfast::kernels::metal
