// The library's version, and the version of MLX whose interface it has.
#pragma once

#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0

namespace holdfast {

// "major.minor.patch" of the library that is loaded.
const char* version();

}  // namespace holdfast
