// Every op beside MLX: make_cases.py writes what the installed `mlx` package (CPU) gives for the
// samples of the registry, and here ours must give the same, up to rounding. Skipped where mlx is
// not installed. Deliberate differences stand in differences.h, with reasons.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "registry/differences.h"
#include "registry/registry.h"

using namespace holdfast;

namespace {

struct Case {
  std::string name, dtype, sample;
  std::vector<array> inputs, outputs;
  std::string raises;  // the kind of exception that MLX throws, or empty
};

array array_of(std::istringstream& line) {
  std::string dtype_text, shape_text, hex;
  line >> dtype_text >> shape_text >> hex;
  registry::Call parse({}, {{"dtype", dtype_text}, {"shape", shape_text}});
  array result = zeros(parse.shape("shape"), parse.dtype("dtype"));
  result.eval();
  if (hex == "-") return result;
  REQUIRE(hex.size() == 2 * result.nbytes());
  char* bytes = result.data<char>();
  for (size_t i = 0; i < result.nbytes(); ++i) {
    bytes[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return result;
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::vector<Case> cases;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string label;
    line >> label;
    if (label == "case") {
      Case next;
      line >> next.name >> next.dtype;
      next.sample = text.substr(text.find("| ") + 2);
      cases.push_back(std::move(next));
    } else if (label == "input") {
      cases.back().inputs.push_back(array_of(line));
    } else if (label == "raises") {
      line >> cases.back().raises;
    } else {
      cases.back().outputs.push_back(array_of(line));
    }
  }
  return cases;
}

const registry::Row* row_of(const std::string& name) {
  for (const registry::Row& row : registry::rows()) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

std::string kind_of(const std::exception& error) {
  if (dynamic_cast<const std::invalid_argument*>(&error) != nullptr) return "invalid_argument";
  if (dynamic_cast<const std::out_of_range*>(&error) != nullptr) return "out_of_range";
  return "runtime_error";
}

std::string difference_of(const Case& peer, double factor) {
  const registry::Row* row = row_of(peer.name);
  if (row == nullptr) return "no such row";
  registry::Row one = *row;
  one.samples = peer.sample.c_str();
  registry::Results got;
  try {
    got = row->run(registry::Call(peer.inputs, registry::samples_of(one).at(0).arguments));
    eval(got);
  } catch (const std::exception& error) {
    // What MLX finds when it runs, as "not implemented", we may say earlier and more exactly.
    if (peer.raises == "runtime_error" || peer.raises == kind_of(error)) return "";
    return "threw " + kind_of(error) + " (" + error.what() + ")" +
           (peer.raises.empty() ? "" : " instead of " + peer.raises);
  }
  if (!peer.raises.empty()) {
    // MLX's kernels are not there for each dtype; ours may be.
    return peer.raises == "runtime_error" ? "" : "gave a result instead of " + peer.raises;
  }
  if (got.size() != peer.outputs.size()) return "another number of results";
  for (size_t i = 0; i < got.size(); ++i) {
    std::string difference = registry::difference(got[i], peer.outputs[i], factor);
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace

TEST_CASE("every op gives what MLX gives") {
  auto path =
      std::filesystem::temp_directory_path() / ("holdfast-peer-cases-" + std::to_string(getpid()));
  // HOLDFAST_PEERS_ONLY="sort topk" looks at some ops only.
  const char* only = std::getenv("HOLDFAST_PEERS_ONLY");
  auto rows = path;
  rows += "-rows";
  {
    std::ofstream file(rows);
    uint64_t seed = 0;
    for (const registry::Row& row : registry::rows()) {
      file << row.name << '\t' << row.samples;
      // No new empty inputs: of some ops of no elements MLX does not return.
      for (const registry::Sample& sample : registry::samples_of(row)) {
        file << "; " << registry::resized(sample, ++seed, false).text;
      }
      file << '\n';
    }
  }
  std::string command = "python3 " HOLDFAST_PEERS_SCRIPT " " + rows.string() + " " + path.string();
  if (only != nullptr) command += std::string(" ") + only;
  int status = std::system(command.c_str());
  if (WEXITSTATUS(status) == 77) {
    MESSAGE("skipped: mlx is not installed");
  } else {
    CHECK(status == 0);
    std::set<std::string> explained;
    size_t count = 0, refused = 0;
    for (const Case& peer : read_cases(path)) {
      ++count;
      if (!peer.raises.empty()) ++refused;
      const registry::Difference* known =
          registry::find_difference(peer.name, peer.dtype, peer.sample);
      std::string difference = difference_of(peer, known != nullptr ? known->factor : 1);
      if (known != nullptr && known->factor == 0) {
        if (!difference.empty()) explained.insert(known->reason);
        continue;
      }
      CHECK_MESSAGE(difference.empty(),
                    peer.name << " of " << peer.dtype << ", " << peer.sample << ": " << difference);
    }
    MESSAGE(count << " cases compared with MLX, " << refused << " of which it refuses; "
                  << explained.size() << " deliberate differences met");
    CHECK(count > 0);
  }
  std::filesystem::remove(path);
  std::filesystem::remove(rows);
}
