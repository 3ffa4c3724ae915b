// Which function constants a kernel refers to that were not given.
#pragma once

#include <string>
#include <vector>

#include "msl/kernel_source.h"

namespace clang {
class FunctionDecl;
}

namespace holdfast::msl {

// Those that `kernel`, the functions that it calls and the variables that these use refer to, in
// the order of their indices, as "name (index)". Asking is_function_constant_defined alone is no
// reference. To be called when clang has read the whole source, while its tree is there.
std::vector<std::string> missing_constants_of(const clang::FunctionDecl& kernel,
                                              const KernelSource& source);

}  // namespace holdfast::msl
