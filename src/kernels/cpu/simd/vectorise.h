// HOLDFAST_VECTORISE: before a loop whose iterations touch different elements (an output may be an
// input, in place, and overlaps nothing else).
#pragma once

#if defined(__clang__)
#define HOLDFAST_VECTORISE _Pragma("clang loop vectorize(assume_safety)")
// Some loops have no vector form (64-bit division), and none has without optimisation.
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define HOLDFAST_VECTORISE _Pragma("GCC ivdep")
#endif
