#include "jit/ptx/gpu_cases.h"

#include <holdfast/holdfast.h>

#include <algorithm>
#include <cstring>

#include "benchmarks/kernels/case.h"
#include "devices/cpu/jit/compiler/service.h"
#include "jit/features/feature.h"
#include "jit/random_kernels.h"

namespace holdfast::jit::testing {
namespace {

std::vector<int32_t> sides(const Shape& shape) { return {shape.begin(), shape.end()}; }

ElementKind kind_of(Dtype dtype) {
  if (dtype == float32) return ElementKind::float32;
  if (dtype == float16) return ElementKind::float16;
  return dtype == bfloat16 ? ElementKind::bfloat16 : ElementKind::bits;
}

template <class T>
std::vector<char> bytes_of(const std::vector<T>& values) {
  auto* first = reinterpret_cast<const char*>(values.data());
  return std::vector<char>(first, first + values.size() * sizeof(T));
}

// The argument of a generated kernel that a slot stands for.
GpuArgument argument_of(const msl::SignatureSlot& slot, const std::vector<Argument>& inputs,
                        const std::vector<Argument>& outputs) {
  using Kind = msl::SignatureSlot::Kind;
  if (slot.kind == Kind::output) {
    const Argument& output = outputs[slot.index];
    return {output.bytes, true, kind_of(output.dtype)};
  }
  const Argument& input = inputs[slot.index];
  switch (slot.kind) {
    case Kind::shape:
      return {bytes_of(input.shape)};
    case Kind::strides: {
      std::vector<int64_t> strides(input.shape.size(), 1);
      for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * input.shape[i];
      return {bytes_of(strides)};
    }
    case Kind::ndim:
      return {bytes_of(std::vector<int32_t>{static_cast<int32_t>(input.shape.size())})};
    default:
      return {input.bytes};
  }
}

GpuCase case_of(const std::string& group, const std::string& name, msl::GeneratedKernel generated,
                std::vector<Argument> inputs, std::vector<Argument> outputs) {
  GpuCase result;
  result.group = group;
  result.name = name;
  result.source = generated.source;
  result.argument = [=](const msl::KernelArgument& argument) {
    return argument_of(generated.slots.at(argument.slot), inputs, outputs);
  };
  return result;
}

Argument evaluated(const std::string& name, array values) {
  values = contiguous(values);
  eval(values);
  Argument result = zeros(name, values.dtype(), sides(values.shape()));
  std::memcpy(result.bytes.data(), values.data<char>(), result.bytes.size());
  return result;
}

}  // namespace

bool GpuCase::is_divisible() const {
  for (size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] % std::min(grid[axis], threadgroup[axis]) != 0) return false;
  }
  return true;
}

cuda::PtxOptions GpuCase::options(cuda::Positions positions) const {
  cuda::PtxOptions result;
  result.positions = positions;
  uint32_t size = 1;
  for (size_t axis = 0; axis < 3; ++axis) size *= std::min(grid[axis], threadgroup[axis]);
  result.max_threads = (size + 31) / 32 * 32;
  result.full_simdgroups = is_divisible() && size % 32 == 0;
  result.alignment.assign(31, 16);
  if (const char* folder = std::getenv("HOLDFAST_DUMP_KERNELS"))
    result.dump_directory = std::string(folder) + "/" + group + " " + name;
  return result;
}

std::vector<GpuCase> feature_cases() {
  std::vector<GpuCase> cases;
  for (const Section& section : all_features()) {
    const bool traps = section.title == trap_features().title;
    for (const Feature& feature : section.features) {
      cases.push_back(
          case_of("features", feature.name, generate(feature), feature.inputs, feature.outputs));
      cases.back().grid = feature.grid;
      cases.back().threadgroup = feature.threadgroup;
      cases.back().has_fixed_result = !traps;
    }
  }
  return cases;
}

