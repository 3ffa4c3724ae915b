// `holdfast kernel run`: one kernel of a .metal file, on arrays from the command line.
#include <holdfast/holdfast.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>

#include "benchmarks/bench.h"
#include "devices/cpu/cpu_target.h"
#include "devices/cpu/jit_kernel.h"
#include "exec/kernel_library.h"
#include "tools/holdfast/kernel_arguments.h"
#include "tools/holdfast/kernel_command.h"

namespace holdfast::tool {
namespace {

struct RunOptions {
  KernelOptions kernel;
  std::string file, entry;
  std::vector<ArrayArgument> inputs, outputs;
  std::vector<uint32_t> threadgroup_bytes;
  std::optional<Encoder::Grid> grid;
  Encoder::Grid threadgroup{1, 1, 1};
  int repeat = 1;
  bool compare = false;
};

void set_threadgroup_bytes(RunOptions& options, const std::string& text) {
  unsigned slot = 0, bytes = 0;
  if (std::sscanf(text.c_str(), "%u=%u", &slot, &bytes) != 2 || slot > 31)
    throw UsageError("--threadgroup-memory must be SLOT=BYTES, not \"" + text + "\"");
  if (options.threadgroup_bytes.size() <= slot) options.threadgroup_bytes.resize(slot + 1);
  options.threadgroup_bytes[slot] = bytes;
}

RunOptions parse(Arguments arguments) {
  RunOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (options.kernel.take(arguments, i)) continue;
    if (argument == "--kernel") {
      options.entry = value_of(arguments, i);
    } else if (argument == "--in") {
      options.inputs.push_back(parse_array(value_of(arguments, i)));
    } else if (argument == "--out") {
      options.outputs.push_back(parse_array(value_of(arguments, i)));
      if (!options.outputs.back().file.empty())
        throw UsageError("\"" + options.outputs.back().text +
                         "\": an output needs a dtype and a shape, as in y=f32[64]");
    } else if (argument == "--grid") {
      options.grid = parse_grid(argument, value_of(arguments, i));
    } else if (argument == "--threadgroup") {
      options.threadgroup = parse_grid(argument, value_of(arguments, i));
    } else if (argument == "--threadgroup-memory") {
      set_threadgroup_bytes(options, value_of(arguments, i));
    } else if (argument == "--repeat") {
      options.repeat = std::atoi(value_of(arguments, i).c_str());
      if (options.repeat < 1) throw UsageError("--repeat must be a positive number");
    } else if (argument == "--compare") {
      if (value_of(arguments, i) != "reference") throw UsageError("--compare knows `reference`");
      options.compare = true;
    } else if (argument.starts_with("-")) {
      throw UsageError("unknown option \"" + argument + "\"");
    } else if (options.file.empty()) {
      options.file = argument;
    } else {
      throw UsageError("kernel run takes one FILE; what is \"" + argument + "\"?");
    }
  }
  if (options.file.empty()) throw UsageError("kernel run needs a FILE");
  if (options.outputs.empty()) throw UsageError("kernel run needs an --out");
  if (!options.grid) throw UsageError("kernel run needs a --grid");
  return options;
}

// Dispatches a pipeline on arrays that are there, in place.
class RunKernel final : public Primitive {
 public:
  using Encode = std::function<void(Encoder&)>;
  RunKernel(Stream stream, std::string name, Encode encode)
      : Primitive(stream), name_(std::move(name)), encode_(std::move(encode)) {}
  void eval_cpu(const std::vector<array>&, std::vector<array>& outputs) override {
    Encoder& encoder = Encoder::of(stream());
    encoder.allocate(outputs[0]);
    encode_(encoder);
  }
  void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
    eval_cpu(inputs, outputs);
  }
  const char* name() const override { return name_.c_str(); }

 private:
  const std::string name_;
  const Encode encode_;
};

std::string list_names(const std::vector<msl::KernelInterface>& kernels) {
  std::string names;
  for (const msl::KernelInterface& kernel : kernels)
    names += (names.empty() ? "" : ", ") + kernel.entry;
  return names.empty() ? "none" : names;
}

