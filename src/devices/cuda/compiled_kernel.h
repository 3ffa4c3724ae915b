// A kernel for NVIDIA GPUs as a compilation gives it: images for different ways to launch it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/cuda/ptx_kernel.h"

namespace holdfast::cuda {

// Machine code or PTX for one way to launch a kernel.
struct KernelImage {
  Positions positions = Positions::general;
  // It counts on: addresses that are multiples of this, written arguments that overlap with none.
  uint32_t alignment = 1;
  bool distinct = false;
  // What is bound to constant memory stands in the parameters: bytes, no more than fit there.
  bool has_inline_constants = false;
  std::string symbol;
  std::string code;  // a cubin, or PTX text
};

// The preferred image first; the last one runs every dispatch.
struct CompiledKernel {
  msl::KernelInterface interface;
  bool guarded = false;
  bool can_be_cancelled = false;
  std::vector<KernelImage> images;

  std::string to_bytes() const;
  // Nothing unless they are as to_bytes gives them.
  static std::optional<CompiledKernel> from_bytes(std::string_view bytes);
};

// What the images of a kernel are compiled with, the preferred one first, beside what `options`
// says: its target, its guards. Kernels of the library look at the alignment of what they are given
// themselves, and get no arrays in constant memory.
std::vector<PtxOptions> image_options(PtxOptions options, bool is_of_library);
// `kernels`: what the compiler has made with each of `options`.
CompiledKernel to_images(const std::vector<PtxOptions>& options, std::vector<PtxKernel> kernels);

// The images that the library has of its own kernels (devices/image_writer.h): for architecture 80
// and later ones, or those from 90 on where their code differs.
inline std::string image_name(uint32_t target) { return "sm_" + std::to_string(target) + "-1"; }

}  // namespace holdfast::cuda
