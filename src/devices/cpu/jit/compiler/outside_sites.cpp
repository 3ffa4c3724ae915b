#include "devices/cpu/jit/compiler/outside_sites.h"

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <cstring>
#include <string_view>

#include "devices/cpu/jit/compiler/source_lines.h"

namespace holdfast::jit {

llvm::Constant* OutsideSites::site_of(const llvm::Instruction& instruction,
                                      llvm::ArrayRef<llvm::Value*> roots, bool writes) {
  OutsideSite site;
  std::memset(&site, 0, sizeof(site));
  site.writes = writes;
  site.argument = OutsideSite::no_argument;
  if (roots.empty()) {
    set_text(site.name, "its arguments");
  } else if (auto* argument = llvm::dyn_cast<llvm::Argument>(roots[0])) {
    site.argument = argument->getArgNo();
  } else {
    set_text(site.name, variable_name(roots[0]->getName()));
  }
  if (const llvm::DILocation* place = place_of(instruction.getDebugLoc())) {
    SourceLine line = source_line(kernel_.source, place->getLine());
    site.line = line.line;
    site.column = place->getColumn();
    set_text(site.part, line.part);
  }
  std::string bytes(reinterpret_cast<const char*>(&site), sizeof(site));
  llvm::Constant*& known = known_[bytes];
  if (!known) {
    llvm::Constant* data =
        llvm::ConstantDataArray::getString(module_.getContext(), bytes, /*AddNull=*/false);
    auto* global = new llvm::GlobalVariable(module_, data->getType(), true,
                                            llvm::GlobalValue::InternalLinkage, data);
    global->setAlignment(llvm::Align(alignof(OutsideSite)));
    known = global;
  }
  return known;
}

}  // namespace holdfast::jit
