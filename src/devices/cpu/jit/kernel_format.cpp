#include "devices/cpu/jit/kernel_format.h"

#include "base/byte_stream.h"

namespace holdfast::jit {
namespace {

void write(ByteWriter& out, const msl::KernelInterface& interface) {
  out.text(interface.entry);
  out.value(static_cast<uint64_t>(interface.arguments.size()));
  for (const msl::KernelArgument& argument : interface.arguments) {
    out.text(argument.name);
    out.value(argument.kind);
    out.value(static_cast<uint8_t>(argument.written));
    out.value(argument.slot);
    out.value(argument.element_size);
    out.value(argument.alignment);
  }
  out.value(interface.threadgroup_bytes);
  out.value(static_cast<uint64_t>(interface.attributes.size()));
  for (const std::string& attribute : interface.attributes) out.text(attribute);
  out.value(interface.max_threads);
}

void read(ByteReader& in, msl::KernelInterface& interface) {
  interface.entry = in.text();
  // The least that an argument takes: an empty name, two bytes, three numbers.
  interface.arguments.resize(in.count(8 + 2 + 12));
  for (msl::KernelArgument& argument : interface.arguments) {
    argument.name = in.text();
    argument.kind = static_cast<msl::KernelArgument::Kind>(
        in.value_up_to(static_cast<uint8_t>(msl::KernelArgument::Kind::threadgroup)));
    argument.written = in.boolean();
    argument.slot = in.value<uint32_t>();
    argument.element_size = in.value<uint32_t>();
    argument.alignment = in.value<uint32_t>();
  }
  interface.threadgroup_bytes = in.value<uint32_t>();
  interface.attributes.resize(in.count(8));
  for (std::string& attribute : interface.attributes) attribute = in.text();
  interface.max_threads = in.value<uint32_t>();
}

}  // namespace

std::string to_bytes(const CompiledKernel& kernel) {
  ByteWriter out;
  write(out, kernel.interface);
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
  read(in, kernel.interface);
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
