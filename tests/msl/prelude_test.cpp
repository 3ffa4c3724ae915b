// The precompiled prelude: the build makes it, and what does not match is not used.
#include "msl/frontend/prelude.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "msl/sources.h"

using namespace holdfast::msl;

TEST_CASE("the build has made the preludes of this version") {
  CHECK(precompiled_prelude(Prelude::custom_kernel, false).getBufferSize() > 0);
  CHECK(precompiled_prelude(Prelude::metal_file, false).getBufferSize() > 0);
}

TEST_CASE("the first line says which prelude a source has") {
  CHECK(prelude_of("#include <holdfast/custom_kernel.h>\n") == Prelude::custom_kernel);
  CHECK(prelude_of("#include <metal_stdlib>\n") == Prelude::metal_file);
  CHECK(prelude_of("") == Prelude::metal_file);
  // A .metal file has no helpers of MLX's, and its own names for such things.
  CHECK(testing::compile("int ceildiv(int a, int b) { return a / b; }\n"
                         "kernel void f(device int* x) { x[0] = ceildiv(x[1], x[2]); }")
            .error == "");
}

TEST_CASE("preludes are written whole, with the version at the end") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("holdfast-prelude-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  write_preludes(folder.string());
  unsigned files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(stream), {});
    CHECK(bytes.find(frontend_version(), bytes.size() - 200) != std::string::npos);
  }
  CHECK(files == 2);
  std::filesystem::remove_all(folder);
}
