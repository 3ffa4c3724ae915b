#include "kernels/cpu/factorise.h"

#include <array>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {
namespace {

// Of matrices without elements, some factors have some.
void encode_empty(Encoder& encoder, FactorisationMethod method, std::vector<array>& outputs) {
  for (array& out : outputs) {
    if (out.size() == 0) continue;
    Bound target = encoder.output(out);
    const int64_t n = out.shape(-1), count = static_cast<int64_t>(out.size());
    const Dtype::Val dtype = out.dtype();
    encoder.native(encoder.op(), 1, static_cast<int64_t>(out.nbytes()),
                   [=](const NativeContext& context, int64_t, int64_t) {
                     factorise_empty(method, dtype, n, count, context.data(target));
                   });
  }
}

}  // namespace

void CpuBackend::factorise(Encoder& encoder, FactorisationMethod method, bool upper,
                           const std::vector<array>& inputs, std::vector<array>& outputs) {
  constexpr size_t most_inputs = 2, most_outputs = 3;
  struct Operand {
    Bound bound;
    int64_t bytes;  // of one matrix
  };
  for (array& out : outputs) encoder.allocate(out);
  if (inputs[0].size() == 0) return encode_empty(encoder, method, outputs);
  const int m = inputs[0].shape(-2), n = inputs[0].shape(-1);
  const int columns = inputs.size() > 1 ? inputs[1].shape(-1) : 0;
  const auto batch = static_cast<int64_t>(inputs[0].size()) / m / n;
  std::vector<array> dense;
  for (const array& input : inputs) dense.push_back(make_dense(encoder, input));
  std::array<Operand, most_inputs> from{};
  std::array<Operand, most_outputs> to{};
  for (size_t i = 0; i < dense.size(); ++i) {
    from[i] = {encoder.input(dense[i]), static_cast<int64_t>(dense[i].nbytes()) / batch};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    to[i] = {encoder.output(outputs[i]), static_cast<int64_t>(outputs[i].nbytes()) / batch};
  }
  const Dtype::Val dtype = inputs[0].dtype();
  // One task: calls of LAPACK are serialised.
  encoder.native(encoder.op(), 1, int64_t{m} * n * batch,
                 [=](const NativeContext& context, int64_t, int64_t) {
                   MatrixTask task{method, upper, m, n, columns, {}, {}};
                   for (int64_t matrix = 0; matrix < batch; ++matrix) {
                     for (size_t i = 0; i < most_inputs; ++i) {
                       task.inputs[i] = context.data(from[i].bound) + matrix * from[i].bytes;
                     }
                     for (size_t i = 0; i < most_outputs; ++i) {
                       task.outputs[i] = context.data(to[i].bound) + matrix * to[i].bytes;
                     }
                     cpu::factorise(dtype, task);
                   }
                 });
}

}  // namespace holdfast::kernels::cpu
