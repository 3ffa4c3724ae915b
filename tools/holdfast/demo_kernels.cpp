// The scene that used to go wrong: one kernel name with several dtypes and weights in one lazy
// graph, from many threads at once, results dropped while they are in flight.
#include <holdfast/holdfast.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/layer_kernel.h"
#include "tools/holdfast/demo.h"

namespace holdfast::tool {
namespace {

constexpr int sequences = 32;
constexpr bench::LayerStackSizes sizes{128, 12, 4};

// What a sequence decoded: its tokens, and the state after the last one.
struct Decoded {
  std::vector<uint32_t> tokens;
  std::vector<float> state;
  bool operator==(const Decoded&) const = default;
};

uint32_t first_token(int sequence) { return static_cast<uint32_t>(sequence * 5 % sizes.width); }

Decoded decode(const bench::LayerStack& stack, const array& words, int sequence, int tokens_each) {
  Decoded result;
  uint32_t token = first_token(sequence);
  array half(0.5f);
  array state = zeros({sizes.width});
  for (int i = 0; i < tokens_each; ++i) {
    int row = static_cast<int>(token);
    array word = squeeze(slice(words, {row, 0}, {row + 1, sizes.width}), 0);
    state = bench::apply_layers(stack, state * half + word);
    async_eval(state);
    // Work whose result is dropped while it may still run: what it uses stays until it has.
    async_eval(bench::apply_layers(stack, state));
    token = argmax(state).item<uint32_t>();
    result.tokens.push_back(token);
  }
  eval(state);
  result.state.assign(state.data<float>(), state.data<float>() + sizes.width);
  return result;
}

Decoded decode_plainly(const bench::LayerStack& stack, const array& words, int sequence,
                       int tokens_each) {
  Decoded result;
  uint32_t token = first_token(sequence);
  result.state.assign(static_cast<size_t>(sizes.width), 0.0f);
  for (int i = 0; i < tokens_each; ++i) {
    const float* word = words.data<float>() + static_cast<int64_t>(token) * sizes.width;
    for (size_t c = 0; c < result.state.size(); ++c) {
      result.state[c] = result.state[c] * 0.5f + word[c];
    }
    bench::apply_layers_plainly(stack, result.state);
    token = static_cast<uint32_t>(std::max_element(result.state.begin(), result.state.end()) -
                                  result.state.begin());
    result.tokens.push_back(token);
  }
  return result;
}

// Runs `work(i)` for each sequence, each on a thread of its own; rethrows what one threw.
template <class Work>
void for_each_sequence(Work&& work) {
  std::vector<std::exception_ptr> errors(sequences);
  std::vector<std::thread> threads;
  for (int i = 0; i < sequences; ++i) {
    threads.emplace_back([&, i] {
      try {
        work(i);
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

void print_first_use(const KernelCacheStats& stats) {
  if (stats.compiles > 0) {
    std::printf("  first use              %llu kernels compiled in %.0f ms, kept on disk\n",
                static_cast<unsigned long long>(stats.compiles), stats.compile_milliseconds);
  } else {
    std::printf(
        "  first use              %llu kernels from the disk cache in %.1f ms, no compiler\n",
        static_cast<unsigned long long>(stats.disk_hits), stats.disk_milliseconds);
  }
}

// Two bodies with one name, in one command list.
bool same_name_twice() {
  auto make = [](const char* factor) {
    return fast::metal_kernel(
        "scale", {"x"}, {"y"},
        std::string("uint i = thread_position_in_grid.x; y[i] = x[i] * ") + factor + ";");
  };
  array x = arange(64, float32);
  auto run = [&](const fast::CustomKernelFunction& kernel) {
    return kernel({x}, {{64}}, {float32}, {64, 1, 1}, {32, 1, 1}, {}, {}, false, {})[0];
  };
  array two = run(make("2")), three = run(make("3"));
  array good = all(logical_and(equal(two, x * 2.0f), equal(three, x * 3.0f)));
  return good.item<bool>();
}

}  // namespace

void show_kernels(Verdict& verdict) {
  heading("Custom Metal kernels: one name, several dtypes, many threads");
  if (!metal::is_available()) {
    std::printf("  this build has no kernel compiler (configure it with clang and LLVM 19)\n");
    return;
  }
  std::printf(
      "  `%s` in the Metal Shading Language: layer norm and matrix-vector product, 2 barriers\n"
      "  %d layers of %d, in turn float32, float16, bfloat16; weights are views of 3 buffers\n",
      bench::layer_kernel_name, sizes.layers, sizes.width);
  bench::LayerStack stack = bench::make_layer_stack(sizes, 7);
  array words = random::normal({sizes.width, sizes.width}, random::key(3));
  eval(words);
  reset_kernel_cache_stats();
  eval(bench::apply_layers(stack, ones({sizes.width})));
  print_first_use(kernel_cache_stats());

  // As many tokens as take a second or two, two passes each.
  double pass =
      bench::sample(0.1, [&] { eval(bench::apply_layers(stack, ones({sizes.width}))); }).median();
  int tokens_each = std::clamp(static_cast<int>(1.0 / (2 * sequences * pass)), 2, 48);
  std::vector<Decoded> decoded(sequences), plain(sequences);
  reset_kernel_cache_stats();
  double at_once = bench::seconds_of([&] {
    for_each_sequence(
        [&](int i) { decoded[static_cast<size_t>(i)] = decode(stack, words, i, tokens_each); });
  });
  KernelCacheStats stats = kernel_cache_stats();
  for_each_sequence(
      [&](int i) { plain[static_cast<size_t>(i)] = decode_plainly(stack, words, i, tokens_each); });
  int right = 0;
  for (size_t i = 0; i < sequences; ++i) right += decoded[i] == plain[i];
  int tokens = sequences * tokens_each;
  std::printf("  %d threads at once     %7.0f tokens/s, %d results started and dropped unread\n",
              sequences, tokens / at_once, tokens);
  std::printf("  equal to plain C++     %s (%d of %d sequences, bit for bit)\n",
              verdict.of(right == sequences), right, sequences);
  std::printf("  one name, two bodies   %s\n", verdict.of(same_name_twice()));
  std::printf(
      "  kernel cache           %llu hits, %llu misses, %llu evicted; %zu of at most %zu kept\n",
      static_cast<unsigned long long>(stats.hits), static_cast<unsigned long long>(stats.misses),
      static_cast<unsigned long long>(stats.evictions), stats.entries, stats.capacity);
}

}  // namespace holdfast::tool
