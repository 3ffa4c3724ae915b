#include "benchmarks/peers.h"

#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

namespace holdfast::bench {
namespace {

// The standard output of a command; empty when it failed.
std::string output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return {};
  std::string text;
  char part[4096];
  while (size_t count = std::fread(part, 1, sizeof(part), pipe)) text.append(part, count);
  return pclose(pipe) == 0 ? text : std::string();
}

// In single quotes, for the shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::optional<PeerOverhead> measure_mlx_overhead() {
  auto script = std::filesystem::path(HOLDFAST_BENCHMARKS) / "peers" / "mlx_overhead.py";
  if (!std::filesystem::exists(script)) return {};
  std::string text = output_of("python3 " + quoted(script.string()) + " 2>/dev/null");
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return {};
  return PeerOverhead{"MLX " + json.value("version", "") + ", Python, this run",
                      json.value("chain_ns", 0.0), json.value("build_ns", 0.0),
                      json.value("round_trip_ns", 0.0)};
}

}  // namespace holdfast::bench
