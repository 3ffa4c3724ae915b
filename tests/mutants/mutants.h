// Mutants: bugs that a test has to find. Patches put them into copies of the sources, which alone
// include this (scripts/mutants.py); HOLDFAST_MUTANT=name switches one on.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace holdfast {

enum class Mutant {
  none,
#define MUTANT(name, meaning, suites) name,
#include <mutants.def>  // in the folder of the area
#undef MUTANT
};

// What HOLDFAST_MUTANT names. An unknown name ends the process: a mutant that does not exist must
// not be taken for one that was not found.
inline Mutant chosen_mutant() {
  const char* wanted = std::getenv("HOLDFAST_MUTANT");
  if (!wanted || !*wanted) return Mutant::none;
#define MUTANT(name, meaning, suites) \
  if (std::strcmp(wanted, #name) == 0) return Mutant::name;
#include <mutants.def>
#undef MUTANT
  std::fprintf(
      stderr, "[mutants] HOLDFAST_MUTANT must be a name of `scripts/mutants.py list`, got \"%s\"\n",
      wanted);
  std::_Exit(2);
}

inline bool mutated(Mutant mutant) {
  static const Mutant chosen = chosen_mutant();
  return chosen == mutant;
}

}  // namespace holdfast
