// `holdfast kernel check` and the choice between the subcommands of `holdfast kernel`.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>

#include "base/environment.h"
#include "base/sync.h"
#include "devices/cpu/jit/dispatch.h"
#include "devices/cuda/assembler.h"
#include "exec/kernel_request.h"
#include "tools/holdfast/commands.h"
#include "tools/holdfast/isolated.h"
#include "tools/holdfast/kernel_arguments.h"
#include "tools/holdfast/kernel_command.h"

namespace holdfast::tool {

KernelOptions::KernelOptions() {
  compile.instruction_set = jit::host_instruction_set();
  compile.guarded = exec::user_kernel_options().guarded;
  compile.dump_directory = environment::settings().dump_kernels;
}

bool KernelOptions::take(Arguments arguments, size_t& i) {
  const std::string& name = arguments[i];
  if (name.starts_with("-I")) {
    include_directories.push_back(name == "-I" ? value_of(arguments, i) : name.substr(2));
    std::error_code error;
    if (!std::filesystem::is_directory(include_directories.back(), error))
      throw UsageError("-I: \"" + include_directories.back() + "\" is not a folder");
    return true;
  }
  if (name != "--lowering" && name != "--math" && name != "--instruction-set" &&
      name != "--constant" && name != "--guard") {
    return false;
  }
  const std::string& value = value_of(arguments, i);
  if (name == "--constant") {
    constants.push_back(parse_constant(value));
    // One that is named takes an index that no source has, so that names are distinguished.
    if (!constants.back().name.empty())
      constants.back().index = 0x80000000u + static_cast<uint32_t>(constants.size());
  } else if (name == "--guard") {
    if (value != "on" && value != "off")
      throw UsageError("--guard must be on or off, not \"" + value + "\"");
    compile.guarded = value == "on";
  } else if (name == "--lowering") {
    if (value != "automatic" && value != "widened" && value != "reference")
      throw UsageError("--lowering must be automatic, widened or reference, not \"" + value + "\"");
    compile.lowering = value == "automatic" ? jit::Lowering::automatic
                       : value == "widened" ? jit::Lowering::widened
                                            : jit::Lowering::reference;
  } else if (name == "--math") {
    if (value != "safe" && value != "relaxed" && value != "fast")
      throw UsageError("--math must be safe, relaxed or fast, not \"" + value + "\"");
    math = value == "safe"      ? msl::MathMode::safe
           : value == "relaxed" ? msl::MathMode::relaxed
                                : msl::MathMode::fast;
  } else {
    bool found = false;
    for (auto set :
         {jit::InstructionSet::baseline, jit::InstructionSet::avx2, jit::InstructionSet::avx512}) {
      if (value != jit::instruction_set_name(set)) continue;
      if (!machine::supports(set)) throw UsageError("this processor does not run " + value);
      compile.instruction_set = set;
      found = true;
    }
    if (!found)
      throw UsageError("--instruction-set must be baseline, avx2 or avx512, not \"" + value + "\"");
  }
  return true;
}

void KernelOptions::apply(msl::KernelSource& source) const {
  source.math = math;
  source.constants = constants;
  source.include_directories = include_directories;
}

const std::string& value_of(Arguments arguments, size_t& i) {
  const std::string& option = arguments[i];
  if (++i == arguments.size()) throw UsageError(option + " needs a value");
  return arguments[i];
}

std::string lowering_text(const jit::CompiledKernel& kernel, jit::InstructionSet set) {
  if (kernel.lowering != jit::Lowering::reference)
    return std::string("widened for ") + jit::instruction_set_name(set);
  return "reference lowering" + (kernel.remark.empty() ? "" : ": " + kernel.remark);
}

namespace {

// The step of a file's process that comes before its kernels.
constexpr uint32_t listing = UINT32_MAX;

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

void print_argument(const msl::KernelArgument& argument) {
  using Kind = msl::KernelArgument::Kind;
  const char* space = argument.kind == Kind::constant      ? "constant"
                      : argument.kind == Kind::threadgroup ? "threadgroup"
                                                           : "device";
  std::printf("      %s(%u)  %-16s %s, %u bytes an element%s\n",
              argument.kind == Kind::threadgroup ? "threadgroup" : "buffer", argument.slot,
              argument.name.c_str(), space, argument.element_size,
              argument.written ? ", written" : "");
}

void print_interface(const msl::KernelInterface& interface, const std::string& race) {
  std::printf("    attributes      %s\n", join(interface.attributes).c_str());
  if (!interface.assumed_constants.empty()) {
    std::printf("    constants       assumed to be 0 or false: %s\n",
                join(interface.assumed_constants).c_str());
  }
  std::printf("    threadgroup     %u bytes of memory, at most %u threads\n",
              interface.threadgroup_bytes, interface.max_threads);
  if (!race.empty()) std::printf("    missing barrier %s\n", race.c_str());
  std::printf("    arguments%s\n", interface.arguments.empty() ? "       none" : "");
  for (const msl::KernelArgument& argument : interface.arguments) print_argument(argument);
}

void print_kernel(const jit::CompiledKernel& kernel, const KernelOptions& options,
                  double milliseconds) {
  std::printf("    code            %s; %zu bytes in %.1f ms\n",
              lowering_text(kernel, options.compile.instruction_set).c_str(), kernel.object.size(),
              milliseconds);
  print_interface(kernel.interface, kernel.race);
}

// For an NVIDIA GPU: what is compiled, and what the assembler says of it.
struct GpuTarget {
  uint32_t architecture = 0;
  std::string assembler;  // empty: there is none
};

void print_gpu_kernel(const cuda::PtxKernel& kernel, const GpuTarget& target, double milliseconds) {
  std::printf("    code            PTX for sm_%u; %zu bytes in %.1f ms%s\n", target.architecture,
              kernel.text.size(), milliseconds,
              kernel.gathers ? "; lanes gather before cross-lane operations, which is slow" : "");
  if (target.assembler.empty()) {
    std::printf("    machine code    not assembled: there is no ptxas (--assembler PATH)\n");
  } else {
    const cuda::AssembledKernel code =
        cuda::assemble(target.assembler, kernel.text, target.architecture);
    std::printf(
        "    machine code    %u registers, %u bytes of local memory, %u spilled, "
        "%u of shared memory; %zu bytes\n",
        code.registers, code.stack_bytes, code.spill_store_bytes + code.spill_load_bytes,
        code.shared_bytes, code.cubin.size());
  }
  print_interface(kernel.interface, "");
}

// As for a dispatch of whole threadgroups, whose buffers begin where an allocation does.
cuda::PtxOptions gpu_options(const msl::KernelInterface& kernel, const GpuTarget& target) {
  cuda::PtxOptions options;
  options.target = target.architecture;
  options.max_threads = kernel.max_threads;
  options.alignment.assign(kernel.arguments.size(), 16);
  options.dump_directory = environment::settings().dump_kernels;
  return options;
}

// What is checked, and how.
struct Check {
  KernelOptions options;
  std::optional<GpuTarget> target;
  std::vector<std::string> names;  // of kernels; empty: all of them
  bool is_brief = false;           // one line for each kernel

