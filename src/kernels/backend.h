// Backend: what a device does for the library's ops, one function per family.
//
// An op says what is computed (shapes, dtypes, derivatives); its `encode` hands that to the backend
// of the queue's device, which encodes the commands. `kernels/plan` holds the words that both
// speak.
//
// Outputs have memory when a function's comment says so; else the function gives it to them
// (Encoder::allocate, or what an input that is not needed any more leaves).
#pragma once

#include <vector>

#include <holdfast/array.h>
#include <holdfast/encoder.h>

#include "exec/queue.h"
#include "graph/op.h"
#include "kernels/plan/quantization.h"
#include "kernels/plan/reduce.h"
#include "kernels/plan/rows.h"
#include "kernels/plan/scan.h"

namespace holdfast::kernels {

class Backend {
 public:
  virtual ~Backend() = default;

  // --- copies, views, indices ---

  // The elements of `in` in row-major order. `out` has memory, and elements.
  virtual void copy(Encoder& encoder, const array& in, array& out) = 0;

  // --- reductions, scans, sorts ---

  // Over distinct axes; `out` keeps the others in order, with or without axes of size 1.
  virtual void reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes, const array& in,
                      array& out) = 0;
  // Over sorted axes; of a real floating-point type.
  virtual void softmax(Encoder& encoder, const std::vector<int>& axes, const array& in,
                       array& out) = 0;
  virtual void scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out) = 0;

  // --- norms, attention, transforms, convolutions, factorisations ---

  // --- creation, random numbers ---

  // --- products, quantisation ---

  // a [..., m, k] times b [..., k, n], of one dtype, over batches that broadcast. `out` has their
  // dtype, or float32 for half types: the product before it is rounded.
  virtual void matmul(Encoder& encoder, const array& a, const array& b, array& out) = 0;
  // For each pair of `segments`, start and stop (uint32): a [m, k] from column start to stop times
  // the rows of b [k, n]. The command throws std::out_of_range for a segment that is not in k.
  virtual void segmented_matmul(Encoder& encoder, const array& a, const array& b,
                                const array& segments, array& out) = 0;
  // Inputs: the weights, and the global scale (float32) where there is one. Outputs: codes, scales,
  // biases (affine).
  virtual void quantize(Encoder& encoder, const QuantizedFormat& format,
                        const std::vector<array>& inputs, std::vector<array>& outputs) = 0;
  // Inputs: codes, scales, biases (affine).
  virtual void dequantize(Encoder& encoder, const QuantizedFormat& format,
                          const std::vector<array>& inputs, array& out) = 0;
  // Inputs: x, codes, scales, biases (affine), indices (uint32) of matrices of x and of w
  // (gathers). The command throws std::out_of_range for an index without a matrix.
  virtual void quantized_matmul(Encoder& encoder, const QuantizedProduct& product,
                                const std::vector<array>& inputs, array& out) = 0;

  // --- element-wise programs ---

  // One pass over the group's shape.
  virtual void fused(Encoder& encoder, const FusedGroup& group) = 0;
  virtual void rows(Encoder& encoder, const RowGroup& group, const std::vector<array>& inputs,
                    std::vector<array>& outputs) = 0;
};

// Of the device that the encoder's queue runs on.
inline Backend& backend_of(Encoder& encoder) { return *encoder.queue().device().backend; }

}  // namespace holdfast::kernels
