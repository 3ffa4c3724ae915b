#include "lm/support.h"

#include <fstream>

#include <holdfast/lm/errors.h>

namespace holdfast::lm {

std::string read_text_file(const std::string& path, size_t limit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ModelError(message("cannot open ", path));
  std::string bytes;
  char block[1 << 16];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    bytes.append(block, static_cast<size_t>(file.gcount()));
    if (bytes.size() > limit)
      throw ModelError(
          message(path, " is larger than ", limit, " bytes, the limit for such a file"));
  }
  if (file.bad()) throw ModelError(message("cannot read ", path));
  return bytes;
}

}  // namespace holdfast::lm
