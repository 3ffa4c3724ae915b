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

std::vector<PtxOptions> image_options(PtxOptions options, bool is_of_library) {
  // More than a kernel can have: buffers and threadgroup memory.
  constexpr size_t most_arguments = 64;
  options.can_be_cancelled = !is_of_library;
  options.trusts_source_alignment = is_of_library;
  auto with = [&](Positions positions, uint32_t alignment, bool distinct, bool is_inline) {
    PtxOptions one = options;
    one.positions = positions;
    one.full_simdgroups = positions == Positions::rows;
    one.distinct = distinct;
    one.has_inline_constants = is_inline;
    one.alignment.assign(most_arguments, alignment);
    return one;
  };
  // Outputs of programs' kernels share no memory with inputs, unless they bind them so; those of
  // the library may be written in the place of an input.
  return {with(Positions::rows, 16, !is_of_library, is_of_library),
          with(Positions::general, 1, false, false)};
}

CompiledKernel to_images(const std::vector<PtxOptions>& options, std::vector<PtxKernel> kernels) {
  CompiledKernel result;
  for (size_t i = 0; i < options.size(); ++i) {
    const PtxOptions& one = options[i];
    PtxKernel& kernel = kernels.at(i);
    result.guarded = one.guarded;
    result.can_be_cancelled = one.can_be_cancelled;
    result.interface = std::move(kernel.interface);
    result.images.push_back({one.positions, one.alignment.at(0), one.distinct,
                             one.has_inline_constants, std::move(kernel.symbol),
                             std::move(kernel.text)});
  }
  return result;
}

}  // namespace holdfast::cuda
