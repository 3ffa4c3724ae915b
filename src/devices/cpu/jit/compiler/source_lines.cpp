#include "devices/cpu/jit/compiler/source_lines.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DebugLoc.h>

#include <algorithm>

#include "msl/frontend/frontend.h"

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

const llvm::DILocation* place_of(const llvm::DebugLoc& location) {
  for (const llvm::DILocation* place = location.get(); place; place = place->getInlinedAt()) {
    const llvm::DISubprogram* function = place->getScope()->getSubprogram();
    if (function && function->isArtificial()) continue;
    if (place->getFilename() == msl::source_file && place->getLine() != 0) return place;
  }
  return nullptr;
}

std::string variable_name(std::string_view name) {
  std::string text = llvm::demangle(name.substr(0, name.find('.')));
  if (size_t scope = text.rfind("::"); scope != text.npos) text.erase(0, scope + 2);
  return text;
}

}  // namespace holdfast::jit
