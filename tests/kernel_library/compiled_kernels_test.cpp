// The kernel library with the real compiler: what P3 and P4 promise, on machine code. Skipped where
// the build has no compiler.
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "benchmarks/layer_kernel.h"
#include "kernel_library/fake_metal.h"
#include "kernel_library/temporary_folder.h"
#include "support/child.h"
#include "support/device.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::KernelLibrary;

namespace {

bool has_compiler() { return metal::is_available(); }

// Stands in for the library of the process: the real compiler with a bound and a folder of its own.
class RealLibrary {
 public:
  explicit RealLibrary(size_t capacity, const std::string& folder = "")
      : library_(parts(capacity, folder)) {
    KernelLibrary::replace(&library_);
  }
  ~RealLibrary() { KernelLibrary::replace(nullptr); }
  KernelCacheStats stats() const { return library_.stats(); }

 private:
  static KernelLibrary::Parts parts(size_t capacity, const std::string& folder) {
    KernelLibrary::Parts parts = KernelLibrary::process_parts();
    parts.capacity = capacity;
    parts.disk.reset();
    if (!folder.empty()) parts.disk = std::make_unique<exec::DiskCache>(folder, uint64_t{1} << 30);
    return parts;
  }
  KernelLibrary library_;
};

// y = x * factor + summand, with the numbers in the source.
fast::CustomKernelFunction affine_kernel(int factor, int summand) {
  return fast::metal_kernel("affine", {"x"}, {"y"},
                            "uint i = thread_position_in_grid.x;\n"
                            "y[i] = x[i] * " +
                                std::to_string(factor) + " + " + std::to_string(summand) + ";");
}

array run_on(const fast::CustomKernelFunction& kernel, const array& x, StreamOrDevice s = {}) {
  int size = static_cast<int>(x.size());
  return kernel({x}, {x.shape()}, {x.dtype()}, {size, 1, 1}, {64, 1, 1}, {}, {}, false, s)[0];
}

bool is_affine(array got, const array& x, int factor, int summand) {
  return all(equal(got, x * array(factor, x.dtype()) + array(summand, x.dtype()))).item<bool>();
}

bool uses_llvm() { return read_file("/proc/self/maps").find("libLLVM") != std::string::npos; }

}  // namespace

TEST_CASE_FIXTURE(OnCpu,
                  "compiled kernels: one name with float16, float32 and another body in one list" *
                      doctest::test_suite("no other layers")) {
  if (!has_compiler()) return;
  RealLibrary library(1);  // each one drops the one before, while it is encoded
  Stream stream = new_stream(default_device());
  array x = astype(arange(200), float32), h = astype(arange(200), float16);
  eval(x, h);
  CommitRecorder recorder;
  auto kernel = affine_kernel(2, 1);
  array a = run_on(kernel, h, stream), b = run_on(kernel, x, stream),
        c = run_on(affine_kernel(3, 5), x, stream), d = run_on(kernel, h, stream);
  eval(a, b, c, d);
  CHECK(recorder.lists(stream).size() == 1);
  CHECK(is_affine(a, h, 2, 1));
  CHECK(is_affine(b, x, 2, 1));
  CHECK(is_affine(c, x, 3, 5));
  CHECK(is_affine(d, h, 2, 1));
  CHECK(library.stats().evictions == 3);
}

namespace {

// `variants` kernels of one name through a cache of `capacity` entries, while `threads` threads
// dispatch those that are theirs and a few that all share, and drop some results in flight.
void check_variants(int variants, int threads, size_t capacity) {
  size_t before = exec::Pipeline::live_count();
  {
    RealLibrary library(capacity);
    on_threads(threads, [&](int thread) {
      array x = astype(arange(100), thread % 2 ? int32 : float32);
      eval(x);
      std::vector<std::pair<array, int>> pending;
      for (int round = 0; round * threads < variants; ++round) {
        for (int variant : {round * threads + thread, round % 3}) {
          array y = run_on(affine_kernel(variant, 7), x);
          async_eval(y);
          if (round % 5 != 0) pending.push_back({y, variant});  // others are dropped in flight
        }
        if (pending.size() < 6) continue;
        for (auto& [result, factor] : pending) {
          if (!is_affine(result, x, factor, 7)) throw std::runtime_error("a wrong value");
        }
        pending.clear();
      }
      synchronize();
    });
    KernelCacheStats stats = library.stats();
    CHECK(stats.compiles >= static_cast<uint64_t>(variants));
    CHECK(stats.evictions >= stats.compiles - capacity);
    CHECK(stats.entries <= capacity);
  }
  CHECK(exec::Pipeline::live_count() == before);
}

}  // namespace

TEST_CASE("compiled kernels: variants through a small cache while threads dispatch") {
  if (!has_compiler()) return;
  check_variants(64, 8, 4);
}

