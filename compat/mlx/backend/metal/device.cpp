#include "mlx/backend/metal/device.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "mlx/backend/metal/utils.h"

// A source, and the kernels that were made of it.
class MTL::Library {
 public:
  Library(std::string text, std::string folder)
      : text_(std::move(text)), folder_(std::move(folder)) {}

  MTL::ComputePipelineState* kernel(const std::string& name, const std::string& hash_name,
                                    std::vector<holdfast::Kernel::Constant> constants) {
    std::string key = hash_name.empty() ? name : name + "\n" + hash_name;
    for (const auto& constant : constants) {
      key += "\n" + std::to_string(constant.index);
      for (uint64_t word : constant.bits) key += " " + std::to_string(word);
    }
    {
      std::lock_guard guard(mutex_);
      if (auto found = kernels_.find(key); found != kernels_.end()) return found->second.get();
    }
    holdfast::Kernel compiled(text_, name, std::move(constants), folder_);
    std::lock_guard guard(mutex_);
    auto& place = kernels_[key];
    if (!place) place = std::make_unique<MTL::ComputePipelineState>(std::move(compiled));
    return place.get();
  }

 private:
  const std::string text_, folder_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<MTL::ComputePipelineState>> kernels_;  // guarded by mutex_
};

namespace holdfast::metal {

namespace {

struct Libraries {
  std::mutex mutex;
  // Guarded by mutex. By name, and folder where there is one.
  std::map<std::string, std::unique_ptr<MTL::Library>> table;
};
Libraries& libraries() {
  static auto* kept = new Libraries;
  return *kept;
}

// MLX's own headers for kernels are part of the compiler here.
std::string with_our_helpers(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line); result += "\n") {
    bool is_mlx = line.starts_with("#include \"mlx/backend/metal/kernels/");
    result += is_mlx ? "#include <holdfast/mlx_helpers.h>" : line;
  }
  return result;
}

MTL::Library* library_of(const std::string& key, const std::function<std::string()>& text,
                         const std::string& folder) {
  std::lock_guard guard(libraries().mutex);
  auto& place = libraries().table[key];
  if (!place) place = std::make_unique<MTL::Library>(with_our_helpers(text()), folder);
  return place.get();
}

uint64_t bits_of(const void* value, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, value, size);
  return bits;
}

uint32_t checked(NS::UInteger size) {
  if (size > UINT32_MAX) throw std::invalid_argument("[metal] the grid has too many threads");
  return static_cast<uint32_t>(size);
}

}  // namespace

// --- the device ---

Device& device(const ::holdfast::Device&) {
  static Device one;
  return one;
}

MTL::Library* Device::get_library(const std::string& name, const std::string& path) {
  std::string file = (path.empty() ? "" : path + "/") + name + ".metal";
  return library_of(
      file,
      [&] {
        std::ifstream stream(file, std::ios::binary);
        std::ostringstream text;
        if (stream) text << stream.rdbuf();
        if (!stream || !text) {
          throw std::runtime_error("[metal] library " + name + ": cannot read " + file +
                                   " (kernels are compiled from their source)");
        }
        return text.str();
      },
      path.empty() ? "." : path);
}

MTL::Library* Device::get_library(const std::string& name,
                                  const std::function<std::string()>& builder) {
  return library_of("\n" + name, builder, "");
}

MTL::ComputePipelineState* Device::get_kernel(const std::string& name, MTL::Library* library,
                                              const std::string& hash_name,
                                              const MTLFCList& constants) {
  std::vector<Kernel::Constant> values;
  for (const auto& [value, type, index] : constants) {
    constexpr struct {
      const char* name;
      size_t size;
    } types[] = {{"bool", 1}, {"short", 2}, {"ushort", 2}, {"int", 4}, {"uint", 4}, {"float", 4}};
    const auto& row = types[type];
    values.push_back({static_cast<uint32_t>(index), row.name, {bits_of(value, row.size)}});
  }
  return library->kernel(name, hash_name, std::move(values));
}

CommandEncoder& Device::get_command_encoder(int stream_index) {
  return metal::get_command_encoder(Stream(stream_index, ::holdfast::Device::gpu));
}

CommandEncoder& get_command_encoder(Stream stream) {
  Encoder& encoder = Encoder::of(stream);
  if (!encoder.attachment) encoder.attachment = std::make_shared<CommandEncoder>(stream);
  return *static_cast<CommandEncoder*>(encoder.attachment.get());
}

// --- the encoder ---

