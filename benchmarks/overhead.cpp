// The cost of an op beside its arithmetic: chains of 10,000 ops on one element, and one add.
#include <holdfast/holdfast.h>

#include "benchmarks/bench.h"
#include "benchmarks/peers.h"

namespace holdfast::bench {
namespace {

constexpr int chain_length = 10'000;

// The least that an op of a user can be: one command that writes one element.
class Halve final : public UnaryPrimitive {
 public:
  using UnaryPrimitive::UnaryPrimitive;
  void eval_cpu(const std::vector<array>& inputs, array& output) override {
    encode(inputs[0], output);
  }
  void eval_gpu(const std::vector<array>& inputs, array& output) override {
    encode(inputs[0], output);
  }
  const char* name() const override { return "Halve"; }

 private:
  void encode(const array& input, array& output) {
    Encoder& encoder = Encoder::of(stream());
    encoder.allocate(output);
    encoder.input(input);
    encoder.output(output);
    const float* from = input.data<float>();
    float* to = output.data<float>();
    encoder.native("Halve", 1, 8, [from, to](int64_t, int64_t) { *to = *from / 2; });
  }
};

template <class Step>
array build_chain(const array& start, Step&& step) {
  array x = start;
  for (int i = 0; i < chain_length; ++i) x = step(x);
  return x;
}

std::string best_note(const Samples& samples, double per, const char* unit) {
  char text[96];
  std::snprintf(text, sizeof(text), "best %.0f %s of %zu runs", samples.best() / per * 1e9, unit,
                samples.seconds.size());
  return text;
}

}  // namespace

void run_overhead(Report& report, const Options& options) {
  // Recorded in MLX 0.32.2 on a machine with 2 cores; measured anew with --peers.
  PeerOverhead peer{"MLX 0.32.2, recorded", 2000, 295, 12'000};
  if (options.peers) {
    if (auto measured = measure_mlx_overhead()) {
      peer = *measured;
    } else {
      report.say("MLX's Python package could not be run: its recorded numbers are shown");
    }
  }
  double budget = options.seconds() / 2;

  // The peer's chain is of x * y, whatever ours is of.
  auto chain = [&](const char* name, const array& start, auto&& step) {
    Samples samples = sample(budget, [&] { eval(build_chain(start, step)); });
    report.add({.name = name,
                .value = samples.median() / chain_length * 1e9,
                .unit = "ns/op",
                .reference = peer.name + " (x * y)",
                .reference_value = peer.chain_ns,
                .bar = value_at_most(1000),
                .note = best_note(samples, chain_length, "ns/op")});
  };
  array one({1.0f}), factor({0.5f});
  eval(one, factor);
  auto times = [&](const array& x) { return x * factor; };
  chain("chain of x * y, fused", one, times);
  {
    FusionScope off(false);
    chain("chain of x * y, not fused", one, times);
  }
  chain("chain of sums (cannot fuse)", one, [](const array& x) { return sum(x, 0, true); });
  chain("chain of softmax (cannot fuse)", one, [](const array& x) { return softmax(x, 0); });
  Stream stream = default_stream(default_device());
  chain("chain of a user's primitive", one, [&](const array& x) {
    return array(x.shape(), x.dtype(), std::make_shared<Halve>(stream), {x});
  });

  Samples build = sample(budget, [&] { build_chain(one, times); });
  report.add({.name = "build and destroy, no evaluation",
              .value = build.median() / chain_length * 1e9,
              .unit = "ns/op",
              .reference = peer.name,
              .reference_value = peer.build_ns,
              .bar = value_at_most(150),
              .note = best_note(build, chain_length, "ns/op")});

  Samples round_trip = sample(budget, [&] { eval(one + factor); });
  report.add({.name = "add + eval + wait",
              .value = round_trip.median() * 1e9,
              .unit = "ns",
              .reference = peer.name,
              .reference_value = peer.round_trip_ns,
              .bar = value_at_most(5000),
              .note = best_note(round_trip, 1, "ns")});
}

}  // namespace holdfast::bench
