// operator new that can be told to fail, on the thread that arms it. The operators themselves are
// replaced in failing_new.cpp, for this test program only.
#pragma once

#include <cstdint>

namespace holdfast::testing::failing_new {

// The k-th call on this thread (1 is the next one) fails; with `persistent` those after it as well.
void arm(uint64_t k, bool persistent = false);
// No call fails any more.
void pause();
// As pause; true when a call has failed since arm().
bool disarm();

}  // namespace holdfast::testing::failing_new