class Runner {
 public:
  explicit Runner(const RunOptions& options) : options_(options) {
    source_ = source_of_file(options.file);
    options.kernel.apply(source_);
    source_.entry = options.entry;
    if (source_.entry.empty()) choose_entry();
    source_.kernel = source_.entry;
    for (size_t i = 0; i < options.inputs.size(); ++i)
      inputs_.push_back(make_array(options.inputs[i], i + 1));
  }

  // Runs it once on fresh outputs; keeps the pipeline for `time`.
  void run(jit::Lowering lowering) {
    const jit::CompileOptions& compile = options_.kernel.compile;
    exec::KernelOptions options;
    options.variant = static_cast<uint64_t>(lowering);
    options.guarded = compile.guarded;
    pipeline_ = exec::KernelLibrary::get().get(
        make_ref<exec::KernelRequest>(source_, options, exec::cpu_target(compile.instruction_set)));
    outputs_.clear();
    for (size_t i = 0; i < options_.outputs.size(); ++i)
      outputs_.push_back(make_array(options_.outputs[i], 1000 + i));
    bind();
    dispatch();
  }
  double time() {
    bench::Samples samples;
    for (int i = 0; i < options_.repeat; ++i)
      samples.seconds.push_back(bench::seconds_of([&] { dispatch(); }));
    return samples.median();
  }

  const jit::CompiledKernel& compiled() const {
    return static_cast<const exec::JitKernel&>(*pipeline_).pipeline().kernel();
  }
  const std::vector<array>& outputs() const { return outputs_; }
  const std::string& entry() const { return source_.entry; }
  double bytes() const {
    double total = 0;
    for (const array& a : inputs_) total += static_cast<double>(a.nbytes());
    for (const array& a : outputs_) total += static_cast<double>(a.nbytes());
    return total;
  }

 private:
  void choose_entry() {
    auto kernels = jit::default_compiler().list(source_);
    if (kernels.size() != 1) {
      throw UsageError(options_.file + " has " + std::to_string(kernels.size()) +
                       " kernels: name one with --kernel (" + list_names(kernels) + ")");
    }
    source_.entry = kernels[0].entry;
  }

  // The arguments of the command line to the kernel's, by name.
  void bind() {
    bindings_.clear();
    const auto& arguments = pipeline_->interface().arguments;
    auto bind_one = [&](const ArrayArgument& given, array& a, bool is_output) {
      auto found = std::find_if(arguments.begin(), arguments.end(), [&](const auto& argument) {
        return argument.name == given.name &&
               argument.kind != msl::KernelArgument::Kind::threadgroup;
      });
      if (found == arguments.end()) {
        std::string names;
        for (const auto& argument : arguments) names += (names.empty() ? "" : ", ") + argument.name;
        throw UsageError("kernel " + entry() + " has no argument \"" + given.name + "\"; it has " +
                         (names.empty() ? "none" : names));
      }
      if (bindings_.size() <= found->slot) bindings_.resize(found->slot + 1);
      if (bindings_[found->slot].kind != KernelBinding::Kind::none)
        throw UsageError("argument \"" + given.name + "\" is given twice");
      bindings_[found->slot] = is_output ? KernelBinding::output(a) : KernelBinding::input(a);
    };
    for (size_t i = 0; i < inputs_.size(); ++i) bind_one(options_.inputs[i], inputs_[i], false);
    for (size_t i = 0; i < outputs_.size(); ++i) bind_one(options_.outputs[i], outputs_[i], true);
  }

  void dispatch() {
    auto primitive = std::make_shared<RunKernel>(
        default_stream(default_device()), entry(), [this](Encoder& encoder) {
          encoder.dispatch(*pipeline_, bindings_, *options_.grid, options_.threadgroup,
                           options_.threadgroup_bytes);
        });
    array token({1}, uint8, std::move(primitive), {});
    eval(token);
    synchronize(default_stream(default_device()));
  }

