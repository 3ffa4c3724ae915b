// Checked kernels in programs: what they compute, and how their reports reach the user.
#include <doctest/doctest.h>

#include <functional>
#include <sstream>

#include "graph/encoder_scope.h"
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

TEST_CASE("in mode throw, what a kernel does wrong is thrown by whoever uses its outputs") {
  if (!metal::is_available()) return;
  OwnStream s;
  validation::Scope scope({.checks = "kernels", .mode = validation::Mode::throw_error});
  auto check_thrown = [](auto&& use) {
    try {
      use();
      FAIL("nothing was thrown");
    } catch (const validation::ValidationError& error) {
      CHECK(error.report().id == "kernels.out-of-bounds");
      CHECK(error.report().sentence.find("thread 15,0,0 reads 4 bytes at byte 64 of argument \"x\" "
                                         "(slot 0), which has 64 bytes (body:2:10") !=
            std::string::npos);
    }
  };
  // In one list: what comes before and after a kernel that is wrong is not touched by it.
  auto correct = fast::metal_kernel("shift", {"x", "k"}, {"out"}, shift_body);
  auto of_64 = [&](float factor) {
    return correct({ones({64}, float32, s.stream), array(factor)}, {Shape{64}}, {float32},
                   {64, 1, 1}, {64, 1, 1}, {}, {}, false, s.stream)[0];
  };
  array before = of_64(1), wrong = beyond(s.stream), after = of_64(2);
  array on_it = add(wrong, ones({16}, float32, s.stream), s.stream);
  check_thrown([&] { eval(before, wrong, after, on_it); });
  CHECK(before.data<float>()[63] == 1);
  CHECK(after.data<float>()[0] == 2);
  for (array& failed : {std::ref(wrong), std::ref(on_it)}) {
    check_thrown([&] { eval(failed); });
    check_thrown([&] { failed.data<float>(); });
    check_thrown([&] { std::ostringstream() << failed; });
    check_thrown([&] { sum(failed, s.stream).item<float>(); });
  }
  check_thrown([&] { slice(beyond(s.stream), {3}, {4}, s.stream).item<float>(); });
  array later = beyond(s.stream);
  async_eval(later);
  check_thrown([&] { eval(later); });
  // Everything was said.
  synchronize(s.stream);
  CHECK(scope.reports().size() == 1);
  CHECK(scope.reports()[0].count == 3);
}

TEST_CASE("in mode throw, what a kernel does wrong and nobody waits for is thrown by synchronize") {
  if (!metal::is_available()) return;
  OwnStream s;
  validation::Scope scope({.checks = "kernels", .mode = validation::Mode::throw_error});
  async_eval(beyond(s.stream));
  CHECK_THROWS_AS(synchronize(s.stream), validation::ValidationError);
  synchronize(s.stream);
}

TEST_CASE("in mode throw, all that is wrong with a dispatch is kept, and the first thrown") {
  if (!metal::is_available()) return;
  OwnStream s;
  auto kernel = fast::metal_kernel("twice", {"x"}, {"out"},
                                   "uint i = thread_position_in_grid.x;\n"
                                   "out[i] = x[i + 1];\n"
                                   "out[i + 1] = 0;\n");
  validation::Scope scope({.checks = "kernels", .mode = validation::Mode::throw_error});
  array out = kernel({ones({16}, float32, s.stream)}, {Shape{16}}, {float32}, {16, 1, 1},
                     {16, 1, 1}, {}, {}, false, s.stream)[0];
  CHECK_THROWS_AS(eval(out), validation::ValidationError);
  CHECK(scope.reports().size() >= 2);
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

TEST_CASE("checked kernels are compiled with no stream locked") {
  if (!metal::is_available()) return;
  struct Compilations : exec::Layer {
    void on_pipeline(const exec::KernelRequest& request, const exec::Pipeline&) override {
      if (request.options().variant != request.target().checked_variant()) return;
      ++all;
      locked += EncoderScope::current() != nullptr;
    }
    int all = 0, locked = 0;
  };
  OwnStream s;
  validation::Scope scope({.checks = "kernels"});
  auto seen = std::make_shared<Compilations>();
  exec::layers::add(seen);
  for (int i = 0; i < 2; ++i) eval(beyond(s.stream));
  exec::layers::remove(seen.get());
  CHECK(seen->all == 1);
  CHECK(seen->locked == 0);
}
