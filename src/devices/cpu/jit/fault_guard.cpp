#include "devices/cpu/jit/fault_guard.h"

#include <signal.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "base/environment.h"
#include "base/pass_on_signal.h"

namespace holdfast::jit {
namespace {

// Of a trap (`__builtin_trap`, `__builtin_debugtrap`) too.
constexpr int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
struct sigaction previous[sizeof(caught) / sizeof(caught[0])];

// Allocated with the thread, so that the handler can look at it whatever the thread was doing.
__attribute__((tls_model("initial-exec"))) thread_local FaultGuard* innermost = nullptr;

// A kernel may fault because its stack is full: the handler runs on a stack of its own, unless the
// program gave the thread one already.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return;
    bytes_ = std::make_unique<char[]>(size);
    stack_t mine{};
    mine.ss_sp = bytes_.get();
    mine.ss_size = size;
    if (sigaltstack(&mine, nullptr) != 0) bytes_.reset();
  }
  ~HandlerStack() {
    stack_t now{};
    if (!bytes_ || sigaltstack(nullptr, &now) != 0 || now.ss_sp != bytes_.get()) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }

 private:
  static constexpr size_t size = 64 * 1024;
  std::unique_ptr<char[]> bytes_;
};

const void* program_counter(void* context) {
  auto* user = static_cast<ucontext_t*>(context);
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(user->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(user->uc_mcontext.pc);
#else
  static_cast<void>(user);
  return nullptr;
#endif
}

void pass_on(int signal, siginfo_t* info, void* context) {
  struct sigaction before{};
  for (size_t i = 0; i < std::size(caught); ++i) {
    if (caught[i] == signal) before = previous[i];
  }
  pass_on_signal(before, signal, info, context);
}

}  // namespace

struct FaultHandler {
  static void handle(int signal, siginfo_t* info, void* context) {
    FaultGuard* guard = innermost;
    if (guard && guard->is_armed_ && guard->image_.contains(program_counter(context))) {
      guard->signal_ = signal;
      guard->address_ = info->si_addr;
      guard->is_armed_ = false;
      siglongjmp(guard->jump, 1);
    }
    pass_on(signal, info, context);
  }

  static void install() {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    struct sigaction action{};
    action.sa_sigaction = handle;
    sigemptyset(&action.sa_mask);
    // SA_NODEFER: the jump out of the handler would leave the signal blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < std::size(caught); ++i) {
      struct sigaction now{};
      if (sigaction(caught[i], nullptr, &now) != 0 || now.sa_sigaction == handle) continue;
      previous[i] = now;
      sigaction(caught[i], &action, nullptr);
    }
  }
};

void install_fault_handlers() { FaultHandler::install(); }

FaultGuard::FaultGuard(const Image& image) : image_(image), outer_(innermost) {}

FaultGuard::~FaultGuard() { innermost = outer_; }

void FaultGuard::arm() {
  if (!environment::settings().catch_faults) return;
  static std::once_flag once;
  std::call_once(once, FaultHandler::install);
  static thread_local HandlerStack stack;
  static_cast<void>(stack);
  innermost = this;
  is_armed_ = true;
}

std::string FaultGuard::what() const {
  const char* name = signal_ == SIGSEGV  ? "SIGSEGV"
                     : signal_ == SIGBUS ? "SIGBUS"
                     : signal_ == SIGFPE ? "SIGFPE"
                     : signal_ == SIGILL ? "SIGILL"
                                         : "SIGTRAP";
  char text[64];
  std::snprintf(text, sizeof(text), "%s at address %p", name, address_);
  return text;
}

}  // namespace holdfast::jit