TEST_CASE("compiled kernels: ten thousand through 64 entries while 64 threads dispatch [long]") {
  if (!has_compiler()) return;
  check_variants(10000, 64, 64);
}

TEST_CASE("compiled kernels: twelve layers of one name are plain C++, bit for bit") {
  if (!has_compiler()) return;
  bool copies = false;
  SUBCASE("over views") {}
  SUBCASE("over copies of them") { copies = true; }
  bench::LayerStack stack = bench::make_layer_stack({64, 12, 2}, 11, copies);
  array x = random::normal({64}, random::key(5));
  eval(x);
  std::vector<float> expected(x.data<float>(), x.data<float>() + 64);
  bench::apply_layers_plainly(stack, expected);
  auto differs = [&](array y) {
    eval(y);
    return std::memcmp(y.data<float>(), expected.data(), 64 * sizeof(float)) != 0;
  };
  int different = 0;
  for (int run = 0; run < 250; ++run) different += differs(bench::apply_layers(stack, x));
  {
    FusionScope off(false);
    for (int run = 0; run < 250; ++run) different += differs(bench::apply_layers(stack, x));
  }
  CHECK(different == 0);
  on_threads(8, [&](int) {
    for (int run = 0; run < 10; ++run) {
      if (differs(bench::apply_layers(stack, x))) throw std::runtime_error("another result");
    }
  });
}

TEST_CASE_FIXTURE(OnCpu, "compiled kernels: from the disk without a compiler [child]") {
  if (!is_child("compiled kernels: from the disk without a compiler [child]")) return;
  RealLibrary library(8, std::getenv("HOLDFAST_TEST_FOLDER"));
  array x = astype(arange(100), float32);
  CHECK(is_affine(run_on(affine_kernel(4, 2), x), x, 4, 2));
  report(std::to_string(library.stats().compiles) + " compiles, LLVM " +
         (uses_llvm() ? "loaded" : "absent"));
}

TEST_CASE("compiled kernels: from the disk without a compiler") {
  if (!has_compiler()) return;
  TemporaryFolder temporary;
  const char* child = "compiled kernels: from the disk without a compiler [child]";
  std::vector<std::string> variables = {"HOLDFAST_TEST_FOLDER=" + temporary.path() + "/kernels"};
  ChildResult first = run_child(child, variables);
  CHECK_MESSAGE(first.exit_code == 0, first.output);
  CHECK(reported(first) == "1 compiles, LLVM loaded\n");
  ChildResult second = run_child(child, variables);
  CHECK_MESSAGE(second.exit_code == 0, second.output);
  CHECK(reported(second) == "0 compiles, LLVM absent\n");
}

TEST_CASE("compiled kernels: HOLDFAST_DUMP_KERNELS shows each step [child]") {
  if (!is_child("compiled kernels: HOLDFAST_DUMP_KERNELS shows each step [child]")) return;
  RealLibrary library(8);
  array x = astype(arange(100), float32);
  CHECK(is_affine(run_on(affine_kernel(4, 2), x), x, 4, 2));
}

TEST_CASE("compiled kernels: HOLDFAST_DUMP_KERNELS shows each step") {
  if (!has_compiler()) return;
  TemporaryFolder temporary;
  ChildResult child = run_child("compiled kernels: HOLDFAST_DUMP_KERNELS shows each step [child]",
                                {"HOLDFAST_DUMP_KERNELS=" + temporary.path()});
  CHECK_MESSAGE(child.exit_code == 0, child.output);
  std::set<std::string> kinds;
  for (const auto& file : files_in(temporary.path())) kinds.insert(file.extension().string());
  CHECK(kinds == std::set<std::string>{".ll", ".metal", ".remarks", ".s"});
}

TEST_CASE_FIXTURE(OnCpu, "compiled kernels: damaged machine code on disk is compiled again") {
  if (!has_compiler()) return;
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/kernels";
  array x = astype(arange(100), float32);
  auto compiles = [&] {
    RealLibrary library(8, folder);
    CHECK(is_affine(run_on(affine_kernel(9, 3), x), x, 9, 3));
    return library.stats().compiles;
  };
  CHECK(compiles() == 1);
  CHECK(compiles() == 0);
  auto files = files_in(folder);
  REQUIRE(files.size() == 1);
  std::string good = read_file(files[0]);
  // A plain change is found by the checksum. With a checksum that fits, what is left is to be
  // refused by the loader or to run without harm: objects are cut short here.
  std::string changed = good;
  changed[good.size() - 100] ^= 1;
  for (const std::string& bad : {changed, good.substr(0, good.size() / 2), std::string("no")}) {
    write_file(files[0], bad);
    CHECK(compiles() == 1);
    CHECK(compiles() == 0);
  }
}

