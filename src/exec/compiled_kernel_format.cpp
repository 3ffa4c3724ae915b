#include "exec/compiled_kernel_format.h"

#include "base/hash.h"
#include "base/mutants.h"
#include "exec/byte_stream.h"

namespace holdfast::exec {
namespace {

constexpr uint64_t magic = 0x314c4e52454b4648;  // "HFKERNL1"
constexpr uint32_t format_version = 4;
constexpr size_t header_size = 8 + 4 + 8 + 16;

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

std::string serialise(std::string_view key, const jit::CompiledKernel& kernel) {
  ByteWriter body;
  body.text(key);
  write(body, kernel.interface);
  body.value(kernel.lowering);
  body.text(kernel.remark);
  body.text(kernel.race);
  body.text(kernel.symbol);
  body.text({kernel.object.data(), kernel.object.size()});
  body.value(kernel.threadgroup_bytes);
  body.value(kernel.frame_bytes);
  body.value(kernel.register_bytes);
  body.value(static_cast<uint8_t>(kernel.has_fences));
  std::string contents = body.take();

  Hash128 checksum = hash_bytes(contents);
  ByteWriter header;
  header.value(magic);
  header.value(format_version);
  header.value(static_cast<uint64_t>(contents.size()));
  header.value(checksum.low);
  header.value(checksum.high);
  return header.take() + contents;
}

std::optional<jit::CompiledKernel> deserialise(std::string_view bytes, std::string_view key) {
  ByteReader header(bytes);
  if (header.value<uint64_t>() != magic || header.value<uint32_t>() != format_version) return {};
  uint64_t size = header.value<uint64_t>();
  Hash128 checksum;
  checksum.low = header.value<uint64_t>();
  checksum.high = header.value<uint64_t>();
  if (!header.ok() || bytes.size() - header_size != size) return {};
  std::string_view contents = bytes.substr(header_size);
  if (hash_bytes(contents) != checksum && !mutated(Mutant::disk_checksum)) return {};

  ByteReader in(contents);
  if (in.text() != key && !mutated(Mutant::disk_key)) return {};
  jit::CompiledKernel kernel;
  read(in, kernel.interface);
  kernel.lowering =
      static_cast<jit::Lowering>(in.value_up_to(static_cast<uint8_t>(jit::Lowering::checked)));
  kernel.remark = in.text();
  kernel.race = in.text();
  kernel.symbol = in.text();
  std::string_view object = in.text();
  kernel.object.assign(object.begin(), object.end());
  kernel.threadgroup_bytes = in.value<uint32_t>();
  kernel.frame_bytes = in.value<uint32_t>();
  kernel.register_bytes = in.value<uint32_t>();
  kernel.has_fences = in.boolean();
  if (!in.is_done() && !(mutated(Mutant::disk_trailing) && in.ok())) return {};
  return kernel;
}

}  // namespace holdfast::exec
