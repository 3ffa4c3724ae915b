// Writes a bundle: kernels as machine code for a GPU with their arguments and what this processor
// makes of them, for tools/gpu/run_bundle.cpp, which runs them on a machine with a GPU and without
// a compiler. HOLDFAST_GPU_BUNDLE=FOLDER, HOLDFAST_TEST_SEED=m..n for the random kernels.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "devices/cuda/assembler.h"
#include "devices/cuda/compiler/ptx.h"
#include "jit/ptx/gpu_cases.h"
#include "jit/ptx/tile_cases.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::jit::testing;
using cuda::Positions;

namespace {

// Contents by their place in one file; equal ones are there once.
class Data {
 public:
  explicit Data(const std::string& path) : file_(path, std::ios::binary) {}
  size_t add(const std::vector<char>& bytes) {
    std::lock_guard lock(mutex_);
    auto [known, fresh] = known_.try_emplace(std::string(bytes.begin(), bytes.end()), size_);
    if (!fresh) return known->second;
    file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const std::vector<char> padding((16 - bytes.size() % 16) % 16);
    file_.write(padding.data(), static_cast<std::streamsize>(padding.size()));
    size_ += bytes.size() + padding.size();
    return known->second;
  }

 private:
  std::mutex mutex_;
  std::ofstream file_;
  std::map<std::string, size_t> known_;
  size_t size_ = 0;
};

// The kernels of `bench kernels` are compared on a part of their grid, and timed on a multiple.
struct BenchScale {
  const char* name;
  const char* rival;  // in tools/gpu/rivals.cu
  uint32_t axis, shrink, grow;
};
const BenchScale scales[] = {
    {"RMSNorm", "rms_norm", 0, 8, 256},     {"softmax", "softmax", 0, 8, 256},
    {"gated delta step", "delta", 2, 1, 1}, {"4-bit GEMV", "gemv", 0, 4, 64},
    {"attention", "attention", 1, 1, 16},   {"Mandelbrot", "mandelbrot", 1, 8, 128},
    {"bitonic sort", "sort", 0, 8, 128},    {"8×8 simdgroup_matrix", "product", 0, 1, 1},
    {"histogram", "histogram", 0, 8, 128},
};
constexpr size_t shrunk_bytes = 32768;  // arguments from here on

const BenchScale* scale_of(const GpuCase& gpu_case) {
  for (const BenchScale& scale : scales) {
    if (gpu_case.group == "bench" && gpu_case.name.starts_with(scale.name)) return &scale;
  }
  return nullptr;
}

GpuCase shrunk(GpuCase whole, const BenchScale& scale) {
  whole.grid[scale.axis] /= scale.shrink;
  auto argument = whole.argument;
  const uint32_t by = scale.shrink;
  whole.argument = [=](const msl::KernelArgument& described) {
    GpuArgument result = argument(described);
    if (result.bytes.size() >= shrunk_bytes) result.bytes.resize(result.bytes.size() / by);
    return result;
  };
  return whole;
}

std::vector<Positions> positions_of(const GpuCase& gpu_case) {
  if (!gpu_case.is_divisible()) return {Positions::general};
  if (gpu_case.threadgroup[0] % 32 == 0 && gpu_case.grid[0] % 32 == 0)
    return {Positions::rows, Positions::exact, Positions::general};
  return {Positions::exact, Positions::general};
}

std::string text_of(const GpuCase& gpu_case, const std::string& assembler, Data& data) {
  std::ostringstream text;
  std::string name = gpu_case.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  text << "case " << gpu_case.group << ' ' << name << '\n';
  Size size, groups;
  for (size_t axis = 0; axis < 3; ++axis) {
    size[axis] = std::min(gpu_case.grid[axis], gpu_case.threadgroup[axis]);
    groups[axis] = (gpu_case.grid[axis] + size[axis] - 1) / size[axis];
  }
  auto words = [&](const Size& three) {
    text << ' ' << three[0] << ' ' << three[1] << ' ' << three[2];
  };
  text << "dispatch";
  words(gpu_case.grid);
  words(size);
  words(groups);
  text << '\n';
  const std::vector<GpuArgument> after = run_on_cpu(gpu_case);
  msl::KernelInterface interface;
  for (Positions positions : positions_of(gpu_case)) {
    const cuda::PtxOptions options = gpu_case.options(positions);
    const cuda::PtxKernel kernel = cuda::compile_to_ptx(gpu_case.source, options);
    const cuda::AssembledKernel code = cuda::assemble(assembler, kernel.text, options.target);
    interface = kernel.interface;
    const bool is_general = positions == Positions::general;
    text << "variant "
         << (is_general                     ? "general"
             : positions == Positions::rows ? "rows"
                                            : "exact")
         << ' ' << kernel.symbol << ' ' << data.add(code.cubin) << ' ' << code.cubin.size();
    words(is_general ? Size{groups[0] * groups[1] * groups[2], 1, 1} : groups);
    words(is_general ? Size{size[0] * size[1] * size[2], 1, 1} : size);
    text << ' ' << kernel.gathers << '\n';
  }
  for (size_t i = 0; i < after.size(); ++i) {
    const GpuArgument before = gpu_case.argument(interface.arguments[i]);
    text << "argument " << data.add(before.bytes) << ' ' << before.bytes.size() << ' '
         << before.is_output << ' ' << static_cast<int>(before.kind) << ' '
         << (before.is_output ? data.add(after[i].bytes) : 0) << '\n';
  }
  if (const BenchScale* scale = scale_of(gpu_case))
    text << "time " << scale->rival << ' ' << scale->axis << ' ' << scale->grow << '\n';
  text << "end\n";
  return text.str();
}

}  // namespace

TEST_CASE("PTX: a bundle for a machine with a GPU") {
  const char* folder = std::getenv("HOLDFAST_GPU_BUNDLE");
  if (!folder) return;
  const std::string assembler = cuda::find_assembler();
  REQUIRE(!assembler.empty());
  uint64_t first = 1, last = 100;
  if (const char* given = std::getenv("HOLDFAST_TEST_SEED"))
    REQUIRE(std::sscanf(given, "%lu..%lu", &first, &last) == 2);
  std::vector<GpuCase> cases = bench_cases();
  for (GpuCase& one : cases) {
    if (const BenchScale* scale = scale_of(one)) one = shrunk(one, *scale);
  }
  for (GpuCase& one : feature_cases()) {
    if (one.has_fixed_result) cases.push_back(std::move(one));
  }
  for (const TileCase& one : tile_cases()) {
    if (one.is_exact) cases.push_back(gpu_case(one));
  }
  for (uint64_t seed = first; seed <= last; ++seed) cases.push_back(random_case(seed));
  Data data(std::string(folder) + "/data");
  std::vector<std::string> texts(cases.size());
  std::atomic<size_t> next = 0;
  testing::on_threads(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                      [&](int) {
                        for (size_t i; (i = next++) < cases.size();) {
                          try {
                            texts[i] = text_of(cases[i], assembler, data);
                          } catch (const std::exception& error) {
                            std::fprintf(stderr, "%s: %s\n", cases[i].name.c_str(), error.what());
                          }
                        }
                      });
  std::ofstream manifest(std::string(folder) + "/manifest");
  for (const std::string& text : texts) manifest << text;
}
