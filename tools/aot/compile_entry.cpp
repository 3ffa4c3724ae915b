#include "tools/aot/compile_entry.h"

#include <functional>
#include <stdexcept>

#include "base/byte_stream.h"
#include "devices/cpu/jit/kernel_format.h"
#include "devices/cuda/compiled_kernel.h"
#include "msl/interface_format.h"

namespace holdfast::aot {
namespace {

// Images of one kind, with a part of the report, as bytes of the cache.
using Part = Compiled;

std::string to_bytes(const Part& part) {
  ByteWriter out;
  out.text(part.report);
  out.value(static_cast<uint64_t>(part.images.size()));
  for (const Compiled::Image& image : part.images) {
    out.text(image.name);
    out.text(image.bytes);
  }
  return out.take();
}

Part from_bytes(const std::string& bytes) {
  ByteReader in(bytes);
  Part part;
  part.report = in.text();
  part.images.resize(in.count(16));
  for (Compiled::Image& image : part.images) {
    image.name = in.text();
    image.bytes = in.text();
  }
  if (!in.is_done()) throw std::logic_error("the cache of images has bytes that were not written");
  return part;
}

size_t count_of(const std::string& text, const char* word) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++count;
  return count;
}

Part compile_for_cpu(const jit::ParsedKernels& kernels, size_t number, jit::InstructionSet set) {
  jit::CompileOptions options;
  options.instruction_set = set;
  const jit::CompiledKernel kernel = kernels.compile(number, options);
  Part part;
  part.report = jit::image_name(set) + " " + std::to_string(kernel.object.size()) + " bytes";
  if (!kernel.remark.empty()) part.report += ", not widened: " + kernel.remark;
  if (!kernel.race.empty()) part.report += ", " + kernel.race;
  part.images.push_back({jit::image_name(set), jit::to_bytes(kernel)});
  return part;
}

// For sm_80, and for sm_90 if that is another code.
Part compile_for_gpu(const jit::ParsedKernels& kernels, size_t number) {
  Part part;
  for (uint32_t target : {80u, 90u}) {
    cuda::PtxOptions options;
    options.target = target;
    const std::vector<cuda::PtxOptions> images = cuda::image_options(options, true);
    std::vector<cuda::PtxKernel> made = kernels.compile_to_ptx(number, images);
    bool gathers = false, depends_on_target = false;
    size_t bytes = 0, wide = 0;
    for (const cuda::PtxKernel& kernel : made) {
      gathers |= kernel.gathers;
      depends_on_target |= kernel.depends_on_target;
      bytes += kernel.text.size();
      wide += count_of(kernel.text, ".v4.");
    }
    const std::string name = cuda::image_name(target);
    part.report += (part.report.empty() ? "" : "  ") + name + " " + std::to_string(bytes) +
                   " bytes, " + std::to_string(wide) + " of v4" + (gathers ? ", lanes gather" : "");
    part.images.push_back({name, cuda::to_images(images, std::move(made)).to_bytes()});
    if (!depends_on_target) break;
  }
  return part;
}

}  // namespace

Compiled compile_entry(const jit::ParsedKernels& kernels, size_t number, const Targets& targets,
                       ImageCache& cache) {
  ByteWriter writer;
  writer.text(kernels.identity(number));
  msl::write_interface(writer, kernels.kernels()[number]);
  const std::string key = writer.take();

  Compiled compiled;
  compiled.report = kernels.kernels()[number].entry;
  auto add = [&](const std::string& name, const std::function<Part()>& compile) {
    bool is_from_cache = false;
    Part part =
        from_bytes(cache.get(name, key, [&] { return to_bytes(compile()); }, &is_from_cache));
    compiled.report += "  " + part.report + (is_from_cache ? ", from the cache" : "");
    for (Compiled::Image& image : part.images) compiled.images.push_back(std::move(image));
  };
  for (jit::InstructionSet set : targets.instruction_sets)
    add(jit::image_name(set), [&] { return compile_for_cpu(kernels, number, set); });
  if (targets.has_ptx) add("ptx", [&] { return compile_for_gpu(kernels, number); });
  return compiled;
}

}  // namespace holdfast::aot
