// Files beside MLX: what it wrote is read here, what we wrote is read there. Skipped where mlx is
// not installed.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "registry/registry.h"

using namespace holdfast;

namespace {

using Arrays = std::unordered_map<std::string, array>;

int run_script(const std::string& mode, const std::filesystem::path& folder) {
  std::string command = "python3 " HOLDFAST_PEERS_FILES " " + mode + " " + folder.string();
  return WEXITSTATUS(std::system(command.c_str()));
}

void check_same(const std::string& what, const Arrays& got, const Arrays& expected) {
  CHECK_MESSAGE(got.size() == expected.size(), what);
  for (const auto& [name, value] : expected) {
    auto found = got.find(name);
    REQUIRE_MESSAGE(found != got.end(), what << " has no " << name);
    std::string difference = registry::difference(found->second, value, 0);
    CHECK_MESSAGE(difference.empty(), what << ": " << name << ": " << difference);
  }
}

}  // namespace

TEST_CASE("MLX and we read each other's files") {
  auto folder =
      std::filesystem::temp_directory_path() / ("holdfast-peer-files-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  int status = run_script("write", folder);
  if (status == 77) {
    MESSAGE("skipped: mlx is not installed");
  } else {
    REQUIRE(status == 0);
    auto path = [&](const std::string& name) { return (folder / name).string(); };
    auto [tensors, metadata] = load_safetensors(path("theirs.safetensors"));
    CHECK(tensors.size() == 39);
    CHECK(metadata.at("made by") == "a test");
    Arrays plain;
    for (const auto& [name, value] : tensors) {
      if (value.dtype() != bfloat16) plain.emplace(name, load(path("theirs-" + name + ".npy")));
    }
    Arrays few = tensors;
    std::erase_if(few, [](const auto& item) { return item.second.dtype() == bfloat16; });
    check_same("safetensors", few, plain);
    check_same("npz", load_npz(path("theirs.npz")), plain);
    check_same("compressed npz", load_npz(path("theirs-small.npz")), plain);
    auto [from_gguf, about] = load_gguf(path("theirs.gguf"));
    CHECK(from_gguf.size() == 10);
    CHECK(std::get<std::string>(about.at("general.name")) == "a test");

    for (const auto& [name, value] : plain) save(path("ours-" + name + ".npy"), value);
    save_safetensors(path("ours.safetensors"), tensors, metadata);
    save_gguf(path("ours.gguf"), from_gguf, about);
    CHECK(run_script("read", folder) == 0);
  }
  std::filesystem::remove_all(folder);
}
