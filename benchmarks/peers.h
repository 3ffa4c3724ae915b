// Other frameworks, measured in the same run when they are installed (`holdfast bench --peers`).
#pragma once

#include <optional>
#include <string>

namespace holdfast::bench {

struct PeerOverhead {
  std::string name;
  double chain_ns;       // per op of a 10,000-op chain: build, evaluate, release
  double build_ns;       // per op, build and destroy only
  double round_trip_ns;  // one add, evaluated and waited for
};

// Runs peers/mlx_overhead.py of this source tree with python3. Nothing when the script, Python or
// the package is missing.
std::optional<PeerOverhead> measure_mlx_overhead();

}  // namespace holdfast::bench
