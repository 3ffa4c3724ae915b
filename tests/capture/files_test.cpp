// Contents that were loaded from a file: copied, or named by file, range and digest; formats of
// captures that are older.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <holdfast/holdfast.h>

#include "capture/file.h"
#include "capture/programs.h"
#include "exec/file_origins.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// A folder with two arrays in a file.
struct Weights {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("holdfast-files-" + std::to_string(::getpid()));
  std::string path = (folder / "weights.safetensors").string();

  explicit Weights(bool is_npy = false) {
    std::filesystem::create_directories(folder);
    array w = random::normal({256, 256}, float32, 0.0f, 1.0f, random::key(1));
    if (is_npy) {
      path = (folder / "weights.npy").string();
      save(path, w);
    } else {
      save_safetensors(path, {{"w", w}, {"b", full({64}, 0.5f)}});
    }
  }
  ~Weights() { std::filesystem::remove_all(folder); }
  array w() const {
    return path.ends_with(".npy") ? load(path) : load_safetensors(path).first.at("w");
  }
};

constexpr metal::CaptureOptions referring{.contents = true,
                                          .digests = true,
                                          .skip_lists = 0,
                                          .count_lists = -1,
                                          .max_file_bytes = 0,
                                          .reference_files = true};

uint64_t referenced_bytes(const Capture& capture) {
  uint64_t sum = 0;
  for (const auto& [path, bytes] : capture.referenced_files()) sum += bytes;
  return sum;
}

}  // namespace

TEST_CASE("capture: what was loaded from a file is copied, or named by file, range and digest") {
  constexpr uint64_t bytes = 256 * 256 * 4;
  for (bool is_npy : {false, true}) {
    CAPTURE(is_npy);
    Weights weights(is_npy);
    File copied("copied"), referred("referred"), loaded("loaded");
    array w = weights.w();
    eval(w);
    record(copied, [&] { eval(matmul(w, w)); });
    record(referred, [&] { eval(matmul(w, w)); }, referring);
    // Loaded while it is recorded: no op can be run again for it, and its bytes are in the file.
    record(loaded, [&] { eval(sum(weights.w())); }, referring);
    Capture a(copied.path), b(referred.path), c(loaded.path);
    CHECK(a.files.empty());
    CHECK(a.referenced_files().empty());
    CHECK(referenced_bytes(b) == bytes);
    CHECK(referenced_bytes(c) == bytes);
    REQUIRE(b.referenced_files().size() == 1);
    CHECK(b.referenced_files().begin()->first == weights.path);
    CHECK(b.file_bytes + bytes / 2 < a.file_bytes);
    for (const Capture* each : {&a, &b, &c}) {
      CHECK(each->why_not() == "");
      capture::ReplayResult result =
          capture::replay(*each, {.passes = 2, .first = 0, .last = INT64_MAX});
      CHECK(result.checked >= 2);
      CHECK(result.differences.empty());
    }
  }
}

TEST_CASE("capture: a view of a loaded array is the range that it reads") {
  Weights weights;
  File file("view");
  array w = weights.w();
  eval(w);
  array lower = slice(w, {128, 0}, {256, 256});
  eval(lower);
  record(file, [&] { eval(sum(lower * lower)); }, referring);
  Capture read(file.path);
  CHECK(referenced_bytes(read) == 128 * 256 * 4);
  CHECK(capture::replay(read).differences.empty());
  CHECK(file.error() == "");
}

TEST_CASE("capture: what has changed since it was loaded is copied") {
  Weights weights;
  {
    // In memory, by the host.
    File file("written");
    array w = weights.w();
    eval(w);
    w.data<float>()[5] += 1.0f;
    record(file, [&] { eval(sum(w)); }, referring);
    CHECK(Capture(file.path).files.empty());
    CHECK(file.error() == "");
  }
  {
    // In the file.
    File file("replaced");
    array w = weights.w();
    eval(w);
    save_safetensors(weights.path, {{"w", ones({256, 256})}, {"b", ones({64})}});
    record(file, [&] { eval(sum(w)); }, referring);
    CHECK(Capture(file.path).files.empty());
    CHECK(file.error() == "");
  }
}

TEST_CASE("capture: a replay names the file that is missing or has changed") {
  Weights weights;
  File file("missing");
  array w = weights.w();
  eval(w);
  record(file, [&] { eval(sum(w)); }, referring);
  REQUIRE(file.error() == "");
  std::string moved = weights.path + ".moved";
  std::filesystem::rename(weights.path, moved);
  CHECK(contains(file.error(), "\"" + weights.path + "\" is missing, from which bytes "));
  // Beside the capture it is found again.
  std::filesystem::path beside =
      std::filesystem::path(file.path).parent_path() / "weights.safetensors";
  std::filesystem::copy_file(moved, beside, std::filesystem::copy_options::overwrite_existing);
  CHECK(Capture(file.path).find_file(weights.path) == beside.string());
  CHECK(file.error() == "");
  std::filesystem::remove(beside);
  std::filesystem::rename(moved, weights.path);
  CHECK(file.error() == "");
  {
    std::fstream change(weights.path, std::ios::binary | std::ios::in | std::ios::out);
    change.seekp(-5000, std::ios::end);
    change.put('!');
  }
  CHECK(contains(file.error(), "\"" + weights.path + "\" has changed: bytes "));
  std::filesystem::resize_file(weights.path, 1000);
  CHECK(contains(file.error(), "\"" + weights.path + "\" has changed: it has no bytes "));
  file.change("update files set first=-1");
  CHECK(contains(file.error(), "files row 1: it is no range of a file"));
  file.change("delete from files");
  CHECK(contains(file.error(), ": it has no bytes"));
}

