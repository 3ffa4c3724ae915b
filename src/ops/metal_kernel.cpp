// fast::metal_kernel: from the user's arguments to a node of the graph.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "base/byte_stream.h"
#include "exec/runtime.h"
#include "ops/dynamic_shape.h"
#include "ops/metal_kernel.h"

namespace holdfast::fast {
namespace {

using Threads = std::tuple<int, int, int>;
using TemplateArguments = std::vector<std::pair<std::string, TemplateArg>>;

// Beyond this many threadgroups a dispatch would not end.
constexpr int64_t most_threadgroups = int64_t{1} << 40;

// Kernels are few and live long: their names are kept for good.
const char* intern(const std::string& name) {
  static sync::Mutex mutex;
  static auto* names = new std::set<std::string>;
  std::lock_guard guard(mutex);
  return names->insert(name).first->c_str();
}

// What metal_kernel was called with, and the variants that were made of it so far.
class Kernel {
 public:
  Kernel(msl::Signature signature, bool ensure_row_contiguous)
      : signature_(std::make_shared<msl::Signature>(std::move(signature))),
        name_(intern(signature_->name)),
        ensure_row_contiguous_(ensure_row_contiguous) {
    msl::check(*signature_);
  }

  std::vector<array> call(const std::vector<array>& inputs, const std::vector<Shape>& shapes,
                          const std::vector<Dtype>& dtypes, const Threads& grid,
                          const Threads& threadgroup, const TemplateArguments& template_arguments,
                          std::optional<float> init_value, bool verbose, StreamOrDevice s) {
    check_arguments(inputs, shapes, dtypes);
    CustomKernel::Sizes grid_sizes = checked_grid(grid, "the grid");
    CustomKernel::Sizes group_sizes = checked_grid(threadgroup, "the threadgroup");
    const Stream stream = to_stream(s);
    exec::Target& target = exec::target_of(stream);
    check_threads(grid_sizes, group_sizes, target.limits());
    Ref<const KernelVariant> variant = variant_for(
        target, inputs, dtypes, template_arguments,
        {std::min(grid_sizes[0], group_sizes[0]), std::min(grid_sizes[1], group_sizes[1]),
         std::min(grid_sizes[2], group_sizes[2])});
    if (verbose) {
      std::printf("Generated source code for `%s`:\n```\n%s\n```\n", name_,
                  variant->request->source().text.c_str());
      std::fflush(stdout);
    }
    auto primitive = std::allocate_shared<CustomKernel>(
        PoolAllocator<CustomKernel>(), stream, name_, std::move(variant), grid_sizes, group_sizes,
        init_value, ensure_row_contiguous_);
    // What is saved may be called with any shapes, and has none to compare them with.
    if (!detail::in_export_tracing() && std::any_of(inputs.begin(), inputs.end(), has_open_shape)) {
      primitive->keep_shapes(inputs, shapes);
    }
    if (shapes.size() == 1)
      return {detail::make_checked(shapes[0], dtypes[0], std::move(primitive), inputs)};
    return detail::make_all_checked(shapes, dtypes, primitive, inputs);
  }

  std::vector<KernelInfo> info() {
    std::vector<Ref<const KernelVariant>> variants;
    {
      std::lock_guard guard(mutex_);
      for (const Described& known : variants_) variants.push_back(known.variant);
    }
    std::vector<KernelInfo> result;
    for (const Ref<const KernelVariant>& variant : variants) {
      Ref<exec::Pipeline> pipeline = exec::KernelLibrary::get().get(variant->request);
      exec::PipelineReport report = pipeline->report();
      KernelInfo info;
      info.template_args = variant->template_arguments;
      for (const msl::SourcePart& part : variant->request->source().parts) {
        if (part.is_generated)
          info.signature =
              variant->request->source().text.substr(part.begin, part.end - part.begin);
      }
      info.code = std::move(report.code);
      info.reason = std::move(report.reason);
      info.missing_barrier = std::move(report.missing_barrier);
      info.from = pipeline->source == exec::Pipeline::Source::disk    ? "disk"
                  : pipeline->source == exec::Pipeline::Source::image ? "library"
                                                                      : "compiler";
      info.milliseconds = pipeline->milliseconds;
      result.push_back(std::move(info));
    }
    return result;
  }