  bool wants(const std::string& kernel) const {
    return names.empty() || std::find(names.begin(), names.end(), kernel) != names.end();
  }
};

// The line that says how far it has come is for people who wait: it goes away again.
void show_progress(size_t number, size_t count, const std::string& kernel) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K  [%zu/%zu] %s", number, count, kernel.c_str());
  std::fflush(stderr);
}
void end_progress() {
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
}

void check_kernel(const msl::KernelSource& source, const msl::KernelInterface& kernel,
                  const Check& check) {
  jit::Compiler& compiler = jit::default_compiler();
  auto start = sync::Clock::now();
  auto milliseconds = [&] {
    return std::chrono::duration<double, std::milli>(sync::Clock::now() - start).count();
  };
  auto begin = [&] {
    end_progress();
    std::printf("  %s\n", kernel.entry.c_str());
  };
  if (check.target) {
    const cuda::PtxKernel compiled =
        compiler.compile_to_ptx(source, {gpu_options(kernel, *check.target)}).front();
    const double time = milliseconds();
    begin();
    if (!check.is_brief) print_gpu_kernel(compiled, *check.target, time);
  } else {
    jit::CompiledKernel compiled = compiler.compile(source, check.options.compile);
    const double time = milliseconds();
    begin();
    if (!check.is_brief) print_kernel(compiled, check.options, time);
  }
}

// Compiles the kernels of the file from number `first` on; false when one does not compile.
bool check_kernels(const std::string& path, const Check& check, uint32_t first,
                   Progress& progress) {
  try {
    msl::KernelSource source = source_of_file(path);
    check.options.apply(source);
    source.assume_missing_constants = true;
    progress.begin(listing, "");
    const std::vector<msl::KernelInterface> kernels = jit::default_compiler().list(source);
    if (kernels.empty())
      std::printf("  no kernels: [[kernel]] functions, or templates with [[host_name]]\n");
    for (const std::string& name : check.names) {
      if (std::none_of(kernels.begin(), kernels.end(),
                       [&](const msl::KernelInterface& kernel) { return kernel.entry == name; }))
        throw std::runtime_error("there is no kernel \"" + name + "\"");
    }
    bool all_good = true;
    for (uint32_t i = first; i < kernels.size(); ++i) {
      const msl::KernelInterface& kernel = kernels[i];
      if (!check.wants(kernel.entry)) continue;
      std::fflush(stdout);
      progress.begin(i, kernel.entry);
      show_progress(i + 1, kernels.size(), kernel.entry);
      source.kernel = source.entry = kernel.entry;
      bool is_good = false;
      try {
        check_kernel(source, kernel, check);
        is_good = true;
      } catch (const std::exception& error) {
        end_progress();
        std::printf("  %s\n    FAILED %s\n", kernel.entry.c_str(), error.what());
      }
      progress.count(is_good);
      all_good = all_good && is_good;
    }
    return all_good;
  } catch (const std::exception& error) {
    std::printf("  FAILED %s\n", error.what());
    return false;
  }
}

// Every file has a process of its own, and one more after each kernel that ends it: no text ends
// this one.
bool check_file(const std::string& path, const Check& check) {
  std::printf("%s\n", path.c_str());
  const auto start = sync::Clock::now();
  uint32_t good = 0, bad = 0;
  bool all_good = true;
  for (uint32_t first = 0;;) {
    Ending ending = run_isolated(
        Limits{.seconds = check.options.seconds, .bytes = uint64_t{16} << 30},
        [&](Progress& progress) { return check_kernels(path, check, first, progress) ? 0 : 1; });
    good += ending.good;
    bad += ending.bad;
    if (ending.status >= 0) {
      all_good = all_good && ending.status == 0;
      break;
    }
    all_good = false;
    end_progress();
    if (!ending.name.empty()) std::printf("  %s\n  ", ending.name.c_str());
    std::printf("  FAILED the compiler did not survive it: %s\n", ending.problem.c_str());
    if (ending.step == listing) break;
    ++bad;
    first = ending.step + 1;
  }
  if (good + bad > 1) {
    std::printf("  %u of %u kernels compile, in %.1f s\n", good, good + bad,
                std::chrono::duration<double>(sync::Clock::now() - start).count());
  }
  return all_good;
}

int run_check(Arguments arguments) {
  Check check;
  KernelOptions& options = check.options;
  std::optional<GpuTarget>& target = check.target;
  std::vector<std::string> files;
  std::string assembler = cuda::find_assembler();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (options.take(arguments, i)) continue;
    if (arguments[i] == "--seconds") {
      const std::string& value = value_of(arguments, i);
      const int seconds = std::atoi(value.c_str());
      if (seconds < 1 || seconds > 100000)
        throw UsageError("--seconds must be a positive number, not \"" + value + "\"");
      options.seconds = static_cast<unsigned>(seconds);
      continue;
    }
    if (arguments[i] == "--kernel") {
      check.names.push_back(value_of(arguments, i));
      continue;
    }
    if (arguments[i] == "--brief") {
      check.is_brief = true;
      continue;
    }
    if (arguments[i] == "--target") {
      target = GpuTarget{architecture_of(value_of(arguments, i)), ""};
      continue;
    }
    if (arguments[i] == "--assembler") {
      assembler = value_of(arguments, i);
      continue;
    }
    if (arguments[i].starts_with("-")) throw UsageError("unknown option \"" + arguments[i] + "\"");
    files.push_back(arguments[i]);
  }
  if (files.empty()) throw UsageError("kernel check needs a FILE");
  if (target) target->assembler = assembler;
  jit::default_compiler();  // its absence is one error, not one for each file
  bool all_good = true;
  for (const std::string& file : files) all_good = check_file(file, check) && all_good;
  return all_good ? 0 : 1;
}

}  // namespace

uint32_t architecture_of(const std::string& text) {
  uint32_t number = 0;
  const bool is_named = text.starts_with("sm_");
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data() + (is_named ? 3 : 0), end, number);
  if (!is_named || error != std::errc() || rest != end)
    throw UsageError("--target must be the architecture of an NVIDIA GPU, as in sm_90, not \"" +
                     text + "\"");
  return number;
}

int run_kernel(Arguments arguments) {
  if (arguments.empty()) throw UsageError("kernel needs `check`, `run` or `warm`");
  if (arguments[0] == "check") return run_check(arguments.subspan(1));
  if (arguments[0] == "run") return run_kernel_run(arguments.subspan(1));
  if (arguments[0] == "warm") return run_kernel_warm(arguments.subspan(1));
  throw UsageError("there is no `kernel " + arguments[0] + "`; there are check, run and warm");
}

}  // namespace holdfast::tool
