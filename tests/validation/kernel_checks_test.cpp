// Checked kernels in programs: what they compute, and how their reports reach the user.
#include <doctest/doctest.h>

#include "validation/cases.h"

using namespace holdfast;
using namespace holdfast::testing;
using validation::Report;

namespace {

const char* const shift_body =
    "uint i = thread_position_in_grid.x;\n"
    "threadgroup float s[64];\n"
    "s[thread_index_in_threadgroup] = x[i];\n"
    "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "out[i] = s[63 - thread_index_in_threadgroup] * k;\n";

array shifted(const fast::CustomKernelFunction& kernel, float factor, StreamOrDevice s) {
  array x = astype(arange(0, 100, 1), float32, s);
  return kernel({x, array(factor)}, {Shape{100}}, {float32}, {100, 1, 1}, {64, 1, 1}, {}, 0.0f,
                false, s)[0];
}

array beyond(StreamOrDevice s) {
  auto kernel = fast::metal_kernel("beyond", {"x"}, {"out"},
                                   "uint i = thread_position_in_grid.x;\nout[i] = x[i + 1];");
  return kernel({astype(arange(0, 16, 1), float32, s)}, {Shape{16}}, {float32}, {16, 1, 1},
                {16, 1, 1}, {}, {}, false, s)[0];
}

}  // namespace

TEST_CASE("checked kernels compute what others do, and kernels are others again afterwards") {
  if (!metal::is_available()) return;
  OwnStream s;
  // Older than the scope; the last group has 36 threads, which leave places of `s` unwritten.
  auto kernel = fast::metal_kernel("shift", {"x", "k"}, {"out"}, shift_body);
  array before = shifted(kernel, 2, s.stream);
  eval(before);
  std::vector<Report> reports;
  {
    validation::Scope scope({.checks = "kernels"});
    array during = shifted(kernel, 2, s.stream);
    eval(during);
    reports = scope.reports();
    CHECK(array_equal(slice(before, {0}, {64}), slice(during, {0}, {64})).item<bool>());
  }
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].id == "kernels.uninitialised-read");
  CHECK(reports[0].field("kernel") == "shift");
  CHECK(reports[0].field("line") == "5");
  CHECK(reports[0].field("source") == "out[i] = s[63 - thread_index_in_threadgroup] * k;");
  reset_kernel_cache_stats();
  eval(shifted(kernel, 3, s.stream));
  CHECK(kernel_cache_stats().compiles == 0);
}

TEST_CASE("what a kernel does wrong is thrown by synchronize, once") {
  if (!metal::is_available()) return;
  OwnStream s;
  validation::Scope scope({.checks = "kernels", .mode = validation::Mode::throw_error});
  array out = beyond(s.stream);
  eval(out);
  // The access was not made: what it reads is 0.
  CHECK(out.data<float>()[15] == 0);
  std::string text;
  try {
    synchronize(s.stream);
  } catch (const std::exception& error) {
    text = error.what();
  }
  CHECK(text.find("kernels.out-of-bounds") != std::string::npos);
  CHECK(text.find("thread 15,0,0 reads 4 bytes at byte 64 of argument \"x\" (slot 0), which has 64 "
                  "bytes (body:2:10") != std::string::npos);
  synchronize(s.stream);
}

TEST_CASE("kernels are looked at only where the check is on") {
  if (!metal::is_available()) return;
  OwnStream s;
  for (const char* checks : {"bindings,hazards", "1"}) {
    validation::Scope scope({.checks = checks});
    eval(beyond(s.stream));
    CHECK(scope.reports().size() == (checks == std::string("1") ? 1u : 0u));
  }
  validation::Scope scope({.ignore = "kernels.out-of-bounds"});
  eval(beyond(s.stream));
  CHECK(scope.reports().empty());
}

// Beyond what one thread runs alone: groups run on all workers, and look at the same memory.
TEST_CASE("large dispatches are looked at by several threads") {
  if (!metal::is_available()) return;
  OwnStream s;
  constexpr int size = 1 << 16;
  array x = astype(arange(0, size, 1), float32, s.stream);
  eval(x);
  auto found = [&](const std::string& index) {
    auto kernel = fast::metal_kernel("large", {"x"}, {"out"},
                                     "uint i = thread_position_in_grid.x;\n"
                                     "threadgroup float s[64];\n"
                                     "s[thread_index_in_threadgroup] = x[i];\n"
                                     "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                                     "out[" +
                                         index + "] = s[63 - thread_index_in_threadgroup];\n");
    validation::Scope scope({.checks = "kernels"});
    // The first run measures what a group costs.
    for (int run = 0; run < 3; ++run) {
      eval(kernel({x}, {Shape{size}}, {float32}, {size, 1, 1}, {64, 1, 1}, {}, 0.0f, false,
                  s.stream));
    }
    std::string text;
    for (const Report& report : scope.reports())
      text += report.id + " " + report.field("line") + "/" + report.field("other_line") + ";";
    return text;
  };
  CHECK(found("i") == "");
  CHECK(found("i % 4096") == "kernels.race 5/5;");
  // Always two groups, next to each other.
  CHECK(found("min(i | 64, 65535u)") == "kernels.race 5/5;");
}
