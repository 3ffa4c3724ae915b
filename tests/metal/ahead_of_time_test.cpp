// holdfast-aot, which compiles the library's kernels when it is built: what it keeps, and what it
// compiles again.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "kernel_library/temporary_folder.h"

using namespace holdfast::testing;
namespace fs = std::filesystem;

namespace {

// Two kernels, with `first` and `second` as their factors.
std::string text_with(const std::string& first, const std::string& second) {
  return "#include <metal_stdlib>\nusing namespace metal;\n"
         "[[kernel]] void first(device float* x, uint i [[thread_position_in_grid]]) {\n"
         "  x[i] *= " +
         first +
         ";\n}\n"
         "[[kernel]] void second(device float* x, uint i [[thread_position_in_grid]]) {\n"
         "  x[i] *= " +
         second + ";\n}\n";
}

struct Result {
  int status;
  std::string output;  // both streams
};
Result run(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  Result result{-1, ""};
  char bytes[4096];
  while (const size_t got = std::fread(bytes, 1, sizeof(bytes), pipe))
    result.output.append(bytes, got);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

class Compilations {
 public:
  // The report; `images` are those of the last compilation.
  std::string compile(const std::string& text, const std::string& more = "",
                      const std::string& environment = "") {
    write_file(source_, text);
    fs::remove(output_);
    const Result result =
        run("env HOLDFAST_CACHE_DIR='" + folder_.path() + "/cache' " + environment +
            " " HOLDFAST_AOT " " HOLDFAST_JIT_MODULE " '" + source_ + "' '" + output_ +
            "' --instruction-set baseline --ptx --report " + more);
    CHECK_MESSAGE(result.status == 0, result.output);
    images = read_file(output_);
    CHECK(!images.empty());
    return result.output;
  }
  std::string cache() const { return folder_.path() + "/cache/images"; }

  std::string images;

 private:
  TemporaryFolder folder_;
  const std::string source_ = folder_.path() + "/kernels.metal";
  const std::string output_ = folder_.path() + "/kernels.images";
};

// Of the report: the line of the kernel.
bool is_from_cache(const std::string& report, const std::string& kernel) {
  const size_t begin = report.find(kernel + "  "), end = report.find('\n', begin);
  REQUIRE_MESSAGE(begin != std::string::npos, report);
  const std::string line = report.substr(begin, end - begin), word = "from the cache";
  size_t count = 0;
  for (size_t at = 0; (at = line.find(word, at)) != std::string::npos; ++at) ++count;
  CHECK_MESSAGE((count == 0 || count == 2), line);  // the CPU's code and PTX alike
  return count > 0;
}

const std::string all_kept = "all kernels from the cache\n";

}  // namespace

TEST_CASE("ahead of time: what has not changed is not compiled again") {
  Compilations compilations;
  const std::string text = text_with("2.0f", "3.0f");
  std::string report = compilations.compile(text);
  CHECK(!is_from_cache(report, "first"));
  CHECK(!is_from_cache(report, "second"));
  const std::string images = compilations.images;
  CHECK(compilations.compile(text) == all_kept);
  CHECK(compilations.images == images);

  // Lines do not count, nor do other kernels.
  report = compilations.compile("// a comment\n\n" + text_with("2.0f", "5.0f"));
  CHECK(is_from_cache(report, "first"));
  CHECK(!is_from_cache(report, "second"));
  CHECK(compilations.images != images);
  const std::string changed = compilations.images;
  compilations.compile("// a comment\n\n" + text_with("2.0f", "5.0f"), "--no-cache");
  CHECK(compilations.images == changed);

  CHECK(compilations.compile(text) == all_kept);
  CHECK(compilations.images == images);
}

TEST_CASE("ahead of time: a function that a kernel calls is a part of it") {
  Compilations compilations;
  auto text = [](const char* factor) {
    return "#include <metal_stdlib>\nusing namespace metal;\n"
           "constant float table[2] = {1.0f, " +
           std::string(factor) +
           "};\n"
           "float scaled(float x, uint i) { return x * table[i & 1]; }\n"
           "[[kernel]] void first(device float* x, uint i [[thread_position_in_grid]]) {\n"
           "  x[i] = scaled(x[i], i);\n}\n"
           "[[kernel]] void second(device float* x, uint i [[thread_position_in_grid]]) {\n"
           "  x[i] += 1;\n}\n";
  };
  compilations.compile(text("2.0f"));
  const std::string report = compilations.compile(text("3.0f"));
  CHECK(!is_from_cache(report, "first"));
  CHECK(is_from_cache(report, "second"));
}

TEST_CASE("ahead of time: nothing is kept when that is not wanted, or not safe") {
  Compilations compilations;
  const std::string text = text_with("2.0f", "3.0f");
  CHECK(!is_from_cache(compilations.compile(text, "--no-cache"), "first"));
  CHECK(!is_from_cache(compilations.compile(text, "", "HOLDFAST_DISK_CACHE=0"), "first"));
  CHECK(files_in(compilations.cache()).empty());
  compilations.compile(text);
  const std::string images = compilations.images;
  CHECK(!is_from_cache(compilations.compile(text, "--no-cache"), "first"));
  CHECK(!files_in(compilations.cache()).empty());
  // A folder that others may write to.
  ::chmod(compilations.cache().c_str(), 0777);
  CHECK(!is_from_cache(compilations.compile(text), "first"));
  CHECK(compilations.images == images);
  ::chmod(compilations.cache().c_str(), 0700);
  CHECK(compilations.compile(text) == all_kept);
}

TEST_CASE("ahead of time: files that are damaged are made again") {
  Compilations compilations;
  const std::string text = text_with("2.0f", "3.0f");
  compilations.compile(text);
  const std::string images = compilations.images;
  const auto files = files_in(compilations.cache());
  CHECK(files.size() == 5);  // two parts of two kernels, and the file's
  for (const fs::path& file : files) {
    std::string bytes = read_file(file);
    bytes[bytes.size() / 2] ^= 1;
    write_file(file, bytes);
  }
  const std::string report = compilations.compile(text);
  CHECK(!is_from_cache(report, "first"));
  CHECK(!is_from_cache(report, "second"));
  CHECK(compilations.images == images);
  CHECK(compilations.compile(text) == all_kept);
}

TEST_CASE("ahead of time: what is wrong is said, and nothing is written") {
  TemporaryFolder folder;
  const std::string source = folder.path() + "/kernels.metal", output = folder.path() + "/out";
  const std::string program = "env HOLDFAST_CACHE_DIR='" + folder.path() + "' " HOLDFAST_AOT " ";
  auto fails = [&](const std::string& arguments, const std::string& why) {
    const Result result = run(program + arguments);
    CHECK(result.status == 1);
    CHECK_MESSAGE(result.output.find(why) != std::string::npos, result.output);
    CHECK(!fs::exists(output));
  };
  const std::string files = HOLDFAST_JIT_MODULE " '" + source + "' '" + output + "' ";
  fails(HOLDFAST_JIT_MODULE, "expected MODULE SOURCE OUTPUT, got 1 paths");
  fails(files + "--instruction-set sse9", "unknown instruction set \"sse9\"");
  fails(files + "--fast", "unknown argument \"--fast\"");
  fails(files + "--ptx", "cannot read " + source);
  write_file(source, "[[kernel]] void k(device float* x) { x[0] = y; }\n");
  fails(files + "--ptx", "use of undeclared identifier 'y'");
  fails("'" + source + "' '" + source + "' '" + output + "'", source);
  const Result help = run(program + "--help");
  CHECK(help.status == 0);
  CHECK(help.output.find("--no-cache") != std::string::npos);
  CHECK(help.output.find("HOLDFAST_CACHE_DIR") != std::string::npos);
}
