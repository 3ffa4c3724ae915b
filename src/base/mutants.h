// Mutants: bugs of the runtime that a test-only build (HOLDFAST_MUTANTS) can be told to have, one
// at a time, by HOLDFAST_MUTANT=name. A test has to find each of them; scripts/mutants.py sees to
// that. In other builds `mutated` is false when it is compiled, and nothing is left of it.
#pragma once

#ifndef HOLDFAST_MUTANTS
#define HOLDFAST_MUTANTS 0
#endif

namespace holdfast {

enum class Mutant {
  none,
#define MUTANT(name, meaning, suites) name,
#include "base/mutants.def"
#undef MUTANT
};

#if HOLDFAST_MUTANTS
// A name of its own: a program may have the checker of kernels with mutants beside a library
// without.
inline namespace with_mutants {
// What HOLDFAST_MUTANT names. An unknown name ends the process: a mutant that does not exist must
// not pass for one that was not found.
Mutant chosen_mutant();
inline bool mutated(Mutant mutant) {
  static const Mutant chosen = chosen_mutant();
  return chosen == mutant;
}
}  // namespace with_mutants
#else
constexpr bool mutated(Mutant) { return false; }
#endif

}  // namespace holdfast
