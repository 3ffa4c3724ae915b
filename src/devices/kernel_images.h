// The images of the built-in kernels (image_writer.h), as the library reads them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/sync.h"

namespace holdfast::exec {

class KernelImages {
 public:
  // The bytes stay where they are for as long as the object is used. Bytes of another source, or
  // that no ImageWriter wrote, have no images.
  KernelImages(std::string_view bytes, std::string_view source);

  // The image's bytes of this entry, for as long as the object lives; empty: there are none.
  // Images are unpacked when the first of their entries is asked for. Any thread.
  std::string_view find(std::string_view image, std::string_view entry);
  // Those of one image, in alphabetical order.
  std::vector<std::string> entries(std::string_view image);
  std::vector<std::string> images() const;

 private:
  struct Image {
    std::string name;
    std::string_view packed;
    bool is_unpacked = false;
    std::string bytes;
    std::map<std::string, std::string_view, std::less<>> entries;  // of `bytes`
  };
  Image* unpacked(std::string_view name, sync::Held);

  sync::Mutex mutex_;
  std::vector<Image> images_;  // names and packed bytes never change, the rest: guarded by mutex_
};

}  // namespace holdfast::exec
