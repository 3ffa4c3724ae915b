// What the source of a recorded kernel becomes on this machine, for the page of a report.
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "devices/cpu/jit/dispatch.h"
#include "tools/holdfast/kernel_command.h"
#include "tools/holdfast/trace_command.h"

namespace holdfast::tool {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "holdfast-report-XXXXXX";
    if (!::mkdtemp(name.data())) throw std::runtime_error("no folder for temporary files");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

}  // namespace

LoweredKernel lower_again(const capture::Pipeline& pipeline) {
  // A page with more of it than this is read by nobody.
  constexpr size_t most_text = 40000;
  LoweredKernel result;
  if (!pipeline.has_source || pipeline.includes_files) return result;
  try {
    Folder folder;
    KernelOptions options;
    options.compile.lowering = static_cast<jit::Lowering>(pipeline.variant);
    options.compile.dump_directory = folder.path;
    jit::CompiledKernel kernel =
        jit::default_compiler().compile(capture::source_of(pipeline), options.compile);
    result.summary = lowering_text(kernel, options.compile.instruction_set) + ", " +
                     std::to_string(kernel.object.size()) + " bytes";
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.path)) {
      if (entry.path().extension() != ".s") continue;
      std::ifstream in(entry.path());
      result.assembly.assign(std::istreambuf_iterator<char>(in), {});
    }
    if (result.assembly.size() > most_text) result.assembly.resize(most_text);
  } catch (const std::exception& error) {
    result.summary = error.what();
  }
  return result;
}

}  // namespace holdfast::tool