CommandEncoder::Slot& CommandEncoder::slot(int index) {
  constexpr int slots = 31;  // Metal's
  if (index < 0 || index >= slots) {
    throw std::invalid_argument("[metal] expected a slot from 0 to 30, got " +
                                std::to_string(index));
  }
  if (slots_.size() <= static_cast<size_t>(index)) slots_.resize(static_cast<size_t>(index) + 1);
  return slots_[static_cast<size_t>(index)];
}

void CommandEncoder::set_compute_pipeline_state(MTL::ComputePipelineState* kernel) {
  kernel_ = kernel;
}

void CommandEncoder::bind(const array& a, KernelBinding::Kind kind, int index, int64_t offset) {
  Slot& to = slot(index);
  to.kind = kind;
  to.bound = a;
  to.used_by = nullptr;
  if (offset == 0) return;
  if (offset < 0 || offset > static_cast<int64_t>(a.nbytes())) {
    throw std::invalid_argument("[metal] expected an offset inside the array's " +
                                std::to_string(a.nbytes()) + " bytes, got " +
                                std::to_string(offset));
  }
  // Its bytes from there on. The array itself says what has to be waited for.
  if (kind == KernelBinding::Kind::input) Encoder::of(stream_).input(a);
  size_t left = a.data_size() * a.itemsize() - static_cast<size_t>(offset);
  array bytes({static_cast<int>(std::min<size_t>(left, INT32_MAX))}, uint8, nullptr, {});
  bytes.copy_shared_buffer(a, Strides{1}, {true, true, true}, left, offset);
  to.bound = std::move(bytes);
}

void CommandEncoder::set_input_array(const array& a, int index, int64_t offset) {
  bind(a, KernelBinding::Kind::input, index, offset);
}

void CommandEncoder::set_output_array(array& a, int index, int64_t offset) {
  bind(a, KernelBinding::Kind::output, index, offset);
}

void CommandEncoder::bind_bytes(const void* bytes, size_t size, int index) {
  Slot& to = slot(index);
  to.kind = KernelBinding::Kind::bytes;
  to.bound.reset();
  to.used_by = nullptr;
  const auto* first = static_cast<const std::byte*>(bytes);
  to.bytes.assign(first, first + size);
}

void CommandEncoder::set_threadgroup_memory_length(size_t bytes, int index) {
  slot(index);  // checks it
  if (threadgroup_bytes_.size() <= static_cast<size_t>(index)) {
    threadgroup_bytes_.resize(static_cast<size_t>(index) + 1);
  }
  threadgroup_bytes_[static_cast<size_t>(index)] = checked(bytes);
}

void CommandEncoder::dispatch_threads(MTL::Size grid, MTL::Size group) {
  if (kernel_ == nullptr) {
    throw std::logic_error("[metal] set_compute_pipeline_state must be called before a dispatch");
  }
  std::vector<KernelBinding> bindings;
  for (Slot& from : slots_) {
    switch (from.kind) {
      case KernelBinding::Kind::input:
        bindings.push_back(KernelBinding::input(*from.bound));
        break;
      case KernelBinding::Kind::output:
        bindings.push_back(KernelBinding::output(*from.bound));
        break;
      case KernelBinding::Kind::bytes:
        bindings.push_back(KernelBinding::bytes(from.bytes.data(), from.bytes.size()));
        break;
      case KernelBinding::Kind::errors:  // of the library's own kernels only
      case KernelBinding::Kind::none:
        bindings.emplace_back();
    }
    if (from.used_by && from.used_by != kernel_) {
      bindings.back().bound_for = &from.used_by->kernel().pipeline();
    }
    if (!from.used_by) from.used_by = kernel_;
  }
  Encoder::of(stream_).dispatch(kernel_->kernel().pipeline(), bindings,
                                {checked(grid.width), checked(grid.height), checked(grid.depth)},
                                {checked(group.width), checked(group.height), checked(group.depth)},
                                threadgroup_bytes_);
}

void CommandEncoder::dispatch_threadgroups(MTL::Size groups, MTL::Size group) {
  dispatch_threads(MTL::Size(groups.width * group.width, groups.height * group.height,
                             groups.depth * group.depth),
                   group);
}

}  // namespace holdfast::metal

namespace holdfast {

std::string type_to_name(const Dtype& dtype) {
  std::ostringstream name;
  name << dtype;
  return name.str() == "bool" ? "bool_" : name.str();
}

MTL::Size get_block_dims(int dim0, int dim1, int dim2, int power) {
  auto [width, height, depth] = get_block_dims_common(dim0, dim1, dim2, power);
  return MTL::Size(width, height, depth);
}

MTL::Size get_2d_grid_dims(const Shape& shape, const Strides& strides) {
  auto [width, height, depth] = get_2d_grid_dims_common(shape, strides);
  return MTL::Size(width, height, depth);
}

}  // namespace holdfast
