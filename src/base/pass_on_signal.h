// What a handler of signals does with one that is not its own.
#pragma once

#include <signal.h>

namespace holdfast {

// The handler from before decides, which may jump out of here. The default action is taken when the
// instruction runs again.
inline void pass_on_signal(const struct sigaction& before, int signal, siginfo_t* info,
                           void* context) {
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    // Sent by kill(), it would not come again by itself.
    if (info->si_code <= 0) raise(signal);
  }
}

}  // namespace holdfast
