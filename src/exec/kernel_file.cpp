#include "exec/kernel_file.h"

#include "base/byte_stream.h"
#include "base/hash.h"

namespace holdfast::exec {
namespace {

constexpr uint64_t magic = 0x314c4e52454b4648;  // "HFKERNL1"
constexpr uint32_t format_version = 5;
constexpr size_t header_size = 8 + 4 + 8 + 16;

}  // namespace

std::string to_kernel_file(std::string_view key, std::string_view kernel) {
  ByteWriter body;
  body.text(key);
  body.text(kernel);
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

std::optional<std::string_view> from_kernel_file(std::string_view file, std::string_view key) {
  ByteReader header(file);
  if (header.value<uint64_t>() != magic || header.value<uint32_t>() != format_version) return {};
  uint64_t size = header.value<uint64_t>();
  Hash128 checksum;
  checksum.low = header.value<uint64_t>();
  checksum.high = header.value<uint64_t>();
  if (!header.ok() || file.size() - header_size != size) return {};
  std::string_view contents = file.substr(header_size);
  if (hash_bytes(contents) != checksum) return {};

  ByteReader in(contents);
  if (in.text() != key) return {};
  std::string_view kernel = in.text();
  if (!in.is_done()) return {};
  return kernel;
}

}  // namespace holdfast::exec
