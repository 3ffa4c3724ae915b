#include "base/mutants.h"

#if HOLDFAST_MUTANTS

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace holdfast {
inline namespace with_mutants {

Mutant chosen_mutant() {
  const char* wanted = std::getenv("HOLDFAST_MUTANT");
  if (!wanted || !*wanted) return Mutant::none;
#define MUTANT(name, meaning, suites) \
  if (std::strcmp(wanted, #name) == 0) return Mutant::name;
#include "base/mutants.def"
#undef MUTANT
  std::fprintf(stderr,
               "[mutants] HOLDFAST_MUTANT must be a name of src/base/mutants.def, got \"%s\"\n",
               wanted);
  std::_Exit(2);
}

}  // namespace with_mutants
}  // namespace holdfast

#endif
