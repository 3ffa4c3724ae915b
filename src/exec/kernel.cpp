#include <holdfast/kernel.h>

#include <utility>

#include <holdfast/stream.h>

#include "exec/kernel_library.h"
#include "exec/runtime.h"

namespace holdfast {

Kernel::Kernel(std::string source, std::string entry, std::vector<Constant> constants,
               std::string directory) {
  msl::KernelSource whole;
  whole.kernel = entry;
  whole.entry = std::move(entry);
  whole.text = std::move(source);
  whole.directory = std::move(directory);
  for (Constant& constant : constants) {
    whole.constants.push_back({constant.index, "", std::move(constant.type), constant.bits});
  }
  whole.parts.push_back({"source", 0, whole.text.size()});
  exec::Target& target = exec::target_of(default_stream(default_device()));
  Ref<const exec::KernelRequest> request =
      make_ref<exec::KernelRequest>(std::move(whole), exec::user_kernel_options(), target);
  auto pipeline = std::make_shared<Ref<exec::Pipeline>>(exec::KernelLibrary::get().get(request));
  pipeline_ = std::shared_ptr<const exec::Pipeline>(pipeline, pipeline->get());
}

uint32_t Kernel::max_threads_per_threadgroup() const { return pipeline_->interface().max_threads; }

}  // namespace holdfast
