// Every kernel of the back-end reaches PTX, and what NVIDIA's assembler makes of it is as the table
// ptx_properties.txt says: no local memory, no spills, no more registers, no fewer wide accesses.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "devices/cpu/jit/compiler.h"
#include "devices/cuda/assembler.h"
#include "devices/cuda/compiled_kernel.h"
#include "kernels/metal/entries.h"
#include "support/threads.h"

using namespace holdfast;

namespace {

constexpr uint32_t assembled_for = 90;
const std::string table_path = HOLDFAST_SOURCE_DIRECTORY "/tests/metal/ptx_properties.txt";
const std::string renew =
    "HOLDFAST_RENEW_PTX_PROPERTIES=1 build/release/bin/test-metal "
    "--test-case='*assembler*'";

// What a GPU of this architecture gets: the PTX of each way to launch the kernel, the preferred one
// first. Nothing: there is no image.
std::optional<cuda::CompiledKernel> image_of(const char* source, const std::string& entry,
                                             uint32_t target) {
  exec::KernelImages& images = kernels::metal::images_of(source);
  std::string_view image = images.find(cuda::image_name(target), entry);
  if (image.empty()) image = images.find(cuda::image_name(80), entry);
  return cuda::CompiledKernel::from_bytes(image);
}

struct Properties {
  uint32_t registers = 0;
  uint32_t local_bytes = 0;         // stack and spills
  uint32_t wide = 0, accesses = 0;  // of device memory: those of 16 bytes, and all

  bool operator==(const Properties&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Properties& p) {
  return out << p.registers << ' ' << p.local_bytes << ' ' << p.wide << ' ' << p.accesses;
}
std::istream& operator>>(std::istream& in, Properties& p) {
  return in >> p.registers >> p.local_bytes >> p.wide >> p.accesses;
}

void count_accesses(const std::string& ptx, Properties& out) {
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);) {
    const bool is_access =
        line.find("ld.global") != line.npos || line.find("st.global") != line.npos;
    if (!is_access) continue;
    ++out.accesses;
    for (const char* wide : {".v4.b32", ".v4.u32", ".v4.s32", ".v4.f32", ".v2.b64", ".v2.u64",
                             ".v2.s64", ".v2.f64", ".v8.b16"}) {
      if (line.find(wide) != line.npos) {
        ++out.wide;
        break;
      }
    }
  }
}

// By what the assembler got: it takes a tenth of a second for each kernel.
class AssembledBefore {
 public:
  AssembledBefore() {
    const char* folder = std::getenv("HOLDFAST_CACHE_DIR");
    path_ = folder ? std::string(folder) + "/assembled-kernels" : "";
    std::ifstream file(path_);
    std::string key;
    for (Properties p; file >> key >> p;) known_[key] = p;
  }
  ~AssembledBefore() {
    if (path_.empty()) return;
    std::ofstream file(path_);
    for (const auto& [key, p] : used_) file << key << ' ' << p << '\n';
  }
  AssembledBefore(const AssembledBefore&) = delete;
  AssembledBefore& operator=(const AssembledBefore&) = delete;

  Properties assemble(const std::string& assembler, const std::string& ptx) {
    const std::string key = to_hex(hash_bytes(assembler + std::to_string(assembled_for) + ptx));
    {
      std::lock_guard lock(mutex_);
      auto found = known_.find(key);
      if (found != known_.end()) return used_[key] = found->second;
    }
    const cuda::AssembledKernel code = cuda::assemble(assembler, ptx, assembled_for);
    Properties p;
    p.registers = code.registers;
    p.local_bytes = code.stack_bytes + code.spill_store_bytes + code.spill_load_bytes;
    count_accesses(ptx, p);
    std::lock_guard lock(mutex_);
    return used_[key] = p;
  }

 private:
  std::string path_;
  std::mutex mutex_;
  std::map<std::string, Properties> known_, used_;  // used_: guarded by mutex_
};

using Table = std::map<std::string, Properties>;

Table stored_table() {
  Table table;
  std::ifstream file(table_path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string entry;
    Properties p;
    if (!line.starts_with("#") && words >> entry >> p) table[entry] = p;
  }
  return table;
}