 private:
  void check_arguments(const std::vector<array>& inputs, const std::vector<Shape>& shapes,
                       const std::vector<Dtype>& dtypes) const {
    auto check_count = [&](const char* what, size_t expected, size_t got) {
      if (expected == got) return;
      throw std::invalid_argument(
          text("[", name_, "] expected ", expected, " ", what, ", got ", got));
    };
    check_count("inputs, one for each input name", signature_->input_names.size(), inputs.size());
    check_count("output shapes, one for each output name", signature_->output_names.size(),
                shapes.size());
    check_count("output dtypes, one for each output name", signature_->output_names.size(),
                dtypes.size());
    auto check_dtype = [&](const char* what, const std::string& name, Dtype dtype) {
      if (dtype != float64) return;
      throw std::invalid_argument(text("[", name_, "] ", what, " \"", name,
                                       "\" has dtype float64, which the Metal Shading Language "
                                       "lacks; use float32"));
    };
    for (size_t i = 0; i < inputs.size(); ++i)
      check_dtype("input", signature_->input_names[i], inputs[i].dtype());
    for (size_t i = 0; i < shapes.size(); ++i) {
      check_dtype("output", signature_->output_names[i], dtypes[i]);
      checked_size(name_, shapes[i], dtypes[i]);
    }
  }

  CustomKernel::Sizes checked_grid(const Threads& threads, const char* what) const {
    auto [x, y, z] = threads;
    if (x <= 0 || y <= 0 || z <= 0) {
      throw std::invalid_argument(text("[", name_, "] ", what,
                                       " must have at least one thread in each dimension, got (", x,
                                       ", ", y, ", ", z, ")"));
    }
    return {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
  }

  void check_threads(const CustomKernel::Sizes& grid, const CustomKernel::Sizes& group,
                     const exec::KernelLimits& limits) const {
    int64_t threads = 1, groups = 1;
    bool is_large = false;
    for (size_t i = 0; i < 3; ++i) {
      int64_t side = std::min(grid[i], group[i]);
      threads = std::min(threads * side, int64_t{1} << 31);
      int64_t count = (int64_t{grid[i]} + side - 1) / side;
      is_large = is_large || groups > most_threadgroups / count;
      if (!is_large) groups *= count;
    }
    if (threads > limits.max_threads_per_threadgroup) {
      throw std::invalid_argument(text("[", name_, "] a threadgroup may have at most ",
                                       limits.max_threads_per_threadgroup, " threads, got (",
                                       group[0], ", ", group[1], ", ", group[2], ")"));
    }
    if (is_large) {
      throw std::invalid_argument(text("[", name_, "] the grid (", grid[0], ", ", grid[1], ", ",
                                       grid[2], ") has more than 2^40 threadgroups"));
    }
  }

  // What decides the kernel, as bytes: the target, dtypes and kinds of the inputs, dtypes of the
  // outputs, template values.
  std::string describe(const exec::Target& target, const std::vector<array>& inputs,
                       const std::vector<Dtype>& dtypes,
                       const TemplateArguments& template_arguments) const {
    ByteWriter out;
    out.value(reinterpret_cast<uintptr_t>(&target));
    for (const array& input : inputs) {
      out.value(input.dtype().val());
      // Fewer than 8 elements: constant memory; none of the dimensions: a reference.
      out.value(static_cast<uint8_t>((input.size() < 8 ? 1 : 0) | (input.ndim() == 0 ? 2 : 0)));
    }
    for (const Dtype& dtype : dtypes) out.value(dtype.val());
    for (const auto& [name, argument] : template_arguments) {
      out.text(name);
      out.value(static_cast<uint8_t>(argument.index()));
      if (const int* number = std::get_if<int>(&argument)) out.value(*number);
      if (const bool* flag = std::get_if<bool>(&argument)) out.value(static_cast<uint8_t>(*flag));
      if (const Dtype* dtype = std::get_if<Dtype>(&argument)) out.value(dtype->val());
    }
    return out.take();
  }

  Ref<const KernelVariant> variant_for(exec::Target& target, const std::vector<array>& inputs,
                                       const std::vector<Dtype>& dtypes,
                                       const TemplateArguments& template_arguments,
                                       const CustomKernel::Sizes& threadgroup) {
    std::string description = describe(target, inputs, dtypes, template_arguments);
    {
      std::lock_guard guard(mutex_);
      for (size_t i = 0; i < variants_.size(); ++i) {
        if (variants_[i].description != description) continue;
        // The last one used is found first.
        if (i > 0) std::swap(variants_[i], variants_[0]);
        return variants_[0].variant;
      }
    }
    Ref<const KernelVariant> made =
        make_variant(target, inputs, dtypes, template_arguments, threadgroup);
    std::lock_guard guard(mutex_);
    if (variants_.size() == kept_variants) variants_.pop_back();
    variants_.insert(variants_.begin(), {std::move(description), made});
    return made;
  }

  Ref<const KernelVariant> make_variant(exec::Target& target, const std::vector<array>& inputs,
                                        const std::vector<Dtype>& dtypes,
                                        const TemplateArguments& template_arguments,
                                        const CustomKernel::Sizes& threadgroup) const;

  static constexpr size_t kept_variants = 64;
  struct Described {
    std::string description;
    Ref<const KernelVariant> variant;
  };

  const std::shared_ptr<const msl::Signature> signature_;
  const char* const name_;
  const bool ensure_row_contiguous_;
  sync::Mutex mutex_{sync::Rank::kernel_variants};
  std::vector<Described> variants_;  // guarded by mutex_
};

Ref<const KernelVariant> Kernel::make_variant(exec::Target& target,
                                              const std::vector<array>& inputs,
                                              const std::vector<Dtype>& dtypes,
                                              const TemplateArguments& template_arguments,
                                              const CustomKernel::Sizes& threadgroup) const {
  std::vector<msl::SignatureInput> described;
  for (const array& input : inputs)
    described.push_back({input.dtype(), input.size(), input.ndim()});
  msl::GeneratedKernel generated =
      msl::generate(*signature_, described, dtypes, template_arguments);
  auto variant = make_ref<KernelVariant>();
  variant->signature = signature_;
  variant->template_arguments = template_arguments;
  exec::KernelOptions options = exec::user_kernel_options(signature_->guard);
  options.threadgroup = threadgroup;
  variant->request = make_ref<exec::KernelRequest>(std::move(generated.source), options, target);
  variant->slots = std::move(generated.slots);
  return variant;
}

// What metal_kernel returns.
struct Call {
  std::shared_ptr<Kernel> kernel;

