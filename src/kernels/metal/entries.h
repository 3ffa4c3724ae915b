// The kernels of this folder, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "devices/device.h"
#include "devices/kernel_images.h"
#include "devices/pipeline.h"
#include "exec/kernel_request.h"

namespace holdfast::kernels::metal {

// A .metal file of this folder as the build embeds it: the files that it includes are in its text.
struct EmbeddedSource {
  const char* name;  // "copy"
  std::string_view text;
  std::string_view images;  // devices/kernel_images.h; empty: none
};
const std::vector<EmbeddedSource>& embedded_sources();

using Constants = std::vector<msl::FunctionConstant>;

// The kernel with this [[host_name]] in the file `source`, for the device's target, with values for
// its function constants. Throws NoKernel where there is no target, and where there is neither an
// image nor a compiler for it.
// Any thread. Throws what the kernel library throws, and std::logic_error where there is no such
// file.
Ref<exec::Pipeline> find_entry(const exec::Device& device, const char* source,
                               const std::string& name, const Constants& constants = {});

// The images of a file of this name. Throws std::logic_error where there is no such file.
exec::KernelImages& images_of(std::string_view source);
// The image that the library has of a kernel; empty: none. For exec::KernelLibrary.
std::string_view find_image(const exec::KernelRequest& request);

}  // namespace holdfast::kernels::metal