void store(const Table& table) {
  std::ofstream file(table_path);
  file << "# Kernels for sm_" << assembled_for
       << ", by name: registers, bytes of local memory, accesses of device memory of 16 bytes, all "
          "of them.\n# Made by "
       << renew << "\n";
  for (const auto& [entry, p] : table) file << entry << ' ' << p << '\n';
}

// Assembling takes a while: every tenth kernel, in the long suite all.
Table assembled(const std::string& assembler, bool all) {
  struct Work {
    const char* source;
    std::string entry;
  };
  std::vector<Work> work;
  size_t number = 0;
  for (const kernels::metal::EmbeddedSource& file : kernels::metal::embedded_sources()) {
    const std::string image = cuda::image_name(80);
    for (std::string& entry : kernels::metal::images_of(file.name).entries(image)) {
      if (number++ % 10 == 0 || all) work.push_back({file.name, std::move(entry)});
    }
  }
  Table table;
  AssembledBefore before;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  testing::on_threads(
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), [&](int) {
        for (size_t i; (i = next++) < work.size();) {
          const auto kernel = image_of(work[i].source, work[i].entry, assembled_for);
          const Properties p = before.assemble(assembler, kernel.value().images.front().code);
          std::lock_guard lock(mutex);
          table[work[i].entry] = p;
        }
      });
  return table;
}

}  // namespace

TEST_CASE("the Metal back-end's kernels reach PTX") {
  jit::Compiler& compiler = jit::default_compiler();
  size_t kernels = 0;
  for (const kernels::metal::EmbeddedSource& file : kernels::metal::embedded_sources()) {
    CAPTURE(std::string(file.name));
    REQUIRE(!kernels::metal::images_of(file.name).images().empty());
    msl::KernelSource source;
    source.text = file.text;
    source.kernel = file.name;
    const auto parsed = compiler.parse(source);
    for (const msl::KernelInterface& interface : parsed->kernels()) {
      if (!interface.assumed_constants.empty()) continue;
      CAPTURE(interface.entry);
      for (uint32_t target : {80u, 90u}) {
        const auto kernel = image_of(file.name, interface.entry, target);
        REQUIRE(kernel.has_value());
        CHECK(kernel->interface.arguments.size() == interface.arguments.size());
        CHECK(kernel->images.size() == 2);
        for (const cuda::KernelImage& image : kernel->images)
          CHECK(image.code.find(".entry " + image.symbol) != std::string::npos);
      }
      ++kernels;
    }
  }
  CHECK(kernels > 30);
}

TEST_CASE("the assembler makes of the Metal back-end's kernels what the table says") {
  const std::string assembler = cuda::find_assembler();
  if (assembler.empty()) {
    MESSAGE("there is no ptxas");
    return;
  }
  const bool renews = std::getenv("HOLDFAST_RENEW_PTX_PROPERTIES") != nullptr;
  const bool all = renews || std::getenv("HOLDFAST_TEST_LONG") != nullptr;
  const Table table = assembled(assembler, all);
  if (renews) store(table);
  const Table stored = stored_table();
  const std::string what_to_do = ": " + renew + " renews tests/metal/ptx_properties.txt";
  for (const auto& [entry, p] : table) {
    CAPTURE(entry);
    auto found = stored.find(entry);
    if (found == stored.end()) {
      FAIL_CHECK(entry << " is not in the table" << what_to_do);
      continue;
    }
    const Properties& before = found->second;
    // Versions of the assembler differ by a few registers.
    const uint32_t most_registers = before.registers + std::max(8u, before.registers / 8);
    CHECK_MESSAGE(p.registers <= most_registers,
                  entry << " takes " << p.registers << " registers" << what_to_do);
    CHECK_MESSAGE(p.local_bytes <= before.local_bytes,
                  entry << " takes " << p.local_bytes << " bytes of local memory" << what_to_do);
    CHECK_MESSAGE(p.wide >= before.wide,
                  entry << " makes " << p.wide << " wide accesses" << what_to_do);
  }
  for (const auto& row : stored)
    if (all) CHECK_MESSAGE(table.contains(row.first), row.first << " is gone" << what_to_do);
}
