// Run by the build: writes the precompiled preludes of kernels into a folder
// (msl/frontend/prelude.h).
#include <cstdio>
#include <exception>

#include "msl/frontend/prelude.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
  }
  try {
    holdfast::msl::write_preludes(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
