#include "devices/cpu/jit/compiler/source_lines.h"

#include <algorithm>

namespace holdfast::jit {
namespace {

unsigned line_at(const std::string& text, size_t position) {
  auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(position, text.size()));
  return static_cast<unsigned>(std::count(text.begin(), end, '\n')) + 1;
}

}  // namespace

SourceLine source_line(const msl::KernelSource* source, unsigned line) {
  if (source) {
    for (const msl::SourcePart& part : source->parts) {
      unsigned first = line_at(source->text, part.begin), last = line_at(source->text, part.end);
      if (line >= first && line <= last) return {part.name, line - first + 1};
    }
  }
  return {"", line};
}

}  // namespace holdfast::jit