std::vector<GpuCase> bench_cases() {
  std::vector<GpuCase> cases;
  for (const auto& kernels :
       {bench::row_kernels(), bench::language_model_kernels(), bench::compute_kernels()}) {
    for (const bench::KernelCase& kernel : kernels) {
      msl::Signature signature;
      signature.name = "bench";
      signature.body = kernel.body;
      signature.input_names = kernel.input_names;
      signature.output_names = kernel.output_names;
      signature.atomic_outputs = kernel.atomic_outputs;
      std::vector<Argument> inputs, outputs;
      std::vector<msl::SignatureInput> described;
      for (size_t i = 0; i < kernel.inputs.size(); ++i) {
        inputs.push_back(evaluated(kernel.input_names[i], kernel.inputs[i]));
        described.push_back(
            {inputs[i].dtype, inputs[i].size(), static_cast<size_t>(kernel.inputs[i].ndim())});
      }
      for (size_t i = 0; i < kernel.output_names.size(); ++i)
        outputs.push_back(
            zeros(kernel.output_names[i], kernel.output_dtypes[i], sides(kernel.output_shapes[i])));
      GpuCase made =
          case_of("bench", kernel.name,
                  msl::generate(signature, described, kernel.output_dtypes, {}), inputs, outputs);
      auto size_of = [](const std::tuple<int, int, int>& size) {
        return Size{static_cast<uint32_t>(std::get<0>(size)),
                    static_cast<uint32_t>(std::get<1>(size)),
                    static_cast<uint32_t>(std::get<2>(size))};
      };
      made.grid = size_of(kernel.grid);
      made.threadgroup = size_of(kernel.threadgroup);
      cases.push_back(std::move(made));
    }
  }
  return cases;
}

GpuCase random_case(uint64_t seed) {
  const RandomKernel kernel = random_kernel(seed);
  GpuCase result;
  result.group = "random";
  result.name = std::to_string(seed);
  result.source.kernel = "random_kernel";
  result.source.text = kernel.source;
  result.grid = kernel.grid;
  result.threadgroup = kernel.threadgroup;
  const size_t all = size_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
  const std::array<int32_t, 16> sizes = kernel.sizes;
  result.argument = [=](const msl::KernelArgument& argument) -> GpuArgument {
    auto words = [](size_t count, auto value) {
      std::vector<uint32_t> values(count);
      for (uint32_t i = 0; i < count; ++i) values[i] = value(i);
      return bytes_of(values);
    };
    auto nothing = [](uint32_t) { return 0u; };
    if (argument.name == "in")
      return {
          words(random_kernel_inputs, [](uint32_t i) { return (i * 2246822519u) >> (i % 24); })};
    if (argument.name == "out") return {words(all * random_kernel_results, nothing), true};
    if (argument.name == "fout")
      return {words(all * random_kernel_floats, nothing), true, ElementKind::float32};
    if (argument.name == "counters") return {words(random_kernel_counters, nothing), true};
    if (argument.name == "parameters")
      return {words(random_kernel_parameters, [](uint32_t i) { return (i * 40503u) >> 3; })};
    if (argument.name == "table")
      return {words(random_kernel_table, [](uint32_t i) { return i * 2654435761u; })};
    if (argument.name == "placed") return {words(all * random_kernel_placed, nothing), true};
    return {bytes_of(std::vector<int32_t>(sizes.begin(), sizes.end()))};
  };
  return result;
}

std::vector<GpuArgument> run_on_cpu(const GpuCase& gpu_case) {
  CompileOptions options;
  options.instruction_set = host_instruction_set();
  options.guarded = true;
  Ref<CpuPipeline> pipeline =
      CpuPipeline::load(gpu_case.name, service().compile(gpu_case.source, options));
  std::vector<GpuArgument> arguments;
  std::vector<void*> buffers;
  std::vector<ArgumentRange> ranges;
  for (const msl::KernelArgument& argument : pipeline->interface().arguments)
    arguments.push_back(gpu_case.argument(argument));
  for (GpuArgument& argument : arguments) {
    buffers.push_back(argument.bytes.data());
    ranges.push_back({0, argument.bytes.size()});
  }
  run(*pipeline, buffers, gpu_case.grid, gpu_case.threadgroup, {}, ranges);
  return arguments;
}

}  // namespace holdfast::jit::testing