  std::vector<array> operator()(const std::vector<array>& inputs,
                                const std::vector<Shape>& output_shapes,
                                const std::vector<Dtype>& output_dtypes, Threads grid,
                                Threads threadgroup, const TemplateArguments& template_args,
                                std::optional<float> init_value, bool verbose,
                                StreamOrDevice s) const {
    return kernel->call(inputs, output_shapes, output_dtypes, grid, threadgroup, template_args,
                        init_value, verbose, s);
  }
};

}  // namespace

std::vector<KernelInfo> kernel_info(const CustomKernelFunction& kernel) {
  const Call* call = kernel.target<Call>();
  if (!call)
    throw std::invalid_argument("[kernel_info] expected a function that metal_kernel returned");
  return call->kernel->info();
}

CustomKernelFunction metal_kernel(const std::string& name,
                                  const std::vector<std::string>& input_names,
                                  const std::vector<std::string>& output_names,
                                  const std::string& source, const std::string& header,
                                  bool ensure_row_contiguous, bool atomic_outputs,
                                  const CompileOptions& compile_options) {
  msl::Signature signature;
  signature.name = name;
  signature.input_names = input_names;
  signature.output_names = output_names;
  signature.body = source;
  signature.header = header;
  signature.atomic_outputs = atomic_outputs;
  signature.guard = compile_options.guard;
  signature.math = static_cast<msl::MathMode>(compile_options.math_mode);
  return Call{std::make_shared<Kernel>(std::move(signature), ensure_row_contiguous)};
}

}  // namespace holdfast::fast
