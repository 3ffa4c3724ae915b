#include "devices/cuda/gpu_kernel.h"

#include <algorithm>
#include <stdexcept>

namespace holdfast::cuda {
namespace {

[[noreturn]] void reject(const std::string& kernel, const std::string& what) {
  throw std::invalid_argument("[" + kernel + "] " + what);
}

std::string triple(const uint32_t* sizes) {
  return "(" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
         std::to_string(sizes[2]) + ")";
}

uint64_t groups_along(const exec::Dispatch& dispatch, int axis) {
  return (uint64_t{dispatch.grid[axis]} + dispatch.threadgroup[axis] - 1) /
         dispatch.threadgroup[axis];
}

// What `rows` and `exact` ask of a dispatch (Positions).
bool is_launch(const exec::Dispatch& dispatch, bool has_rows) {
  const uint32_t *grid = dispatch.grid, *threads = dispatch.threadgroup;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] % threads[axis] != 0) return false;
  }
  return (!has_rows || threads[0] % 32 == 0) && threads[2] <= 64 &&
         groups_along(dispatch, 1) <= 65535 && groups_along(dispatch, 2) <= 65535;
}

constexpr uint64_t longest_row = 0x7fffffff;

}  // namespace

GpuKernel::GpuKernel(Gpu& gpu, std::string name, CompiledKernel kernel)
    : gpu_(gpu),
      name_(std::move(name)),
      kernel_(std::move(kernel)),
      max_threads_(kernel_.interface.max_threads) {
  if (gpu.is_lost()) gpu.throw_loss();
  gpu.use();
  Driver& driver = gpu.driver();
  loaded_.reserve(kernel_.images.size());
  try {
    for (const KernelImage& image : kernel_.images) {
      Loaded& loaded = loaded_.emplace_back();
      loaded.layout =
          parameter_layout(kernel_.interface, kernel_.guarded, image.has_inline_constants);
      driver.load_module(&loaded.module, image.code.c_str());
      driver.function(&loaded.function, loaded.module, image.symbol.c_str());
      // Registers may leave room for fewer threads than the kernel was compiled for.
      int threads = 0;
      driver.function_attribute(&threads, attribute::max_threads_of_function, loaded.function);
      max_threads_ = std::min(max_threads_, static_cast<uint32_t>(threads));
    }
  } catch (const std::exception& error) {
    gpu.look_at(error);
    for (Loaded& loaded : loaded_) {
      if (loaded.module) driver.unload_module.attempt(loaded.module);
    }
    throw;
  }
}

GpuKernel::~GpuKernel() {
  if (!gpu_.can_release() || !gpu_.try_to_use()) return;
  for (Loaded& loaded : loaded_) gpu_.driver().unload_module.attempt(loaded.module);
}

void GpuKernel::check(const exec::Dispatch& dispatch) const {
  uint64_t threads = 1, groups = 1;
  for (int axis = 0; axis < 3; ++axis) {
    constexpr uint32_t max_grid = exec::KernelLimits{}.max_grid;
    if (dispatch.grid[axis] == 0 || dispatch.grid[axis] > max_grid)
      reject(name_, "the grid must have from 1 to " + std::to_string(max_grid) +
                        " threads along each axis, got " + triple(dispatch.grid));
    if (dispatch.threadgroup[axis] == 0)
      reject(name_, "the threadgroup must have at least one thread along each axis, got " +
                        triple(dispatch.threadgroup));
    threads = std::min(threads * dispatch.threadgroup[axis], uint64_t{1} << 32);
    groups = std::min(groups * groups_along(dispatch, axis), uint64_t{1} << 32);
  }
  if (threads > max_threads_)
    reject(name_, "a threadgroup may have at most " + std::to_string(max_threads_) +
                      " threads, got " + triple(dispatch.threadgroup) + " on a grid of " +
                      triple(dispatch.grid));
  if (groups > longest_row && !is_launch(dispatch, false))
    reject(name_, "the grid " + triple(dispatch.grid) + " has more than " +
                      std::to_string(longest_row) + " threadgroups of " +
                      triple(dispatch.threadgroup));
  uint64_t bytes = kernel_.interface.threadgroup_bytes;
  for (size_t i = 0; i < kernel_.interface.arguments.size(); ++i) {
    const msl::KernelArgument& argument = kernel_.interface.arguments[i];
    if (argument.kind == msl::KernelArgument::Kind::threadgroup) {
      bytes += dispatch.threadgroup_bytes[i];
    }
  }
  constexpr uint32_t max_bytes = exec::KernelLimits{}.max_threadgroup_memory;
  if (bytes > max_bytes)
    reject(name_, "a threadgroup may use at most " + std::to_string(max_bytes) +
                      " bytes of threadgroup memory, the kernel needs " + std::to_string(bytes));
}

bool GpuKernel::fits(size_t which, const exec::Dispatch& dispatch, const Address* addresses) const {
  const KernelImage& image = kernel_.images[which];
  if (image.positions != Positions::general &&
      !is_launch(dispatch, image.positions == Positions::rows))
    return false;
  const ParameterLayout& own = layout(which);
  const std::vector<msl::KernelArgument>& arguments = kernel_.interface.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (own.inline_places[i] != 0 &&
        (!dispatch.arguments[i].bytes || dispatch.threadgroup_bytes[i] > own.inline_bytes[i]))
      return false;
    if (addresses[i] == 0) continue;
    if (addresses[i] % image.alignment != 0) return false;
    if (!image.distinct || !arguments[i].written) continue;
    auto begin = [&](size_t k) { return addresses[k] - dispatch.ranges[k].before; };
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (k == i || addresses[k] == 0) continue;
      if (begin(i) < begin(k) + dispatch.ranges[k].bytes &&
          begin(k) < begin(i) + dispatch.ranges[i].bytes)
        return false;
    }
  }
  return true;
}

size_t GpuKernel::choose(const exec::Dispatch& dispatch, const Address* addresses) const {
  size_t image = 0;
  while (image + 1 < loaded_.size() && !fits(image, dispatch, addresses)) ++image;
  return image;
}

LaunchShape GpuKernel::shape(size_t image, const exec::Dispatch& dispatch) const {
  LaunchShape shape{{1, 1, 1}, {1, 1, 1}};
  const bool has_one_row = kernel_.images[image].positions == Positions::general;
  for (int axis = 0; axis < 3; ++axis) {
    const int to = has_one_row ? 0 : axis;
    shape.grid[to] *= static_cast<uint32_t>(groups_along(dispatch, axis));
    shape.block[to] *= dispatch.threadgroup[axis];
  }
  return shape;
}

}  // namespace holdfast::cuda