TEST_CASE("capture: only contents may be in a file") {
  Weights weights;
  File file("elsewhere");
  array w = weights.w();
  eval(w);
  record(file, [&] { eval(sum(w)); }, referring);
  const std::string row = std::to_string(Capture(file.path).files.begin()->first);
  for (const char* column : {"commands from lists", "times from lists", "events from memory"}) {
    CAPTURE(column);
    File other("other");
    std::filesystem::copy_file(file.path, other.path);
    other.change("create table one as select " + std::string(column) + " limit 1");
    other.change("update blobs set data=null where id=(select * from one)");
    other.change("insert into files select (select * from one),path,0 from files where blob=" +
                 row);
    CHECK(contains(other.error(), ": it has no bytes"));
  }
  for (const char* path : {"weights.safetensors", "", "../weights.safetensors"}) {
    CAPTURE(path);
    file.change("update files set path='" + std::string(path) + "'");
    CHECK(contains(file.error(), "files row 1: it is no range of a file"));
  }
  // The name ends where the system thinks that it does.
  file.change("update files set path=cast('" + weights.path + "' || x'002e' as text)");
  CHECK(contains(file.error(), "files row 1: it is no range of a file"));
}

TEST_CASE("capture: bytes that are named for contents are copied for everything else") {
  Weights weights;
  File file("equal");
  std::string bytes;
  {
    std::ifstream in(weights.path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  int64_t row = 0;
  {
    exec::capture::CaptureFile writer(file.path, 0);
    for (int i = 0; i < 2; ++i) {
      writer.contents(capture::Moment::start, 1, 0, 1, 0, bytes, exec::FileRange{weights.path, 0});
      row = writer.blob(bytes);
    }
  }
  Capture read(file.path);
  CHECK(read.files.size() == 1);
  CHECK(!read.files.contains(row));
}

TEST_CASE("what is known of the files of buffers goes with the buffers") {
  Weights weights;
  exec::FileOrigins& origins = exec::FileOrigins::get();
  for (int i = 0; i < 1000; ++i) eval(weights.w());
  CHECK(origins.size() <= 300);
}

TEST_CASE("capture: function constants of four words, and those of format 1") {
  File file("constants");
  if (metal::is_available()) {
    const std::array<uint64_t, 4> bits{0x400000003f800000, 0x4080000040400000, 0, 0};
    Ref<exec::Pipeline> pipeline = compiled_probe(
        "constant float4 c [[function_constant(3)]]; kernel void probe(device float4* y "
        "[[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = c; }",
        {{3, "c", "float4", bits}});
    record(file, [&] {
      array y = make_op("Probe", default_stream(Device::cpu), {}, {4},
                        [&](Encoder& encoder, const auto&, auto& out) {
                          encoder.allocate(out[0]);
                          KernelBinding bindings[] = {KernelBinding::output(out[0])};
                          encoder.dispatch(*pipeline, bindings, {1}, {1});
                        });
      eval(y);
    });
    Capture read(file.path);
    REQUIRE(read.pipelines.size() == 1);
    const auto& constants = read.pipelines.begin()->second.constants;
    REQUIRE(constants.size() == 1);
    CHECK(constants[0].bits == bits);
    exec::KernelLibrary::get().clear();
    CHECK(capture::replay(read).differences.empty());
  }
  // As format 1 had them.
  {
    exec::capture::CaptureFile writer(file.path, 0);
    ByteWriter out;
    for (const char* text : {"probe", "probe", "the source"}) out.text(text);
    for (int i = 0; i < 3; ++i) out.value(uint8_t{0});
    out.value(uint64_t{1});
    out.value(uint32_t{7});
    out.text("flag");
    out.text("bool");
    out.value(uint64_t{1});
    writer.pipeline(1, "probe", "00", out.take());
    writer.meta("state", "complete");
  }
  file.change("update meta set value='1' where key='format'");
  Capture read(file.path);
  REQUIRE(read.pipelines.at(1).constants.size() == 1);
  CHECK(read.pipelines.at(1).constants[0].index == 7);
  CHECK(read.pipelines.at(1).constants[0].bits == std::array<uint64_t, 4>{1, 0, 0, 0});
  CHECK(read.referenced_files().empty());
}
