// What captures of tests record, and lists of one command that are written by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <holdfast/holdfast.h>

#include "base/byte_stream.h"
#include "devices/cpu/cpu_target.h"
#include "exec/kernel_library.h"
#include "exec/kernel_request.h"

namespace holdfast::testing {

inline array network(const array& x, Stream s) {
  array h = x;
  for (int layer = 0; layer < 4; ++layer) {
    h = softmax(matmul(h, transpose(h, s), s) * array(0.1f), -1, false, s);
    h = matmul(h, x, s) + exp(array(-0.01f) * x, s);
  }
  return h;
}

// The kernel `probe` of a source.
inline Ref<exec::Pipeline> compiled_probe(const std::string& text,
                                          std::vector<msl::FunctionConstant> constants = {}) {
  msl::KernelSource source;
  source.kernel = source.entry = "probe";
  source.text = text;
  source.parts.push_back({"probe", 0, text.size()});
  source.constants = std::move(constants);
  return exec::KernelLibrary::get().get(
      make_ref<exec::KernelRequest>(source, exec::KernelOptions{}, exec::cpu_target()));
}

// A list up to its only command, of which the kind is written: docs/capture.md.
inline ByteWriter list_of_one(uint8_t replay, uint8_t kind) {
  ByteWriter out;
  out.value(int64_t{0});   // committed
  out.value(uint64_t{0});  // waits
  out.value(uint64_t{1});  // ops
  out.value(uint32_t{0});
  out.value(uint32_t{1});
  out.value(replay);
  out.text("");
  out.value(uint64_t{1});  // commands
  out.value(kind);
  return out;
}

}  // namespace holdfast::testing
