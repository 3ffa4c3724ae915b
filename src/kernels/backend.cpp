#include "kernels/backend.h"

namespace holdfast::kernels {

Backend& Backend::none() {
  static Backend* backend = new Backend;
  return *backend;
}

void Backend::copy(Encoder&, const array&, array&) { throw exec::NoKernel(); }
void Backend::dynamic_slice(Encoder&, std::span<const int>, const array&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::slice_update(Encoder&, const SliceRegion&, UpdateMode, const array&, const array*,
                           array&) {
  throw exec::NoKernel();
}
void Backend::masked_scatter(Encoder&, const array&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::concatenate(Encoder&, int, const std::vector<array>&, array&) {
  throw exec::NoKernel();
}
void Backend::pad(Encoder&, const Shape&, const array&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::gather(Encoder&, const Indexing&, const array&, std::span<const array>, array&) {
  throw exec::NoKernel();
}
void Backend::scatter(Encoder&, const Indexing&, UpdateMode, std::span<const array>, const array&,
                      array&) {
  throw exec::NoKernel();
}
void Backend::convert_fp8(Encoder&, const array&, array&) { throw exec::NoKernel(); }
void Backend::reduce(Encoder&, ReduceOp, const std::vector<int>&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::softmax(Encoder&, const std::vector<int>&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::scan(Encoder&, const ScanKind&, const array&, array&) { throw exec::NoKernel(); }
void Backend::recurrence(Encoder&, int, bool, const array&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::sort(Encoder&, const SortKind&, const array&, array&) { throw exec::NoKernel(); }
void Backend::search_sorted(Encoder&, bool, const array&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::norm(Encoder&, NormKind, float, const array&, const array*, const array*, array&) {
  throw exec::NoKernel();
}
void Backend::rope(Encoder&, const RopeSettings&, const array&, const array*, const array*,
                   array&) {
  throw exec::NoKernel();
}
void Backend::attention(Encoder&, float, bool, const AttentionInputs&, array&) {
  throw exec::NoKernel();
}
void Backend::fft(Encoder&, const FftSettings&, const array&, array&) { throw exec::NoKernel(); }
void Backend::hadamard(Encoder&, float, bool, const array&, array&) { throw exec::NoKernel(); }
void Backend::convolution(Encoder&, const ConvolutionShape&, const array&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::factorise(Encoder&, FactorisationMethod, bool, const std::vector<array>&,
                        std::vector<array>&) {
  throw exec::NoKernel();
}
void Backend::kv_write(Encoder&, const KvWrite&, array&, array&) { throw exec::NoKernel(); }
void Backend::kv_convert(Encoder&, const KvRows&, bool, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::paged_attention(Encoder&, const PagedAttention&, const PagedInputs&, array&) {
  throw exec::NoKernel();
}
void Backend::gated_delta(Encoder&, const DeltaInputs&, array&, array&) { throw exec::NoKernel(); }
void Backend::causal_conv(Encoder&, const ConvInputs&, array&, array&) { throw exec::NoKernel(); }
void Backend::fill(Encoder&, const array&, array&) { throw exec::NoKernel(); }
void Backend::arange(Encoder&, double, double, array&) { throw exec::NoKernel(); }
void Backend::random_bits(Encoder&, const array&, array&) { throw exec::NoKernel(); }
void Backend::matmul(Encoder&, const array&, const array&, array&) { throw exec::NoKernel(); }
void Backend::segmented_matmul(Encoder&, const array&, const array&, const array&, array&) {
  throw exec::NoKernel();
}
void Backend::quantize(Encoder&, const QuantizedFormat&, const std::vector<array>&,
                       std::vector<array>&) {
  throw exec::NoKernel();
}
void Backend::dequantize(Encoder&, const QuantizedFormat&, const std::vector<array>&, array&) {
  throw exec::NoKernel();
}
void Backend::quantized_matmul(Encoder&, const QuantizedProduct&, const std::vector<array>&,
                               array&) {
  throw exec::NoKernel();
}
void Backend::fused(Encoder&, const FusedGroup&) { throw exec::NoKernel(); }
void Backend::rows(Encoder&, const RowGroup&, const std::vector<array>&, std::vector<array>&) {
  throw exec::NoKernel();
}

}  // namespace holdfast::kernels
