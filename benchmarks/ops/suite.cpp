// `holdfast bench ops`: kernels beside what the machine reaches (machine.cpp), then the frozen list
// of rows beside other frameworks.
#include <holdfast/holdfast.h>

#include "benchmarks/bench.h"
#include "benchmarks/ops/machine.h"
#include "benchmarks/ops/peer_process.h"
#include "benchmarks/ops/rows.h"

namespace holdfast::bench {
namespace {

// Rows whose time is mostly Python's or the clock's are shown, not judged.
constexpr double shortest_judged = 20e-6;

class Comparison {
 public:
  Comparison(Report& report, const Options& options) : report_(report), options_(options) {
    for (const auto& [name, version] : peers_.versions()) {
      labels_[name] = (name == "mlx" ? "MLX " : name == "jax" ? "JAX " : "NumPy ") + version;
    }
    if (peers_.versions().empty()) report.say("no Python with NumPy: nothing to compare with");
  }

  void measure(const OpRow& row) {
    std::vector<array> inputs = make_inputs(row.inputs);
    for (const auto& [name, reason] : peers_.prepare(row.inputs, row.expressions())) {
      report_.say(std::string(row.name) + " in " + name + ": " + reason);
    }
    // Each is judged by its best.
    auto [own, others] =
        peers_.run_beside(options_.quick ? 0.03 : 0.2, [&] { eval(row.run(inputs)); });
    for (const char* name : {"mlx", "jax", "numpy"}) {
      if (others.count(name)) compare(row, own, name, others[name]);
    }
    if (others.empty()) report_.add({.name = row.name, .value = best(own) * 1e6, .unit = "µs"});
  }

  void summarise() {
    auto add = [&](const char* name, const GeometricMean& means, std::optional<Bar> bar,
                   const std::string& peer) {
      if (means.count == 0) return;
      report_.add({.name = name,
                   .value = means.mean(),
                   .unit = "×",
                   .reference = labels_[peer],
                   .ratio = means.mean(),
                   .bar = bar,
                   .note = means.note()});
    };
    if (all_mlx_.count > 0) {
      report_.add({.name = "lowest, rows above 20 µs",
                   .value = lowest_,
                   .unit = "×",
                   .reference = labels_["mlx"],
                   .ratio = lowest_,
                   .bar = ratio_at_least(0.95),
                   .note = lowest_name_});
    }
    add("mean, not BLAS or LAPACK", plain_mlx_, ratio_at_least(10), "mlx");
    add("mean over all", all_mlx_, ratio_at_least(3), "mlx");
    add("mean over all", all_jax_, ratio_at_least(1), "jax");
    add("mean over all", all_numpy_, {}, "numpy");
  }

 private:
  static double best(const std::vector<double>& seconds) {
    return *std::min_element(seconds.begin(), seconds.end());
  }

  void compare(const OpRow& row, const std::vector<double>& own, const std::string& peer,
               const std::vector<double>& other) {
    double ratio = best(other) / best(own);
    std::optional<Bar> bar;
    if (peer == "mlx") {
      all_mlx_.add(ratio);
      if (row.kind == OpKind::plain) plain_mlx_.add(ratio);
      if (std::max(best(own), best(other)) > shortest_judged) {
        bar = ratio_at_least(0.95);
        if (ratio < lowest_) {
          lowest_ = ratio;
          lowest_name_ = row.name;
        }
      }
    } else {
      (peer == "jax" ? all_jax_ : all_numpy_).add(ratio);
    }
    char note[64];
    std::snprintf(note, sizeof(note), "medians %.2f", median(other) / median(own));
    report_.add({.name = row.name,
                 .value = best(own) * 1e6,
                 .unit = "µs",
                 .reference = labels_[peer],
                 .reference_value = best(other) * 1e6,
                 .ratio = ratio,
                 .bar = bar,
                 .note = note});
  }

  Report& report_;
  const Options& options_;
  PeerProcess peers_{"ops/peers.py"};
  std::map<std::string, std::string> labels_;
  GeometricMean plain_mlx_, all_mlx_, all_jax_, all_numpy_;
  double lowest_ = std::numeric_limits<double>::infinity();
  std::string lowest_name_;
};

}  // namespace

void run_ops(Report& report, const Options& options) {
  run_machine_rows(report, options);
  Comparison comparison(report, options);
  for (const OpRow& row : op_rows()) {
    if (options.wants(row.name)) comparison.measure(row);
  }
  comparison.summarise();
}

}  // namespace holdfast::bench
