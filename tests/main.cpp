// The main function of every test program.
//
// Test cases with "[long]" in their name take minutes or gigabytes; they run only when
// HOLDFAST_TEST_LONG is set (./test --long). The options are doctest's: `test-unit
// --list-test-cases`, `test-unit --test-case='*donation*'`.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

namespace {

bool runs_long_tests() {
  const char* value = std::getenv("HOLDFAST_TEST_LONG");
  return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
}

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context;
  if (!runs_long_tests()) context.addFilter("test-case-exclude", "*[long]*");
  context.applyCommandLine(argc, argv);
  return context.run();
}
