#include "devices/cpu/jit/kernel_format.h"

#include "base/byte_stream.h"
#include "msl/interface_format.h"

namespace holdfast::jit {

std::string to_bytes(const CompiledKernel& kernel) {
  ByteWriter out;
  msl::write_interface(out, kernel.interface);
  out.value(kernel.lowering);
  out.text(kernel.remark);
  out.text(kernel.race);
  out.text(kernel.symbol);
  out.text({kernel.object.data(), kernel.object.size()});
  out.value(kernel.threadgroup_bytes);
  out.value(kernel.frame_bytes);
  out.value(kernel.register_bytes);
  out.value(static_cast<uint8_t>(kernel.has_fences));
  return out.take();
}

std::optional<CompiledKernel> from_bytes(std::string_view bytes) {
  ByteReader in(bytes);
  CompiledKernel kernel;
  msl::read_interface(in, kernel.interface);
  kernel.lowering = static_cast<Lowering>(in.value_up_to(static_cast<uint8_t>(Lowering::checked)));
  kernel.remark = in.text();
  kernel.race = in.text();
  kernel.symbol = in.text();
  std::string_view object = in.text();
  kernel.object.assign(object.begin(), object.end());
  kernel.threadgroup_bytes = in.value<uint32_t>();
  kernel.frame_bytes = in.value<uint32_t>();
  kernel.register_bytes = in.value<uint32_t>();
  kernel.has_fences = in.boolean();
  if (!in.is_done()) return {};
  return kernel;
}

}  // namespace holdfast::jit
