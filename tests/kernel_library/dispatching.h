// An op that dispatches a pipeline which a kernel library gives, for int32 arrays.
#pragma once

#include <utility>
#include <vector>

#include <holdfast/holdfast.h>

#include "exec/kernel_library.h"
#include "kernel_library/fake_compiler.h"
#include "support/test_ops.h"

namespace holdfast::testing {

inline void encode_dispatch(Encoder& encoder, const exec::Pipeline& pipeline, const array& x,
                            array& y, uint32_t threadgroup = 32) {
  encoder.allocate(y);
  KernelBinding bindings[] = {KernelBinding::input(x), KernelBinding::output(y)};
  encoder.dispatch(pipeline, bindings, {static_cast<uint32_t>(y.size())}, {threadgroup});
}

// y = the kernel's result for x, looked up when it is encoded.
inline array dispatch_op(exec::KernelLibrary& library, Ref<const exec::KernelRequest> request,
                         const array& x, Stream stream, uint32_t threadgroup = 32) {
  return make_op(
      "dispatch", stream, {x}, x.shape(),
      [&library, request = std::move(request), threadgroup](
          Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
        Ref<exec::Pipeline> pipeline = library.get(request);
        encode_dispatch(encoder, *pipeline, inputs[0], outputs[0], threadgroup);
      });
}

}  // namespace holdfast::testing
