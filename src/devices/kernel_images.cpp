#include "devices/kernel_images.h"

#include <zstd.h>

#include <algorithm>
#include <mutex>

#include "base/byte_stream.h"
#include "base/hash.h"
#include "devices/image_writer.h"

namespace holdfast::exec {
namespace {

constexpr uint64_t most_bytes = uint64_t{1} << 30;

}  // namespace

KernelImages::KernelImages(std::string_view bytes, std::string_view source) {
  ByteReader in(bytes);
  const Hash128 expected = hash_bytes(source);
  if (in.value<uint64_t>() != image_magic) return;
  Hash128 hash;
  hash.low = in.value<uint64_t>();
  hash.high = in.value<uint64_t>();
  if (hash != expected) return;
  images_.resize(in.count(16));
  for (Image& image : images_) {
    image.name = in.text();
    image.packed = in.text();
  }
  if (!in.is_done()) images_.clear();
}

KernelImages::Image* KernelImages::unpacked(std::string_view name, sync::Held) {
  auto found = std::find_if(images_.begin(), images_.end(),
                            [&](const Image& image) { return image.name == name; });
  if (found == images_.end()) return nullptr;
  if (found->is_unpacked) return &*found;
  found->is_unpacked = true;
  const uint64_t size = ZSTD_getFrameContentSize(found->packed.data(), found->packed.size());
  if (size > most_bytes) return &*found;  // an error, too
  found->bytes.resize(size);
  if (ZSTD_decompress(found->bytes.data(), size, found->packed.data(), found->packed.size()) !=
      size)
    return &*found;
  ByteReader in(found->bytes);
  for (size_t i = in.count(16); i > 0 && in.ok(); --i) {
    const std::string entry(in.text());
    found->entries[entry] = in.text();
  }
  if (!in.is_done()) found->entries.clear();
  return &*found;
}

std::string_view KernelImages::find(std::string_view image, std::string_view entry) {
  std::lock_guard guard(mutex_);
  Image* one = unpacked(image, guard);
  if (!one) return {};
  auto found = one->entries.find(entry);
  return found == one->entries.end() ? std::string_view{} : found->second;
}

std::vector<std::string> KernelImages::entries(std::string_view image) {
  std::lock_guard guard(mutex_);
  std::vector<std::string> names;
  if (Image* one = unpacked(image, guard)) {
    for (const auto& row : one->entries) names.push_back(row.first);
  }
  return names;
}

std::vector<std::string> KernelImages::images() const {
  std::vector<std::string> names;
  for (const Image& image : images_) names.push_back(image.name);
  return names;
}

}  // namespace holdfast::exec
