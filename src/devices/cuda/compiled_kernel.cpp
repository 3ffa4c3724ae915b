#include "devices/cuda/compiled_kernel.h"

#include "base/byte_stream.h"
#include "msl/interface_format.h"

namespace holdfast::cuda {

std::string CompiledKernel::to_bytes() const {
  ByteWriter out;
  msl::write_interface(out, interface);
  out.value(static_cast<uint8_t>(guarded));
  out.value(static_cast<uint8_t>(can_be_cancelled));
  out.value(static_cast<uint64_t>(images.size()));
  for (const KernelImage& image : images) {
    out.value(image.positions);
    out.value(image.alignment);
    out.value(static_cast<uint8_t>(image.distinct));
    out.value(static_cast<uint8_t>(image.has_inline_constants));
    out.text(image.symbol);
    out.text(image.code);
  }
  return out.take();
}

std::optional<CompiledKernel> CompiledKernel::from_bytes(std::string_view bytes) {
  ByteReader in(bytes);
  CompiledKernel kernel;
  msl::read_interface(in, kernel.interface);
  kernel.guarded = in.boolean();
  kernel.can_be_cancelled = in.boolean();
  kernel.images.resize(in.count(1 + 4 + 1 + 1 + 8 + 8));
  for (KernelImage& image : kernel.images) {
    image.positions =
        static_cast<Positions>(in.value_up_to(static_cast<uint8_t>(Positions::general)));
    image.alignment = in.value<uint32_t>();
    image.distinct = in.boolean();
    image.has_inline_constants = in.boolean();
    image.symbol = in.text();
    image.code = in.text();
  }
  if (!in.is_done() || kernel.images.empty()) return {};
  const KernelImage& last = kernel.images.back();
  if (last.positions != Positions::general || last.alignment > 1 || last.distinct ||
      last.has_inline_constants)
    return {};
  return kernel;
}

CompiledKernel compile_images(const std::function<PtxKernel(const PtxOptions&)>& compile,
                              PtxOptions options, bool is_of_library) {
  // More than a kernel can have: buffers and threadgroup memory.
  constexpr size_t most_arguments = 64;
  CompiledKernel result;
  result.guarded = options.guarded;
  result.can_be_cancelled = options.can_be_cancelled = !is_of_library;
  options.trusts_source_alignment = is_of_library;
  auto add = [&](Positions positions, uint32_t alignment, bool distinct, bool is_inline) {
    options.positions = positions;
    options.full_simdgroups = positions == Positions::rows;
    options.distinct = distinct;
    options.has_inline_constants = is_inline;
    options.alignment.assign(most_arguments, alignment);
    PtxKernel kernel = compile(options);
    result.interface = std::move(kernel.interface);
    result.images.push_back({positions, alignment, distinct, is_inline, std::move(kernel.symbol),
                             std::move(kernel.text)});
  };
  // Outputs of programs' kernels share no memory with inputs, unless they bind them so; those of
  // the library may be written in the place of an input.
  add(Positions::rows, 16, !is_of_library, is_of_library);
  add(Positions::general, 1, false, false);
  return result;
}

}  // namespace holdfast::cuda
