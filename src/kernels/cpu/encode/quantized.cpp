#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/quantization.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {
namespace {

Shape batch_of_matrices(const array& a) { return Shape(a.shape().begin(), a.shape().end() - 2); }

int64_t matrices_in(const array& a) { return element_count(span_of(batch_of_matrices(a))); }

// For each matrix of the broadcast batch, its number among those of `a`.
std::vector<uint32_t> matrix_numbers(const array& a, const Shape& target) {
  Shape batch = batch_of_matrices(a);
  Strides strides = broadcast_strides(batch, row_major_strides(batch), target);
  CollapsedLayout layout = collapse(span_of(target), span_of(strides));
  std::vector<uint32_t> result;
  for (int64_t i = 0; i < layout.size; ++i) {
    result.push_back(static_cast<uint32_t>(offset_at(layout, i)));
  }
  return result;
}

std::vector<array> all_dense(Encoder& encoder, const std::vector<array>& inputs) {
  std::vector<array> dense;
  for (const array& input : inputs) dense.push_back(make_dense(encoder, input));
  return dense;
}

}  // namespace

void CpuBackend::quantize(Encoder& encoder, const QuantizedFormat& format,
                          const std::vector<array>& inputs, std::vector<array>& outputs) {
  for (array& out : outputs) encoder.allocate(out);
  if (outputs[0].size() == 0) return;
  array w = make_dense(encoder, inputs[0]);
  const bool affine = format.mode == QuantizationMode::affine;
  Bound weights = encoder.input(w), global_scale, biases;
  if (inputs.size() > 1) global_scale = encoder.input(inputs[1]);
  Bound codes = encoder.output(outputs[0]), scales = encoder.output(outputs[1]);
  if (affine) biases = encoder.output(outputs[2]);
  const int64_t length = w.shape(-1), rows = static_cast<int64_t>(w.size()) / length;
  const int64_t groups = length / format.group_size;
  const int64_t code_bytes = format.packed_bytes(length);
  const auto item = static_cast<int64_t>(w.itemsize());
  const Dtype::Val dtype = w.dtype();
  encoder.native(
      encoder.op(), rows, static_cast<int64_t>(w.nbytes()) * 8,
      [=](const NativeContext& context, int64_t begin, int64_t end) {
        const simd::QuantizedKernels& kernels = simd::quantized_kernels();
        TaskScratch scratch(static_cast<size_t>(length + 2 * groups) * sizeof(float));
        auto* wide = static_cast<float*>(scratch.get());
        float* row_scales = wide + length;
        float* row_biases = row_scales + groups;
        const auto* global = context.data<const float>(global_scale);
        for (int64_t row = begin; row < end; ++row) {
          kernels.widen(dtype, context.data(weights) + row * length * item, length, wide);
          quantize_row(format, wide, length, context.data<uint8_t>(codes) + row * code_bytes,
                       row_scales, row_biases, context.data<uint8_t>(scales) + row * groups,
                       global != nullptr ? *global : 0.0f);
          if (!affine) continue;
          const int64_t offset = row * groups * item;
          kernels.narrow(dtype, row_scales, groups, context.data(scales) + offset);
          kernels.narrow(dtype, row_biases, groups, context.data(biases) + offset);
        }
      });
}

void CpuBackend::dequantize(Encoder& encoder, const QuantizedFormat& format,
                            const std::vector<array>& inputs, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  std::vector<array> dense = all_dense(encoder, inputs);
  Bound codes = encoder.input(dense[0]), scales = encoder.input(dense[1]), biases;
  if (dense.size() > 2) biases = encoder.input(dense[2]);
  Bound target = encoder.output(out);
  const int64_t length = out.shape(-1), rows = static_cast<int64_t>(out.size()) / length;
  const int64_t code_bytes = format.packed_bytes(length);
  const int64_t scale_bytes =
      length / format.group_size * static_cast<int64_t>(dense[1].itemsize());
  const Dtype::Val dtype = dense[1].dtype(), to = out.dtype();
  const int64_t row_bytes = length * static_cast<int64_t>(out.itemsize());
  encoder.native(encoder.op(), rows, static_cast<int64_t>(out.nbytes()) * 2,
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   const char* row_biases = context.data(biases);
                   for (int64_t row = begin; row < end; ++row) {
                     simd::QuantizedRow line{
                         context.data(codes) + row * code_bytes,
                         context.data(scales) + row * scale_bytes,
                         row_biases == nullptr ? nullptr : row_biases + row * scale_bytes};
                     simd::quantized_kernels().dequantize(format, dtype, line, 0, length, to,
                                                          context.data(target) + row * row_bytes);
                   }
                 });
}

void CpuBackend::quantized_matmul(Encoder& encoder, const QuantizedProduct& product,
                                  const std::vector<array>& inputs, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const bool affine = product.format.mode == QuantizationMode::affine;
  std::vector<array> dense = all_dense(encoder, inputs);
  const array &x = dense[0], &w = dense[1];
  int64_t m = x.shape(-2), k = x.shape(-1), n = out.shape(-1);
  int64_t batch = static_cast<int64_t>(out.size()) / (m * n);
  int64_t left_count = matrices_in(x);
  const int64_t right_count = matrices_in(w);
  std::vector<uint32_t> left, right;
  if (!product.gathers) {
    if (right_count == 1 && left_count == batch) {
      // One matrix for all: the batch is more rows.
      m *= batch;
      batch = left_count = 1;
    } else {
      left = matrix_numbers(x, batch_of_matrices(out));
      right = matrix_numbers(w, batch_of_matrices(out));
    }
  }
  QuantizedProductPlan plan(out.dtype(), product.format, product.transposed, batch, m, n, k,
                            left_count, right_count);
  array rows = x;
  if (const int64_t bytes = plan.prepared_bytes()) {
    rows = make_temporary(encoder, static_cast<size_t>(bytes * left_count));
    Bound source = encoder.input(x), target = encoder.output(rows);
    encoder.native(encoder.op(), left_count, bytes * left_count,
                   [=](const NativeContext& context, int64_t begin, int64_t end) {
                     plan.prepare(begin, end, context.data(source), context.data(target));
                   });
  }
  Bound from = encoder.input(rows), codes = encoder.input(w), scales = encoder.input(dense[2]);
  Bound biases, given_left, given_right;
  if (affine) biases = encoder.input(dense[3]);
  if (product.gathers) {
    given_left = encoder.input(dense[dense.size() - 2]);
    given_right = encoder.input(dense[dense.size() - 1]);
  }
  Bound to = encoder.output(out);
  const int64_t work = batch * m * n * k / 4 + static_cast<int64_t>(w.nbytes());
  const int64_t tasks = plan.tasks();
  encoder.native(
      encoder.op(), tasks, work,
      [=, plan = std::move(plan), left = std::move(left), right = std::move(right)](
          const NativeContext& context, int64_t begin, int64_t end) {
        const auto* lefts = left.empty() ? context.data<const uint32_t>(given_left) : left.data();
        const auto* rights =
            right.empty() ? context.data<const uint32_t>(given_right) : right.data();
        QuantizedMatrix matrix{context.data(codes), context.data(scales), context.data(biases)};
        TaskScratch scratch(plan.task_scratch_bytes());
        plan.run(begin, end, context.data(from), matrix, lefts, rights, context.data(to),
                 scratch.get());
      });
}

}  // namespace holdfast::kernels::cpu
