// Images: the kernels of one source as the build has compiled them, for several targets, in a few
// bytes:
//
//   magic, hash of the source      what they belong to
//   images                         of each its name and a frame of zstd with
//     entries                      of each its name and its bytes
//
// The name of an image says all that decides whether it runs: instruction set and version of the
// interface to generated code, or architecture (Target::image_names).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::exec {

inline constexpr uint64_t image_magic = 0x3153474d49464848;  // "HHFIMGS1"

class ImageWriter {
 public:
  // `bytes`: as Target::load takes them.
  void add(const std::string& image, const std::string& entry, std::string_view bytes);
  // `source`: the text that they were compiled from.
  std::string take(std::string_view source);

 private:
  std::map<std::string, std::map<std::string, std::string>> images_;
};

}  // namespace holdfast::exec
