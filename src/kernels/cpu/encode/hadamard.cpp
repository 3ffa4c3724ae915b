#include "kernels/plan/hadamard.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/hadamard_kernels.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/simd/target_table.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/staging.h"

HOLDFAST_SIMD_TABLE(HadamardKernels, hadamard_kernels)

namespace holdfast::kernels::cpu {

void CpuBackend::hadamard(Encoder& encoder, float scale, bool transposed, const array& in,
                          array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array rows = make_dense(encoder, in);
  Bound source = encoder.input(rows), target = encoder.output(out);
  const HadamardSize size = hadamard_size(out.shape(-1));
  const HadamardSigns signs = hadamard_signs(size.factor, transposed);
  const int64_t length = out.shape(-1);
  const int64_t row_bytes = length * static_cast<int64_t>(out.itemsize());
  const Dtype::Val dtype = out.dtype();
  encoder.native(encoder.op(), static_cast<int64_t>(out.size()) / length,
                 static_cast<int64_t>(out.nbytes()) * 8,
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   const simd::QuantizedKernels& convert = simd::quantized_kernels();
                   const char* from = context.data(source);
                   char* to = context.data(target);
                   TaskScratch scratch(static_cast<size_t>(length) * sizeof(float));
                   auto* row = static_cast<float*>(scratch.get());
                   for (int64_t i = begin; i < end; ++i) {
                     convert.widen(dtype, from + i * row_bytes, length, row);
                     simd::hadamard_kernels().transform(row, size.factor, size.power, signs.data(),
                                                        scale);
                     convert.narrow(dtype, row, length, to + i * row_bytes);
                   }
                 });
}

}  // namespace holdfast::kernels::cpu
