#include "devices/cuda/ptx_format.h"

#include "msl/interface_format.h"

namespace holdfast::cuda {

std::string to_bytes(const PtxKernel& kernel) {
  ByteWriter out;
  msl::write_interface(out, kernel.interface);
  out.text(kernel.symbol);
  out.text(kernel.text);
  out.value(kernel.parameter_bytes);
  out.value(static_cast<uint8_t>(kernel.gathers));
  return out.take();
}

std::optional<PtxKernel> from_bytes(std::string_view bytes) {
  ByteReader in(bytes);
  PtxKernel kernel;
  msl::read_interface(in, kernel.interface);
  kernel.symbol = in.text();
  kernel.text = in.text();
  kernel.parameter_bytes = in.value<uint32_t>();
  kernel.gathers = in.boolean();
  if (!in.is_done()) return {};
  return kernel;
}

}  // namespace holdfast::cuda
