// Backend: what a device does for the library's ops, one function per family.
//
// An op says what is computed (shapes, dtypes, derivatives); its `encode` hands that to the backend
// of the queue's device, which encodes the commands. `kernels/plan` holds the words that both
// speak.
//
// A family that a back-end does not have throws NoKernel: the op is encoded for the host instead,
// and its outputs are copied to the device.
//
// Outputs have memory when a function's comment says so; else the function gives it to them
// (Encoder::allocate, or what an input that is not needed any more leaves).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/encoder.h>

#include "exec/queue.h"
#include "graph/op.h"
#include "kernels/plan/attention.h"
#include "kernels/plan/convolution.h"
#include "kernels/plan/factorise.h"
#include "kernels/plan/fft.h"
#include "kernels/plan/indexing.h"
#include "kernels/plan/kv_cache.h"
#include "kernels/plan/norm.h"
#include "kernels/plan/quantization.h"
#include "kernels/plan/recurrent.h"
#include "kernels/plan/reduce.h"
#include "kernels/plan/rope.h"
#include "kernels/plan/rows.h"
#include "kernels/plan/scan.h"
#include "kernels/plan/sort.h"
#include "kernels/plan/update.h"

namespace holdfast::kernels {

class Backend {
 public:
  virtual ~Backend() = default;
  // One without any kernels.
  static Backend& none();

  // --- copies, views, indices ---

  // The elements of `in` in row-major order. `out` has memory, and elements.
  virtual void copy(Encoder& encoder, const array& in, array& out);
  // A slice of `in`, as large as `out`, that starts where `start` says: one integer for each of
  // `axes`. A start from which it would leave `in` is an error when the op runs.
  virtual void dynamic_slice(Encoder& encoder, std::span<const int> axes, const array& in,
                             const array& start, array& out);
  // `out` holds an array; `update` meets its elements in a region of the same shape. `start`: of
  // the region's axes, as above; null: it has none.
  virtual void slice_update(Encoder& encoder, const SliceRegion& region, UpdateMode mode,
                            const array& update, const array* start, array& out);
  // `out` holds an array, with elements; where `mask`, of its shape, holds, they are replaced by
  // those of `source` (dense), one after the other. Too few of them are an error when the op runs.
  virtual void masked_scatter(Encoder& encoder, const array& mask, const array& source, array& out);
  virtual void concatenate(Encoder& encoder, int axis, const std::vector<array>& inputs,
                           array& out);
  // `in`, surrounded by copies of `value` (one element): `low[i]` in front of it along axis i.
  virtual void pad(Encoder& encoder, const Shape& low, const array& in, const array& value,
                   array& out);
  // The elements of `in` that the indices name.
  virtual void gather(Encoder& encoder, const Indexing& indexing, const array& in,
                      std::span<const array> indices, array& out);
  // `out` holds an array; `updates`, with elements, meet those of its elements that the indices
  // name, in their order. Along an axis: int32, uint32 or int64 indices of the updates' shape, and
  // the modes replace and add.
  virtual void scatter(Encoder& encoder, const Indexing& indexing, UpdateMode mode,
                       std::span<const array> indices, const array& updates, array& out);
  // float32 to e4m3 in uint8, or the other way.
  virtual void convert_fp8(Encoder& encoder, const array& in, array& out);

  // --- reductions, scans, sorts ---

