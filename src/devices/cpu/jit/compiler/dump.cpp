#include "devices/cpu/jit/compiler/dump.h"

#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace holdfast::jit {

Dump::Dump(std::string folder, const std::string& kernel, const std::string& variant) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string name;
  for (char c : kernel.substr(0, 100))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  stem_ = folder + "/" + name + "." + variant;
}

void Dump::text(const char* suffix, const std::string& contents) const {
  if (stem_.empty()) return;
  std::ofstream(stem_ + "." + suffix) << contents;
}

void Dump::module(const char* suffix, const llvm::Module& module) const {
  if (stem_.empty()) return;
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  module.print(stream, nullptr);
  text(suffix, printed);
}

}  // namespace holdfast::jit
