#include "devices/cuda/outside_access.h"

#include <cstdio>
#include <cstring>

#include "base/environment.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::cuda {
namespace {

static_assert(sizeof(jit::OutsideSite) <= sizeof(OutsideReport::site));

std::string sentence(const OutsideReport& report, const GpuKernel& kernel,
                     const exec::Dispatch& dispatch) {
  jit::OutsideSite site;
  std::memcpy(&site, report.site, sizeof(site));
  site.part[sizeof(site.part) - 1] = site.name[sizeof(site.name) - 1] = '\0';
  std::string name = site.name, byte, place;
  if (site.argument < kernel.interface().arguments.size()) {
    name = kernel.interface().arguments[site.argument].name;
    byte = ": byte " + std::to_string(report.offset) + " of " +
           std::to_string(dispatch.ranges[site.argument].bytes);
  }
  if (site.line != 0) {
    place = " at " + (site.part[0] ? site.part + std::string(":") : "line ") +
            std::to_string(site.line) + ":" + std::to_string(site.column);
  }
  return "[" + kernel.name() + "] the kernel " + (site.writes ? "writes" : "reads") +
         " outside of \"" + name + "\"" + place + byte;
}

}  // namespace

std::string text_of(const GuardReport& report, const GpuKernel& kernel,
                    const exec::Dispatch& dispatch) {
  if (report.write.is_claimed) return sentence(report.write, kernel, dispatch);
  if (!report.read.is_claimed) return "";
  const std::string text = sentence(report.read, kernel, dispatch);
  if (environment::settings().guard_kernels == environment::GuardKernels::strict) return text;
  if (kernel.is_first_outside_read()) {
    std::fprintf(stderr, "holdfast: %s; it got 0 (said once; HOLDFAST_VALIDATE=1 tells more)\n",
                 text.c_str());
  }
  return "";
}

}  // namespace holdfast::cuda
