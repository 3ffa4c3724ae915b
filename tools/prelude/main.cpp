// Run by the build: has the compiler's module write the precompiled preludes of kernels into a
// folder (msl/frontend/prelude.h).
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s MODULE FOLDER\n", arguments[0]);
    return 2;
  }
  void* module = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  using Write = int(const char* folder);
  auto* write =
      module ? reinterpret_cast<Write*>(dlsym(module, "holdfast_jit_write_preludes")) : nullptr;
  if (!write) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], dlerror());
    return 1;
  }
  return write(arguments[2]);
}