  // Over distinct axes; `out` keeps the others in order, with or without axes of size 1.
  virtual void reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes, const array& in,
                      array& out);
  // Over sorted axes; of a real floating-point type.
  virtual void softmax(Encoder& encoder, const std::vector<int>& axes, const array& in, array& out);
  virtual void scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out);
  // h[i] = factors[i] * h[i - 1] + terms[i] along an axis; h[0] = terms[0]. With `reverse`, from
  // the end. All have one shape and one floating-point or complex type.
  virtual void recurrence(Encoder& encoder, int axis, bool reverse, const array& factors,
                          const array& terms, array& out);
  // Along the last axis.
  virtual void sort(Encoder& encoder, const SortKind& kind, const array& in, array& out);
  // How many elements of the one-dimensional `sorted` come before each value or, if `right`, are
  // not after it. Both have one dtype; `out` is of uint32.
  virtual void search_sorted(Encoder& encoder, bool right, const array& sorted, const array& values,
                             array& out);

  // --- norms, attention, transforms, convolutions, factorisations ---

  // Of rows, the last axis. `weight` and `bias` are rows, null where there is none; all have one
  // floating-point type.
  virtual void norm(Encoder& encoder, NormKind kind, float epsilon, const array& in,
                    const array* weight, const array* bias, array& out);
  // Of (batch, ..., position, feature) of float32 or a half type. `offsets` (int64, one or one per
  // batch) and `frequencies` (float32) are null where the settings hold what they would say.
  virtual void rope(Encoder& encoder, const RopeSettings& settings, const array& in,
                    const array* offsets, const array* frequencies, array& out);
  // softmax(scale * Q K^T + mask) V. Of `causal`, the last query sees all keys, the one before all
  // but the last, and so on; a query that sees nothing takes the mean of all values.
  virtual void attention(Encoder& encoder, float scale, bool causal, const AttentionInputs& inputs,
                         array& out);
  // Along the last axis: complex64, but float32 on the real side.
  virtual void fft(Encoder& encoder, const FftSettings& settings, const array& in, array& out);
  // scale * H x, or H's transpose, for each row x (kernels/plan/hadamard.h), of float32 or a half
  // type.
  virtual void hadamard(Encoder& encoder, float scale, bool transposed, const array& in,
                        array& out);
  // Of one floating-point or complex type.
  virtual void convolution(Encoder& encoder, const ConvolutionShape& shape, const array& in,
                           const array& weights, array& out);
  // `upper`: the half of the matrix that is given, or wanted. On devices that have no such method,
  // the op is refused (check_matrix of ops/linalg.cpp).
  virtual void factorise(Encoder& encoder, FactorisationMethod method, bool upper,
                         const std::vector<array>& inputs, std::vector<array>& outputs);

  // --- creation, random numbers ---

  // Each element is the one of `value`.
  virtual void fill(Encoder& encoder, const array& value, array& out);
  // start + i * step, computed in double.
  virtual void arange(Encoder& encoder, double start, double step, array& out);
  // The bits of one key, which is two words of uint32 (kernels/cpu/threefry.h).
  virtual void random_bits(Encoder& encoder, const array& key, array& out);

  // --- products, quantisation ---

  // a [..., m, k] times b [..., k, n], of one dtype, over batches that broadcast. `out` has their
  // dtype, or float32 for half types: the product before it is rounded.
  virtual void matmul(Encoder& encoder, const array& a, const array& b, array& out);
  // For each pair of `segments`, start and stop (uint32): a [m, k] from column start to stop times
  // the rows of b [k, n]. The command throws std::out_of_range for a segment that is not in k.
  virtual void segmented_matmul(Encoder& encoder, const array& a, const array& b,
                                const array& segments, array& out);
  // Inputs: the weights, and the global scale (float32) where there is one. Outputs: codes, scales,
  // biases (affine).
  virtual void quantize(Encoder& encoder, const QuantizedFormat& format,
                        const std::vector<array>& inputs, std::vector<array>& outputs);
  // Inputs: codes, scales, biases (affine).
  virtual void dequantize(Encoder& encoder, const QuantizedFormat& format,
                          const std::vector<array>& inputs, array& out);
  // Inputs: x, codes, scales, biases (affine), indices (uint32) of matrices of x and of w
  // (gathers). The command throws std::out_of_range for an index without a matrix.
  virtual void quantized_matmul(Encoder& encoder, const QuantizedProduct& product,
                                const std::vector<array>& inputs, array& out);

  // --- element-wise programs ---

  // Called with no queue locked, for a group with a cache: what `fused` is given as
  // FusedGroup::prepared on that device. Null: nothing.
  virtual std::unique_ptr<const Prepared> prepare_fused(exec::Device& /*device*/,
                                                        const FusedGroup& /*group*/) {
    return nullptr;
  }
  // One pass over the group's shape.
  virtual void fused(Encoder& encoder, const FusedGroup& group);
  virtual void rows(Encoder& encoder, const RowGroup& group, const std::vector<array>& inputs,
                    std::vector<array>& outputs);

  // --- language models ---

  // The pools hold arrays, as PagedInputs says. The command throws std::out_of_range for a slot
  // beyond them.
  virtual void kv_write(Encoder& encoder, const KvWrite& write, array& key_pool, array& value_pool);
  // Rows (..., dims) of float32 or a half type to words (..., width), of a format with bits; or the
  // other way.
  virtual void kv_convert(Encoder& encoder, const KvRows& format, bool encodes, const array& in,
                          array& out);
  // The command throws std::out_of_range for integers that name nothing.
  virtual void paged_attention(Encoder& encoder, const PagedAttention& attention,
                               const PagedInputs& inputs, array& out);
  // `states` holds an array: (states, value heads, value dims, key dims) of float32; (states, width
  // - 1, channels) of float32 or the type of x. As above for integers.
  virtual void gated_delta(Encoder& encoder, const DeltaInputs& inputs, array& states, array& out);
  virtual void causal_conv(Encoder& encoder, const ConvInputs& inputs, array& states, array& out);
};

inline Backend& backend_of(Encoder& encoder) { return *encoder.queue().device().backend; }

}  // namespace holdfast::kernels
