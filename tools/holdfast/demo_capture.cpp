// The last scene of `holdfast demo`: three streams that decode are captured, replayed and shown on
// a page.
#include <holdfast/holdfast.h>

#include <unistd.h>

#include <filesystem>
#include <thread>

#include "benchmarks/decode.h"
#include "capture/replay.h"
#include "tools/holdfast/demo.h"
#include "tools/holdfast/trace_command.h"

namespace holdfast::tool {
namespace {

constexpr int streams = 3;
constexpr int tokens_each = 3;
constexpr int passes = 5;

array twice(const array& x) {
  if (!metal::is_available()) return x + x;
  static auto kernel = fast::metal_kernel("twice", {"x"}, {"y"},
                                          "uint i = thread_position_in_grid.x;\n"
                                          "y[i] = x[i] + x[i];");
  int count = static_cast<int>(x.size());
  return kernel({x}, {x.shape()}, {x.dtype()}, {count, 1, 1}, {32, 1, 1}, {}, {}, false, {})[0];
}

void decode_on_streams() {
  bench::DecodeModel model = bench::make_decode_model({64, 2, 16, 64}, 42);
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(streams);
  for (int i = 0; i < streams; ++i) {
    threads.emplace_back([&, i] {
      try {
        set_default_stream(new_stream(Device::cpu));
        label::Scope scope("sequence " + std::to_string(i));
        bench::DecodeState state = bench::make_decode_state(model);
        array x = slice(model.embedding, {i, 0}, {i + 1, 64});
        for (int token = 0; token < tokens_each; ++token) {
          x = bench::decode_step(model, state, twice(x), [](array&) {});
          eval(x);
        }
      } catch (...) {
        errors[static_cast<size_t>(i)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

void show_capture(Verdict& verdict, const std::string& report) {
  heading("A capture, replayed");
  std::filesystem::path path = report.empty()
                                   ? std::filesystem::temp_directory_path() /
                                         ("holdfast-demo-" + std::to_string(::getpid()) + ".hfcap")
                                   : std::filesystem::path(report).replace_extension(".hfcap");
  memory::Scope limits({.memory = {}, .cache = {}, .wired = size_t{4} << 20});
  metal::start_capture(path.string());
  decode_on_streams();
  metal::stop_capture();
  {
    capture::Capture capture(path.string());
    std::printf("  recorded               %lld commands on %zu streams, %.0f KiB of file\n",
                static_cast<long long>(capture.commands), capture.queues.size(),
                static_cast<double>(capture.file_bytes) / 1024);
    capture::ReplayOptions options;
    options.passes = passes;
    capture::ReplayResult result = capture::replay(capture, options);
    bool is_same = result.differences.empty() && result.checked > 0;
    std::printf("  bit for bit the same   %s (%d passes, %lld digests)\n", verdict.of(is_same),
                passes, static_cast<long long>(result.checked));
    if (!report.empty()) {
      write_text_file(report, report_html(capture));
      std::printf("  all of it as a page    %s\n", report.c_str());
    }
  }
  if (report.empty()) std::filesystem::remove(path);
}

}  // namespace holdfast::tool
