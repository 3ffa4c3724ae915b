#include "msl/interface_format.h"

namespace holdfast::msl {

void write_interface(ByteWriter& out, const KernelInterface& interface) {
  out.text(interface.entry);
  out.value(static_cast<uint64_t>(interface.arguments.size()));
  for (const KernelArgument& argument : interface.arguments) {
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

void read_interface(ByteReader& in, KernelInterface& interface) {
  interface.entry = in.text();
  // The least that an argument takes: an empty name, two bytes, three numbers.
  interface.arguments.resize(in.count(8 + 2 + 12));
  for (KernelArgument& argument : interface.arguments) {
    argument.name = in.text();
    argument.kind = static_cast<KernelArgument::Kind>(
        in.value_up_to(static_cast<uint8_t>(KernelArgument::Kind::threadgroup)));
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

}  // namespace holdfast::msl
