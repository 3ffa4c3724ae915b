#include "tools/aot/image_cache.h"

#include <zstd.h>

#include <cstdlib>
#include <stdexcept>

#include <holdfast_aot_version.h>

#include "base/byte_stream.h"
#include "base/hash.h"

namespace holdfast::aot {
namespace {

// All images of two dozen versions of the kernels.
constexpr uint64_t most_bytes = uint64_t{512} << 20;
constexpr uint64_t most_unpacked = uint64_t{256} << 20;

std::string pack(const std::string& plain) {
  constexpr int level = 3;
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  const size_t size =
      ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), level);
  if (ZSTD_isError(size)) throw std::runtime_error("zstd cannot pack an image");
  packed.resize(size);
  return packed;
}

std::optional<std::string> unpack(const std::string& packed) {
  const uint64_t size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size > most_unpacked) return {};  // an error, too
  std::string plain(size, '\0');
  if (ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size()) != size) return {};
  return plain;
}

}  // namespace

ImageCache::ImageCache(bool is_enabled) {
  std::string folder = exec::DiskCache::default_folder("images");
  if (is_enabled && !folder.empty()) disk_.emplace(std::move(folder), most_bytes);
}

std::string ImageCache::get(const std::string& name, std::string_view key,
                            const std::function<std::string()>& make, bool* is_from_cache) {
  if (is_from_cache) *is_from_cache = false;
  if (!disk_) return make();
  ByteWriter whole;
  whole.text(HOLDFAST_AOT_VERSION);
  whole.text(name);
  whole.text(key);
  const std::string all = whole.take();
  const std::string file = name + "-" + to_hex(hash_bytes(all));
  if (std::optional<std::string> found = disk_->load(file, all)) {
    if (std::optional<std::string> bytes = unpack(*found)) {
      if (is_from_cache) *is_from_cache = true;
      return std::move(*bytes);
    }
  }
  std::string made = make();
  disk_->store(file, all, pack(made));
  return made;
}

}  // namespace holdfast::aot
