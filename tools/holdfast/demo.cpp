// `holdfast demo`: the library in five seconds. Every line it prints is measured or checked in this
// run; when a check fails, the demonstration says so and exits with 1.
#include <holdfast/holdfast.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/decode.h"
#include "benchmarks/machine_info.h"
#include "tools/holdfast/commands.h"
#include "tools/holdfast/demo.h"

namespace holdfast::tool {
namespace {

constexpr int sequences = 32;
constexpr int tokens_each = 24;
constexpr bench::DecodeSizes sizes{64, 4, 32, 256};

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

bool same_bits(const array& a, const array& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

// --- lazy and fused ---------------------------------------------------------------------

void show_fusion(Verdict& verdict) {
  heading("A lazy graph, fused when it is evaluated");
  array a = random::normal({4 << 20}, random::key(1));
  array b = random::normal({4 << 20}, random::key(2));
  eval(a, b);
  auto build = [&] { return exp(a * b + a) * sigmoid(a) - tanh(b); };
  array lazy = build();
  std::printf("  y = exp(a*b + a) * sigmoid(a) - tanh(b)   4M floats, 7 ops\n");
  std::printf("  nothing computed yet   %s\n", verdict.of(lazy.status() == array::unscheduled));
  eval(lazy);
  // The median of a few, each into memory that the one before has left.
  auto run = [&] { eval(build()); };
  double fused = bench::sample(0.2, run).median();
  double separate;
  array alone = build();
  {
    FusionScope off(false);
    eval(alone);
    separate = bench::sample(0.2, run).median();
  }
  std::printf("  one pass over the data %7.2f ms\n", fused * 1e3);
  std::printf("  one pass for each op   %7.2f ms\n", separate * 1e3);
  std::printf("  the same bits          %s\n", verdict.of(same_bits(lazy, alone)));
}

// --- threads ----------------------------------------------------------------------------

struct Decoded {
  std::vector<uint32_t> tokens;
  std::vector<array> last;  // the last token's scores
};

Decoded decode(const bench::DecodeModel& model, int sequence) {
  Decoded result;
  bench::DecodeState state = bench::make_decode_state(model);
  array words = transpose(model.embedding);
  auto token = static_cast<uint32_t>(sequence * 7 % sizes.vocabulary);
  for (int i = 0; i < tokens_each; ++i) {
    int row = static_cast<int>(token);
    array x = slice(model.embedding, {row, 0}, {row + 1, sizes.width});
    x = bench::decode_step(model, state, std::move(x), [](array&) {});
    array scores = matmul(x, words);
    async_eval(scores);
    // Work whose result is dropped while it may still run: its memory stays until it has.
    async_eval(softmax(scores * 2.0f, 1));
    token = argmax(scores).item<uint32_t>();
    result.tokens.push_back(token);
    if (i == tokens_each - 1) {
      eval(scores);
      result.last.push_back(scores);
    }
  }
  return result;
}

bool same_result(const Decoded& a, const Decoded& b) {
  return a.tokens == b.tokens && same_bits(a.last.at(0), b.last.at(0));
}

void show_threads(Verdict& verdict) {
  heading("Many threads that decode at once");
  bench::DecodeModel model = bench::make_decode_model(sizes, 42);
  std::printf("  a transformer of %d layers, %d wide, one copy of its weights, %d sequences\n",
              sizes.layers, sizes.width, sequences);
  std::vector<Decoded> alone(sequences), together(sequences);
  double one_by_one = bench::seconds_of([&] {
    for (int i = 0; i < sequences; ++i) alone[static_cast<size_t>(i)] = decode(model, i);
  });
  std::vector<std::exception_ptr> errors(sequences);
  reset_peak_memory();
  double at_once = bench::seconds_of([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < sequences; ++i) {
      threads.emplace_back([&, i] {
        auto index = static_cast<size_t>(i);
        try {
          together[index] = decode(model, i);
        } catch (...) {
          errors[index] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  int equal = 0;
  for (size_t i = 0; i < sequences; ++i) equal += same_result(alone[i], together[i]);
  constexpr int tokens = sequences * tokens_each;
  std::printf("  one after the other    %7.0f tokens/s\n", tokens / one_by_one);
  std::printf("  %d threads at once     %7.0f tokens/s, %d results started and dropped unread\n",
              sequences, tokens / at_once, tokens);
  std::printf("  bit for bit the same   %s (%d of %d sequences)\n", verdict.of(equal == sequences),
              equal, sequences);
  std::printf(
      "  memory                 %.1f MiB now, %.1f MiB at the peak, %.1f MiB kept for reuse\n",
      mebibytes(get_active_memory()), mebibytes(get_peak_memory()), mebibytes(get_cache_memory()));
}

// --- errors -----------------------------------------------------------------------------

template <class Work>
void show_error(Verdict& verdict, const char* what, Work&& work) {
  try {
    work();
    std::printf("  %s: nothing was thrown (%s)\n", what, verdict.of(false));
  } catch (const std::exception& error) {
    std::printf("  %-22s %s\n", what, error.what());
  }
}

void show_errors(Verdict& verdict) {
  heading("Errors are exceptions that name the op");
  array table = ones({4, 8});
  show_error(verdict, "while building", [&] { matmul(table, table); });
  if (metal::is_available()) {
    show_error(verdict, "in a kernel", [&] {
      auto kernel = fast::metal_kernel("swish", {"x"}, {"y"},
                                       "uint i = thread_position_in_grid.x;\n"
                                       "y[i] = x[i] * sigmoid(x[i]);");
      eval(kernel({table}, {{4, 8}}, {float32}, {32, 1, 1}, {32, 1, 1}, {}, {}, false, {})[0]);
    });
  }
  show_error(verdict, "while running", [&] {
    label::Scope scope("decoder/layer 3");
    eval(take(table, array({1, 9}), 0) * 2.0f);
  });
  array after = sum(table);
  bool goes_on = after.item<float>() == 32.0f;
  std::printf("  the queue goes on      %s (sum of 4 x 8 ones: %g)\n", verdict.of(goes_on),
              static_cast<double>(after.item<float>()));
}

}  // namespace

int run_demo(Arguments arguments) {
  std::string report;
  if (arguments.size() == 2 && arguments[0] == "--report") {
    report = arguments[1];
  } else if (!arguments.empty()) {
    throw UsageError("unexpected argument \"" + arguments[0] + "\"");
  }
  bench::MachineInfo machine = bench::machine_info();
  std::printf("Holdfast %s on %s: %d threads, %s kernels\n", HOLDFAST_VERSION,
              machine.processor.c_str(), machine.library_threads, machine.kernels);
  Verdict verdict;
  show_fusion(verdict);
  show_kernels(verdict);
  show_threads(verdict);
  show_errors(verdict);
  show_capture(verdict, report);
  heading("Next");
  std::printf(
      "  ./run kernel --help    check, run and time a .metal file of yours\n"
      "  ./run bench --quick    measure this machine and the library on it, in under a minute\n"
      "  ./run help             what else the command can do\n"
      "  README.md              a first program of 15 lines\n");
  if (!verdict.all_good()) std::printf("\nA check above says NO: this is a bug.\n");
  return verdict.all_good() ? 0 : 1;
}

}  // namespace holdfast::tool