  const RunOptions& options_;
  msl::KernelSource source_;
  Ref<exec::Pipeline> pipeline_;
  std::vector<array> inputs_, outputs_;
  std::vector<KernelBinding> bindings_;
};

void print_output(const ArrayArgument& argument, const array& output) {
  std::string first;
  array numbers = astype(reshape(output, {-1}), float32);
  int shown = static_cast<int>(std::min<size_t>(output.size(), 6));
  array head = contiguous(slice(numbers, {0}, {shown}));
  array low = min(numbers), high = max(numbers), middle = mean(numbers);
  eval(head, low, high, middle);
  for (int i = 0; i < shown; ++i) {
    char text[32];
    std::snprintf(text, sizeof(text), "%s%.6g", i ? ", " : "",
                  static_cast<double>(head.data<float>()[i]));
    first += text;
  }
  std::printf("  %-12s %s%s   least %.6g, mean %.6g, greatest %.6g\n", argument.name.c_str(),
              first.c_str(), output.size() > 6 ? ", …" : "", static_cast<double>(low.item<float>()),
              static_cast<double>(middle.item<float>()), static_cast<double>(high.item<float>()));
}

void print_time(const Runner& runner, const char* what, double seconds, int repeat) {
  std::printf("  %-12s %.2f us (median of %d), %.2f GB/s of what is bound\n", what, seconds * 1e6,
              repeat, runner.bytes() / seconds / 1e9);
}

std::vector<std::vector<char>> bytes_of(const std::vector<array>& outputs) {
  std::vector<std::vector<char>> copies;
  for (const array& output : outputs)
    copies.emplace_back(output.data<char>(), output.data<char>() + output.nbytes());
  return copies;
}

// Says where two results differ first; true when they do not.
bool report_equal(const RunOptions& options, const std::vector<array>& now,
                  const std::vector<std::vector<char>>& before) {
  bool all_equal = true;
  for (size_t i = 0; i < now.size(); ++i) {
    size_t item = now[i].itemsize(), different = 0, first = 0;
    for (size_t k = now[i].size(); k-- > 0;) {
      if (std::memcmp(now[i].data<char>() + k * item, before[i].data() + k * item, item) == 0)
        continue;
      ++different;
      first = k;
    }
    if (different == 0) continue;
    all_equal = false;
    std::printf("  DIFFERENT    %s: %zu of %zu elements, the first is %zu\n",
                options.outputs[i].name.c_str(), different, now[i].size(), first);
  }
  if (all_equal) std::printf("  equal        both lowerings gave the same bits\n");
  return all_equal;
}

}  // namespace

int run_kernel_run(Arguments arguments) {
  RunOptions options = parse(arguments);
  Runner runner(options);
  runner.run(options.kernel.compile.lowering);
  std::printf("%s\n  %-12s %s\n", runner.entry().c_str(), "code",
              lowering_text(runner.compiled(), options.kernel.compile.instruction_set).c_str());
  KernelCacheStats stats = kernel_cache_stats();
  if (stats.compiles > 0) {
    std::printf("  %-12s compiled in %.1f ms\n", "kernel", stats.compile_milliseconds);
  } else {
    std::printf("  %-12s from the disk cache in %.2f ms\n", "kernel", stats.disk_milliseconds);
  }
  for (size_t i = 0; i < options.outputs.size(); ++i)
    print_output(options.outputs[i], runner.outputs()[i]);
  std::vector<std::vector<char>> first = bytes_of(runner.outputs());
  bool is_reference = runner.compiled().lowering == jit::Lowering::reference;
  print_time(runner, "time", runner.time(), options.repeat);
  if (!options.compare) return 0;
  if (is_reference) {
    std::printf("  not compared it was the reference lowering that ran\n");
    return 0;
  }
  runner.run(jit::Lowering::reference);
  bool equal = report_equal(options, runner.outputs(), first);
  print_time(runner, "reference", runner.time(), options.repeat);
  return equal ? 0 : 1;
}

}  // namespace holdfast::tool