TEST_CASE("compiled kernels: an error in the source names the kernel and the place") {
  if (!has_compiler()) return;
  auto kernel = fast::metal_kernel("typo", {"x"}, {"y"},
                                   "uint i = thread_position_in_grid.x;\n"
                                   "y[i] = no_such_function(x[i]);");
  array y = run_on(kernel, astype(arange(10), float32));
  try {
    eval(y);
    FAIL("nothing was thrown");
  } catch (const std::runtime_error& error) {
    std::string message = error.what();
    CAPTURE(message);
    CHECK(message.starts_with("[typo]"));
    CHECK(message.find("body:2:8") != std::string::npos);
    CHECK(message.find("no_such_function") != std::string::npos);
  }
  CHECK(y.status() == array::unscheduled);
  array x = astype(arange(10), float32);
  CHECK(is_affine(run_on(affine_kernel(2, 2), x), x, 2, 2));
}

TEST_CASE("compiled kernels: atomic outputs over an init value") {
  if (!has_compiler()) return;
  auto kernel =
      fast::metal_kernel("histogram", {"x"}, {"bins"},
                         "uint i = thread_position_in_grid.x;\n"
                         "atomic_fetch_add_explicit(&bins[x[i] % 8], 1, memory_order_relaxed);",
                         "", true, true);
  array x = astype(arange(10000), uint32);
  array bins = kernel({x}, {{8}}, {int32}, {10000, 1, 1}, {256, 1, 1}, {}, 5.0f, false, {})[0];
  eval(bins);
  for (int i = 0; i < 8; ++i) CHECK(bins.data<int32_t>()[i] == 1255);
}

// --- what users get wrong: an exception with the kernel's name, and everything goes on ---

namespace {

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void check_all_goes_on() {
  array x = astype(arange(10), float32);
  CHECK(is_affine(run_on(affine_kernel(2, 2), x), x, 2, 2));
}

}  // namespace

TEST_CASE("compiled kernels: names that cannot be are refused when the kernel is made") {
  auto message = [](const std::string& name, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs) {
    return error_of([&] { fast::metal_kernel(name, inputs, outputs, "y[0] = x[0];"); });
  };
  CHECK(message("fine", {"x"}, {"y"}) == "nothing was thrown");
  for (auto& [inputs, outputs] :
       std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>{
           {{"x", "x"}, {"y"}},  // twice
           {{"x"}, {"x"}},       // input and output
           {{"float"}, {"y"}},   // a keyword
           {{"two words"}, {"y"}},
           {{""}, {"y"}},
           {{"x"}, {}}}) {  // nothing to write to
    std::string text = message("bad_names", inputs, outputs);
    CAPTURE(text);
    CHECK(text.find("bad_names") != std::string::npos);
  }
}

TEST_CASE("compiled kernels: too much threadgroup memory is refused") {
  if (!has_compiler()) return;
  auto kernel = fast::metal_kernel("greedy", {"x"}, {"y"},
                                   "threadgroup float much[10000];\n"
                                   "uint i = thread_position_in_grid.x;\n"
                                   "much[i] = x[i];\n"
                                   "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                                   "y[i] = much[9 - i];");
  array y = run_on(kernel, astype(arange(10), float32));
  std::string text = error_of([&] { eval(y); });
  CAPTURE(text);
  CHECK(text.starts_with("[greedy]"));
  CHECK(text.find("32768") != std::string::npos);
  CHECK(y.status() == array::unscheduled);
  check_all_goes_on();
}

TEST_CASE("compiled kernels: division by zero is a value") {
  if (!has_compiler()) return;
  auto kernel = fast::metal_kernel("divide", {"x"}, {"y"},
                                   "uint i = thread_position_in_grid.x; y[i] = 100 / x[i];");
  array y = run_on(kernel, arange(-8, 8));
  eval(y);
  CHECK(y.data<int32_t>()[15] == 100 / 7);
  CHECK(y.data<int32_t>()[0] == 100 / -8);
}

TEST_CASE("compiled kernels: a kernel that does not end is stopped [child]") {
  if (!is_child("compiled kernels: a kernel that does not end is stopped [child]")) return;
  auto kernel = fast::metal_kernel("endless", {"x"}, {"y"},
                                   "uint i = thread_position_in_grid.x;\n"
                                   "volatile device float* p = y;\n"
                                   "while (x[i] >= 0) p[i] = p[i] + 1;");
  array y = run_on(kernel, astype(arange(10), float32));
  std::string text = error_of([&] { eval(y); });
  CAPTURE(text);
  CHECK(text.starts_with("[endless]"));
  check_all_goes_on();
}

TEST_CASE("compiled kernels: a kernel that does not end is stopped") {
  if (!has_compiler()) return;
  ChildResult result = run_child("compiled kernels: a kernel that does not end is stopped [child]",
                                 {"HOLDFAST_KERNEL_TIMEOUT=1"});
  CHECK_MESSAGE(result.exit_code == 0, result.output);
}
