// Weights to a safetensors file and back, npy beside it.
#include <unistd.h>

#include <filesystem>

#include "mlx/io.h"
#include "mlx/mlx.h"

#include "check.h"

using namespace mlx::core;

int main() {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("compat-io-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::unordered_map<std::string, array> weights{
      {"layers.0.weight", random::normal({8, 4}, bfloat16)},
      {"layers.0.bias", zeros({8})},
      {"step", array(17)},
  };
  save_safetensors((folder / "weights").string(), weights, {{"format", "mlx"}});
  auto [loaded, metadata] = load_safetensors((folder / "weights.safetensors").string());
  CHECK(loaded.size() == weights.size());
  CHECK(metadata.at("format") == "mlx");
  for (auto& [name, a] : weights) CHECK(array_equal(loaded.at(name), a).item<bool>());

  save((folder / "a.npy").string(), weights.at("layers.0.weight"));
  CHECK(array_equal(load((folder / "a.npy").string()), weights.at("layers.0.weight")).item<bool>());
  try {
    load((folder / "missing.npy").string());
    CHECK(false);
  } catch (const std::runtime_error&) {
  }
  std::filesystem::remove_all(folder);
}
